//! What the doctor found, for people and for programs.
//!
//! Invariant: the first difference that clients see stands before those that may be padding.

use std::fmt::Write;

use quorba_admin::requests::Messages;
use quorba_giop::corbaloc::EscapedKey;
use quorba_giop::{Body, Message, describe};
use serde_json::{Value, json};

use super::compare::{Difference, Kind};
use super::replay::Answer;
use crate::text::{grouped, size, wrapped};

/// Octets of each answer that are shown.
const SHOWN_BYTES: usize = 48;

/// A request whose answers differ.
pub struct Differing {
    number: u64,
    operation: String,
    key: String,
    answers: [Answer; 2],
    difference: Difference,
}

/// See the module's text.
#[derive(Default)]
pub struct Report {
    group: String,
    requests: usize,
    /// Requests that both runs answered.
    pub compared: usize,
    /// Whose replies were those of the recording.
    pub recorded: usize,
    differing: usize,
    padded: usize,
    first: Option<Differing>,
    first_padded: Option<Differing>,
    /// The states at the end, if both servers gave one: what differs, and how large they are.
    pub states: Option<Option<(Difference, usize, usize)>>,
}

impl Differing {
    pub fn new(request: &Messages, answers: [&Answer; 2], difference: Difference) -> Self {
        let message = Message::from_bytes(request.request.clone());
        let (operation, key) = match message.as_ref().map(Message::parse) {
            Ok(Ok(Body::Request(request))) => {
                let key = request.object_key().unwrap_or_default();
                (request.operation().escape_ascii().to_string(), EscapedKey(key).to_string())
            }
            _ => (String::new(), String::new()),
        };
        let number = request.number;
        Self { number, operation, key, answers: answers.map(Answer::clone), difference }
    }

    fn text(&self) -> String {
        let Difference { offset, octets, .. } = self.difference;
        let mut text = format!(
            "request {}: {} of object {}\n  {octets} octets differ, the first at offset {offset}\n",
            self.number, self.operation, self.key
        );
        for (run, answer) in (1..).zip(&self.answers) {
            let _ = writeln!(text, "\nrun {run}: {}", answer.text());
            let octets = answer.octets();
            let begin = (offset & !15).min(octets.len());
            let shown = octets.get(begin..).unwrap_or(&[]);
            for (line, chunk) in shown.chunks(16).take(SHOWN_BYTES / 16).enumerate() {
                text += &dump_line(begin + line * 16, chunk);
            }
        }
        text + "\n" + &causes_text(&self.difference)
    }

    fn json(&self) -> Value {
        let answers = self.answers.each_ref().map(|answer| {
            json!({
                "answer": answer.text(),
                "hex": hex(answer.octets()),
                "decoded": describe::bytes(answer.octets()),
            })
        });
        json!({
            "number": self.number,
            "operation": self.operation,
            "key": self.key,
            "offset": self.difference.offset,
            "octets": self.difference.octets,
            "kind": self.difference.kind,
            "ignorable": self.difference.ignorable,
            "causes": self.difference.causes,
            "answers": answers,
        })
    }
}

fn causes_text(difference: &Difference) -> String {
    let mut text = String::from("It looks like:\n");
    for cause in &difference.causes {
        let line = wrapped(cause.text(), 98, "    ");
        let _ = writeln!(text, "  - {}", line.trim_start());
    }
    if difference.ignorable {
        text += "`compare_replies = \"ignore-padding\"` takes both replies for the same.\n";
    }
    text
}

fn dump_line(at: usize, octets: &[u8]) -> String {
    let hex: Vec<String> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    let shown = |octet: &u8| {
        if octet.is_ascii_graphic() || *octet == b' ' { char::from(*octet) } else { '.' }
    };
    let text: String = octets.iter().map(shown).collect();
    format!("  {at:>6}  {:<47}  {text}\n", hex.join(" "))
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

impl Report {
    pub fn new(group: &str, requests: usize) -> Self {
        Self { group: group.into(), requests, ..Self::default() }
    }

    /// One more request whose answers differ.
    pub fn add(&mut self, differing: Differing) {
        let (count, first) = match differing.difference.kind {
            Kind::Content => (&mut self.differing, &mut self.first),
            Kind::Padding | Kind::PerhapsPadding => (&mut self.padded, &mut self.first_padded),
        };
        *count += 1;
        first.get_or_insert(differing);
    }

    fn states_differ(&self) -> bool {
        matches!(self.states, Some(Some(_)))
    }

    /// Whether nothing at all differs.
    pub fn is_alike(&self) -> bool {
        self.compared == self.requests
            && self.differing == 0
            && self.padded == 0
            && !self.states_differ()
    }

    fn verdict(&self) -> &'static str {
        match (self.differing, self.states_differ(), self.padded) {
            (0, false, 0) if self.compared < self.requests => "both-ended",
            (0, false, 0) => "alike",
            (0, false, _) => "padding",
            (0, true, _) => "states-differ",
            _ => "replies-differ",
        }
    }

    pub fn text(&self) -> String {
        let compared = grouped(self.compared as u64);
        let mut text = String::new();
        if self.compared < self.requests {
            let all = grouped(self.requests as u64);
            let _ = writeln!(
                text,
                "After {compared} of {all} requests a server answered no more: what ends one \
                 replica may end all."
            );
        }
        if let Some(first) = &self.first {
            let count = grouped(self.differing as u64);
            let _ = writeln!(text, "{count} of {compared} replies differ. The first:\n");
            text += &first.text();
        }
        if let Some(first) = &self.first_padded {
            let count = grouped(self.padded as u64);
            let _ = writeln!(
                text,
                "{count} of {compared} replies differ only where CDR may have padding. The \
                 first:\n"
            );
            text += &first.text();
        }
        if let Some(Some((difference, one, other))) = &self.states {
            let (one, other) = (size(*one as u64), size(*other as u64));
            let offset = difference.offset;
            let _ = writeln!(
                text,
                "The states at the end differ from offset {offset} on ({one} and {other})."
            );
            text += &causes_text(difference);
        }
        if self.is_alike() {
            let _ = writeln!(text, "All {compared} replies are equal{}.", self.states_text());
        } else {
            text += "docs/determinism.md says what breaks determinism, and what to do about it.\n";
        }
        text
    }

    const fn states_text(&self) -> &'static str {
        if self.states.is_some() { ", and so are the states at the end" } else { "" }
    }

    pub fn json(&self) -> Value {
        let states = self.states.as_ref().map(|states| match states {
            None => json!({ "equal": true }),
            Some((difference, one, other)) => json!({
                "equal": false,
                "offset": difference.offset,
                "causes": difference.causes,
                "bytes": [one, other],
            }),
        });
        json!({
            "group": self.group,
            "verdict": self.verdict(),
            "requests": self.requests,
            "compared": self.compared,
            "as_recorded": self.recorded,
            "differing": self.differing,
            "padded": self.padded,
            "first": self.first.as_ref().map(Differing::json),
            "first_padded": self.first_padded.as_ref().map(Differing::json),
            "states": states,
        })
    }
}
