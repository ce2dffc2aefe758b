//! Sizes and heads of source files.

use std::path::Path;

use syn::visit::Visit;

use super::{Finding, room_of};

const LINE_CHARS_MAX: usize = 100;
const FUNCTION_LINES_MAX: usize = 70;
/// The aim is half of it.
const FILE_LINES_MAX: usize = 800;

/// Whether files with this extension are source code.
pub(super) fn is_source(extension: &str) -> bool {
    matches!(extension, "rs" | "cpp" | "cc" | "h" | "hpp" | "java" | "py" | "sh" | "idl")
}

/// Generated files say so in their first lines.
pub(super) fn is_generated(text: &str) -> bool {
    text.lines().take(5).any(|line| line.contains("@generated"))
}

/// Checks the length of lines: of source code, and of documents.
pub(super) fn check_width(path: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let chars = line.chars().count();
        if chars > LINE_CHARS_MAX {
            let what = format!("{chars} columns, at most {LINE_CHARS_MAX}");
            findings.push(Finding::new(path, number + 1, "line", what));
        }
    }
    findings
}

/// Checks the length of the file and of its lines.
pub(super) fn check_sizes(path: &Path, text: &str) -> Vec<Finding> {
    let mut findings = check_width(path, text);
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        let what = format!("{lines} lines, at most {FILE_LINES_MAX}: it holds more than one idea");
        findings.push(Finding::new(path, 0, "file", what));
    }
    findings
}

/// Checks that a Rust file begins with what it is.
pub(super) fn check_head(path: &Path, text: &str) -> Vec<Finding> {
    // Fuzz targets and examples have heads, too: they are read first of all.
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!"));
    if first.is_some_and(|line| line.starts_with("//!")) {
        return Vec::new();
    }
    let what = "begins without `//!`: what it is, what it is not, its invariants";
    vec![Finding::new(path, 1, "head", what)]
}

/// Checks the length of each function, signature to closing brace.
pub(super) fn check_functions(path: &Path, text: &str) -> Vec<Finding> {
    let file = match syn::parse_file(text) {
        Ok(file) => file,
        // rustc says it better; a file of no room may be a fragment on purpose.
        Err(_) if room_of(path).is_none() => return Vec::new(),
        Err(error) => {
            let line = error.span().start().line;
            return vec![Finding::new(path, line, "syntax", error.to_string())];
        }
    };
    let mut functions = Functions { path, findings: Vec::new() };
    functions.visit_file(&file);
    functions.findings
}

struct Functions<'p> {
    path: &'p Path,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    fn check(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let start = signature.fn_token.span.start().line;
        let end = body.brace_token.span.close().end().line;
        let lines = end.saturating_sub(start) + 1;
        if lines > FUNCTION_LINES_MAX {
            let what =
                format!("{} has {lines} lines, at most {FUNCTION_LINES_MAX}", signature.ident);
            self.findings.push(Finding::new(self.path, start, "function", what));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.check(&function.sig, &function.block);
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.check(&function.sig, &function.block);
        syn::visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.check(&function.sig, body);
        }
        syn::visit::visit_trait_item_fn(self, function);
    }
}

/// The text with its line comments blanked; the lines stay where they are.
pub(super) fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    for line in text.lines() {
        // A `//` inside of a text literal only hides the rest of that line from a word check.
        let end = line.find("//").unwrap_or(line.len());
        code.push_str(&line[..end]);
        code.push('\n');
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/giop/src/a.rs";

    fn function_of(lines: usize) -> String {
        format!(
            "//! A.\nimpl A {{\n    fn long() {{\n{}    }}\n}}\n",
            "        x();\n".repeat(lines - 2)
        )
    }

    #[test]
    fn long_lines_and_files_are_found() {
        let path = Path::new(PATH);
        let wide = format!("//! ok\n// {}\n", "é".repeat(98));
        assert_eq!(check_sizes(path, &wide)[0].line, 2, "101 columns");
        assert!(check_sizes(path, &"é".repeat(100)).is_empty(), "100 columns, 200 bytes");
        assert_eq!(check_sizes(path, &"x\n".repeat(801))[0].rule, "file");
        assert!(check_width(Path::new("long.md"), &"x\n".repeat(801)).is_empty());
        assert!(check_sizes(path, &"x\n".repeat(800)).is_empty());
    }

    #[test]
    fn long_functions_are_found_wherever_they_are() {
        let path = Path::new(PATH);
        assert!(check_functions(path, &function_of(70)).is_empty());
        let found = check_functions(path, &function_of(71));
        assert_eq!((found[0].line, found[0].what.as_str()), (3, "long has 71 lines, at most 70"));
        let nested =
            format!("mod m {{ fn outer() {{ {} }} }}", function_of(71).replace("//! A.", ""));
        assert_eq!(check_functions(path, &nested).len(), 2, "the outer one is long as well");
    }

    #[test]
    fn unreadable_files_are_found() {
        assert_eq!(check_functions(Path::new(PATH), "fn {")[0].rule, "syntax");
    }

    #[test]
    fn files_begin_with_what_they_are() {
        let path = Path::new(PATH);
        assert!(check_head(path, "//! A codec.\n").is_empty());
        assert!(check_head(path, "#!/usr/bin/env run\n\n//! A codec.\n").is_empty());
        assert_eq!(check_head(path, "use x;\n//! late\n")[0].rule, "head");
        assert_eq!(check_head(path, "")[0].rule, "head");
    }

    #[test]
    fn generated_files_say_so() {
        assert!(is_generated("//! Stubs.\n// @generated by omniidl\n"));
        assert!(!is_generated("//! Says @generat ed nowhere.\n"));
    }
}
