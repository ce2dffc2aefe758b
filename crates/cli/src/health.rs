//! What the nodes said, judged by the one function that judges it everywhere.

use quorba_admin::health::{self, Seen};
pub use quorba_admin::health::{Health, Judgement};
use quorba_admin::status::{EndedStatus, Status};

use crate::ask::{Answer, Silence};
use crate::exit::Exit;

/// How a command ends that found this.
pub const fn exit(health: Health) -> Exit {
    match health {
        Health::Ok => Exit::Ok,
        Health::Degraded | Health::NoQuorum => Exit::Degraded,
        Health::Unknown => Exit::Failed,
    }
}

fn seen(answers: &[Answer]) -> Vec<Seen<'_>> {
    answers.iter().map(seen_of).collect()
}

fn seen_of(answer: &Answer) -> Seen<'_> {
    match &answer.status {
        Ok(status) => Seen::Answered(status),
        Err(silence) => Seen::Silent {
            node: &answer.node,
            why: format!("{silence} ({})", answer.admin),
            is_suspect: matches!(silence, Silence::Hung | Silence::Confused { .. }),
        },
    }
}

/// The status that knows most.
pub fn best(answers: &[Answer]) -> Option<&Status> {
    health::best(&seen(answers))
}

/// Judges what the nodes said: of all, or of one group.
pub fn judge(answers: &[Answer], group: Option<&str>) -> Judgement {
    health::judge(&seen(answers), group)
}

/// Requests of a group that ended without a reply.
pub fn ended(answers: &[Answer], group: &str) -> Vec<EndedStatus> {
    health::ended(&seen(answers), group)
}

/// The same in a line.
pub fn ended_note(answers: &[Answer], group: &str) -> Option<String> {
    health::ended_note(&seen(answers), group)
}

/// References that a group's servers return and that work until a node or a server is away.
pub fn reference_notes(answers: &[Answer], group: &str) -> Vec<String> {
    let group = best(answers).and_then(|best| best.groups.iter().find(|it| it.name == group));
    group.map_or_else(Vec::new, |group| health::references::notes(&seen(answers), group))
}
