//! Threads that were to have a real-time class and have none.
//!
//! What it is not: a fault. Nothing that is promised depends on a priority; calls take longer while
//! the host is busy.

use super::Fact;
use crate::status::GroupStatus;

/// What the server of a group on a node was refused.
pub(super) fn fact(node: &str, here: &GroupStatus) -> Option<Fact> {
    let scheduling = here.server.as_ref()?.scheduling.as_ref()?;
    Some(Fact::NotRealTime {
        group: here.name.clone(),
        node: node.to_owned(),
        priority: scheduling.wanted_priority,
        why: scheduling.refused.clone()?,
    })
}

/// What is the case.
pub(super) fn words(node: &str, priority: u32, why: &str) -> String {
    format!(
        "its threads on {node} that pass on events are in the normal scheduling class, and not in \
         the real-time one with priority {priority}: {why}"
    )
}

/// What helps.
pub(super) fn next(priority: u32) -> String {
    format!(
        "let the node have it, with CAP_SYS_NICE or a limit RLIMIT_RTPRIO of {priority} or more \
         (systemd: LimitRTPRIO={priority}), or set real_time_priority = 0"
    )
}
