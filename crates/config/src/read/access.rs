//! Who may call what: `state_operations`.

use crate::codes::Code;
use crate::problem::Problem;
use crate::suggest::nearest;
use crate::walk::{Section, shortened};

/// What moves the state of a whole replica (FT-CORBA §23.5).
const STATE_OPERATIONS: [&str; 4] = ["get_state", "set_state", "get_update", "set_update"];

/// Of those, the ones that clients may call.
pub(super) fn read_state_operations(section: &Section<'_>) -> Vec<String> {
    let Some(operations) = section.texts("state_operations") else { return Vec::new() };
    let mut names = Vec::new();
    for at in operations.value {
        if STATE_OPERATIONS.contains(&at.value) {
            names.push(at.value.to_owned());
            continue;
        }
        let message = format!("`state_operations` cannot have {:?}", shortened(at.value));
        let meant = nearest(at.value, STATE_OPERATIONS.into_iter());
        let meant = meant.map(|word| format!("did you mean \"{word}\"?"));
        let problem = Problem::at(Code::UnknownValue, at.span, message);
        let problem = problem.label(format!("possible: {}", STATE_OPERATIONS.join(", ")));
        section.problems.add(problem.maybe_help(meant));
    }
    names.sort();
    names.dedup();
    names
}
