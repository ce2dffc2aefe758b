//! Operations that change nothing: `readonly` and `readonly_consistency`.

use crate::codes::Code;
use crate::problem::Problem;
use crate::walk::{At, Section, shortened};
use quorba_base::policy::ReadConsistency;

/// Names in the list; each is compared with every request's.
const OPERATIONS_MAX: usize = 64;

/// Names of operations, in which `*` stands for any part.
pub(super) fn read_operations(section: &Section<'_>) -> Vec<String> {
    section.texts("readonly").map(|texts| as_operations(section, texts)).unwrap_or_default()
}

/// The same of any list.
pub(super) fn as_operations(section: &Section<'_>, operations: At<Vec<At<&str>>>) -> Vec<String> {
    if operations.value.len() > OPERATIONS_MAX {
        let message = format!("more than {OPERATIONS_MAX} names of operations");
        let problem = Problem::at(Code::OutOfRange, operations.span, message);
        section.problems.add(problem.help("\"get_*\" stands for all that begin with get_"));
        return Vec::new();
    }
    let mut names = Vec::new();
    for at in operations.value {
        // An identifier of IDL, and what the language mapping makes of an attribute.
        if at.value.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"_*".contains(&octet)) {
            names.push(at.value.to_owned());
            continue;
        }
        let message = format!("{:?} is no name of an operation", shortened(at.value));
        let help = "letters, digits and _; * stands for any part; an attribute is read by \
                    \"_get_NAME\"";
        section.problems.add(Problem::at(Code::BadName, at.span, message).help(help));
    }
    names
}

pub(super) fn read_consistency(section: &Section<'_>) -> ReadConsistency {
    let (words, default) = (ReadConsistency::WORDS, ReadConsistency::Linearizable);
    let consistency = section.word_or("readonly_consistency", words, &[], default);
    if section.value("readonly").is_none()
        && let Some(idle) = section.value("readonly_consistency")
    {
        let message = "`readonly_consistency` has no effect without `readonly`";
        section.problems.add(Problem::at(Code::SilentSetting, idle.span(), message));
    }
    consistency
}
