//! What is wrong with a domain file, and how it is told.
//!
//! What it is not: an error that stops the reading. Problems are collected; a file is answered
//! with all of them at once, in the order in which they stand in it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use crate::codes::Code;

/// More problems than this are counted instead of shown: nobody reads on.
const RENDERED_MAX: usize = 200;

/// One thing that is wrong, or probably not meant. The operator's to repair; a retry never helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What it is about.
    pub code: Code,
    /// What is wrong, in one line.
    pub message: String,
    /// The bytes of the file that it is about; none if it is not about a place in the file.
    pub span: Option<Range<usize>>,
    /// What stands under the caret.
    pub label: String,
    /// Other places that belong to it.
    pub related: Vec<(Range<usize>, String)>,
    /// What to do about it.
    pub help: Option<String>,
    /// Line of the first marked byte, from 1; 0 if there is none.
    pub line: usize,
    /// Column of it in characters, from 1; 0 if there is none.
    pub column: usize,
}

impl Problem {
    /// A problem at `span`.
    pub(crate) fn at(code: Code, span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span: Some(span), ..Self::of_file(code, message) }
    }

    /// A problem of the file as a whole.
    pub(crate) fn of_file(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            span: None,
            label: String::new(),
            related: Vec::new(),
            help: None,
            line: 0,
            column: 0,
        }
    }

    pub(crate) fn label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    pub(crate) fn maybe_help(self, help: Option<String>) -> Self {
        Self { help, ..self }
    }

    pub(crate) fn related(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }

    /// Whether it is a warning only.
    #[must_use]
    pub const fn is_warning(&self) -> bool {
        self.code.is_warning()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        write!(f, "{} [{}]", self.message, self.code.as_str())?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// Every problem of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    path: PathBuf,
    text: String,
    problems: Vec<Problem>,
}

impl Report {
    /// The report on `text`, which was read from `path`. Errors come before warnings, each in
    /// the order of the file.
    pub(crate) fn new(path: &Path, text: &str, mut problems: Vec<Problem>) -> Self {
        let mut lines: Vec<usize> = vec![0];
        lines.extend(text.match_indices('\n').map(|(newline, _)| newline + 1));
        for problem in &mut problems {
            if let Some(span) = &mut problem.span {
                *span = widened(text, span);
                (problem.line, problem.column) = line_and_column(text, &lines, span.start);
            }
            for (span, _) in &mut problem.related {
                *span = widened(text, span);
            }
        }
        let place = |problem: &Problem| problem.span.as_ref().map_or(0, |span| span.start);
        problems.sort_by_key(|problem| (problem.is_warning(), place(problem)));
        problems.dedup();
        Self { path: path.to_owned(), text: text.to_owned(), problems }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Errors, then warnings, each in the order of the file.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many of them are errors.
    #[must_use]
    pub fn error_count(&self) -> usize {
        self.problems.iter().filter(|problem| !problem.is_warning()).count()
    }

    /// The report as text with excerpts of the file, in colour if wanted.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.decor_style(DecorStyle::Ascii);
        let path = self.path.display().to_string();
        let mut text = String::new();
        for problem in self.problems.iter().take(RENDERED_MAX) {
            text.push_str(&self.render_one(&renderer, &path, problem));
            text.push_str("\n\n");
        }
        if let Some(more) = self.problems.len().checked_sub(RENDERED_MAX).filter(|more| *more > 0) {
            text.push_str(&format!("{more} more are not shown\n\n"));
        }
        text
    }

    fn render_one(&self, renderer: &Renderer, path: &str, problem: &Problem) -> String {
        let level = if problem.is_warning() { Level::WARNING } else { Level::ERROR };
        let title = level.primary_title(problem.message.as_str()).id(problem.code.as_str());
        let mut group = match &problem.span {
            None => title.element(Origin::path(path)),
            Some(span) => {
                let primary = AnnotationKind::Primary.span(span.clone());
                let primary = match problem.label.as_str() {
                    "" => primary,
                    label => primary.label(label),
                };
                let related = problem.related.iter().map(|(span, label)| {
                    AnnotationKind::Context.span(span.clone()).label(label.as_str())
                });
                let snippet = Snippet::source(self.text.as_str()).path(path);
                title.element(snippet.annotation(primary).annotations(related))
            }
        };
        if let Some(help) = &problem.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Report {}

/// `span` moved onto character boundaries of `text`, and inside of it.
fn widened(text: &str, span: &Range<usize>) -> Range<usize> {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// `lines`: where each line begins.
fn line_and_column(text: &str, lines: &[usize], at: usize) -> (usize, usize) {
    let line = lines.partition_point(|start| *start <= at);
    let start = line.checked_sub(1).and_then(|index| lines.get(index)).copied().unwrap_or(0);
    (line, text[start..at].chars().count() + 1)
}
