//! Requests that servers did not answer, and what else servers have done that nodes put up with.

use quorba_admin::status::{IdentityStatus, ServerStatus};

use crate::ask::Answer;
use crate::health;
use crate::text::{grouped, size, table};

/// Of one group, in full.
pub(super) fn of_group(answers: &[Answer], name: &str) -> String {
    let mut text = String::new();
    let ended = health::ended(answers, name);
    if !ended.is_empty() {
        text.push_str("ended without a reply:\n");
        let known = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        let rows = ended.into_iter().map(|one| {
            let bytes = one.request.bytes;
            vec![
                one.request.number.to_string(),
                known(one.request.operation),
                known(one.request.key),
                if bytes == 0 { "-".to_owned() } else { size(bytes) },
                known(one.request.gateway),
                one.request.client.unwrap_or_else(|| "-".to_owned()),
                one.how,
            ]
        });
        let headings = [">NUMBER", "OPERATION", "KEY", ">REQUEST", "GATEWAY", "CLIENT", "HOW"];
        text.push_str(&table(&headings, rows.collect()));
    }
    for answer in answers {
        let Ok(status) = &answer.status else { continue };
        for group in status.groups.iter().filter(|group| group.name == name) {
            let server = group.server.as_ref();
            text.push_str(&server.map_or_else(String::new, |it| put_up_with(&answer.node, it)));
            text.push_str(&names(&answer.node, &group.identities));
            if group.calls.differing > 0 {
                text.push_str(&format!(
                    "nested calls whose arguments differ between replicas (perhaps in padding \
                     only), seen at {}: {}\n",
                    answer.node,
                    grouped(group.calls.differing)
                ));
            }
        }
    }
    text
}

/// Calls whose clients named them, and that were refused for it.
fn names(node: &str, identities: &IdentityStatus) -> String {
    if identities.is_none() {
        return String::new();
    }
    let (taken, no_room) = (grouped(identities.taken), grouped(identities.no_room));
    format!(
        "FT_REQUEST calls refused at {node}: {taken} reuse the id of another call, {no_room} \
         because too many are remembered\n"
    )
}

fn put_up_with(node: &str, server: &ServerStatus) -> String {
    let counts = [
        (server.reconnects, "connections lost while it ran:"),
        (server.dropped, "unexpected GIOP messages from it, ignored:"),
        (server.refused_calls, "bidirectional-GIOP callbacks refused:"),
    ];
    let some = counts.iter().filter(|(count, _)| *count > 0);
    let said: Vec<String> =
        some.map(|(count, what)| format!("{what} {}", grouped(*count))).collect();
    if said.is_empty() {
        return String::new();
    }
    format!("server on {node}: {}\n", said.join("; "))
}

/// A line for each group that has such requests.
pub(super) fn notes<'a>(answers: &[Answer], groups: impl Iterator<Item = &'a str>) -> String {
    let notes = groups.flat_map(|name| {
        let ended = health::ended_note(answers, name);
        ended.into_iter().chain(health::reference_notes(answers, name))
    });
    notes.map(|note| format!("! {note}\n")).collect()
}
