//! Words that must not stand in the repository: left-over marks, and paths of one machine.

use std::path::Path;

use super::Finding;

/// A word, and what to do instead. In two halves, so that this file does not hold them.
const WORDS: &[(&str, &str, &str)] = &[
    ("TO", "DO", "do it, or write down in docs/ what is not done and why"),
    ("FIX", "ME", "fix it"),
    ("XX", "X", "say what is meant"),
    ("dbg", "!(", "use tracing, or a test"),
    ("todo", "!(", "write it"),
    ("unimplemented", "!(", "write it"),
];

/// What is looked for, made for the machine that it runs on.
pub(super) struct Words {
    words: Vec<(String, &'static str)>,
}

const PATH_ADVICE: &str = "a path of one machine; take it from the environment";

impl Words {
    /// The words, and the folders of this clone and of users.
    pub(super) fn new(root: &Path) -> Self {
        let mut words: Vec<_> =
            WORDS.iter().map(|(one, two, advice)| (format!("{one}{two}"), *advice)).collect();
        for folder in ["home", "root", "Users"] {
            words.push((format!("/{folder}/"), PATH_ADVICE));
        }
        let parent = root.parent().filter(|parent| parent.parent().is_some());
        for folder in std::iter::once(root).chain(parent) {
            let folder = folder.display().to_string();
            words.push((format!("{folder}/"), PATH_ADVICE));
        }
        Self { words }
    }

    /// Finds the words in a file.
    pub(super) fn check(&self, path: &Path, text: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (number, line) in text.lines().enumerate() {
            for (word, advice) in &self.words {
                if contains_word(line, word) {
                    let what = format!("{word}: {advice}");
                    findings.push(Finding::new(path, number + 1, "word", what));
                    break;
                }
            }
        }
        findings
    }
}

/// Whether `word` stands in `line`, not as the end or beginning of a longer word.
fn contains_word(line: &str, word: &str) -> bool {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    line.match_indices(word).any(|(at, _)| {
        // A path that goes on before its first folder is relative: docs/home/ is ours.
        let before = line[..at]
            .chars()
            .next_back()
            .is_some_and(|char| is_word(char) || word.starts_with('/') && char == '.');
        let after = line[at + word.len()..].chars().next().is_some_and(is_word);
        !(before || word.ends_with(is_word) && after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<usize> {
        let words = Words::new(Path::new("/build/quorba"));
        let findings = words.check(Path::new("a.rs"), text);
        findings.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn marks_are_found() {
        let text = ["fine", &format!("// {}{}: later", "TO", "DO"), "TODOS", "METHOD"].join("\n");
        assert_eq!(rules(&text), [2]);
        assert_eq!(rules(&format!("    {}{}x);", "dbg", "!(")), [1]);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for folder in ["home", "root", "build", "build/quorba"] {
            assert_eq!(rules(&format!("let x = \"/{folder}/x\";")), [1], "{folder}");
        }
        assert!(rules("see docs/home/ and ../build/x").is_empty());
        assert!(rules("/var/lib/quorba/n1 and /usr/bin/bank").is_empty());
    }
}
