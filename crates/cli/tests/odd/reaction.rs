//! The oddities, with what a caller may be told of each when all members have it alike.

use std::time::Duration;

use quorba_giop::Completion;

use crate::stage::scripted::Step;
use crate::stage::wire::Answer;

/// How long a server may take for a reply, in these groups: `server_reply_ms`.
pub(crate) const SERVER_REPLY: Duration = Duration::from_secs(2);

/// How many oddities of a style are seen to go wrong.
const WRONG_MAX: usize = 6;

/// What a caller may be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// The results: the server did give them.
    Results,
    /// That nobody knows, or that it was not executed, with a minor code of Quorba's; or the
    /// results.
    AnyAnswer,
}

/// An oddity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reaction {
    /// As the scripted server calls it.
    pub(crate) what: &'static str,
    pub(crate) told: Told,
}

const fn reaction(what: &'static str, told: Told) -> Reaction {
    Reaction { what, told }
}

/// Those after which the process lives and the call is done with.
pub(crate) const LIVING: [Reaction; 13] = [
    reaction("plain", Told::Results),
    reaction("twice", Told::Results),
    reaction("fragment", Told::Results),
    reaction("old-fragment", Told::Results),
    reaction("request", Told::Results),
    reaction("locate", Told::Results),
    reaction("fin", Told::AnyAnswer),
    reaction("rst", Told::AnyAnswer),
    reaction("garbage", Told::AnyAnswer),
    reaction("partial", Told::AnyAnswer),
    reaction("message-error", Told::AnyAnswer),
    reaction("wrong-id", Told::AnyAnswer),
    reaction("close-always", Told::AnyAnswer),
];

/// Longer than [`SERVER_REPLY`].
pub(crate) const LATE: Reaction = reaction("slow:3500", Told::Results);

/// Those that end the process.
pub(crate) const FATAL: [Reaction; 2] =
    [reaction("exit", Told::AnyAnswer), reaction("crash", Told::AnyAnswer)];

impl Reaction {
    /// The text that the request appends; `early` or `late`.
    pub(crate) fn text(&self, late: bool) -> String {
        format!("{}-{}", self.what.replace(':', "-"), if late { "late" } else { "early" })
    }

    /// Whether a caller may be told this.
    pub(crate) fn check(&self, answer: &Answer) -> Step {
        let is_right = match answer {
            Answer::Reply(_) => answer.number().is_ok(),
            Answer::Raised(exception) => {
                self.told == Told::AnyAnswer
                    && answer.ours().is_some()
                    && exception.completed != Completion::Yes
            }
            _ => false,
        };
        let told = self.told;
        if is_right { Ok(()) } else { Err(format!("its caller got {answer}, not {told:?}")) }
    }
}

/// Keeps what went wrong, and tells it at once to whoever looks on (`--nocapture`): each may take
/// long to fail, and the next is tried all the same.
///
/// # Panics
/// If so much has gone wrong that the rest would tell nothing new.
pub(crate) fn found_wrong(wrong: &mut Vec<String>, oddity: &str, why: &str) {
    println!("{oddity}: {why}");
    wrong.push(format!("{oddity}: {why}"));
    assert!(wrong.len() < WRONG_MAX, "{WRONG_MAX} went wrong:\n{}", wrong.join("\n"));
}
