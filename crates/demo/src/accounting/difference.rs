//! What can be out of place, one kind per variant.
//!
//! What it is not: a count. The counts of [`super::Account`] are complete; the list of
//! differences is capped, because one fault at the start can make every later entry differ.

use std::fmt;

use serde::Serialize;

/// The most differences that an account lists.
pub const DIFFERENCES_MAX: usize = 100;

/// Something out of place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Difference {
    /// An acknowledged call stands in no history.
    Lost {
        /// The call.
        reference: String,
    },
    /// A call stands twice in one history.
    Doubled {
        /// The call.
        reference: String,
        /// The first replica that shows it.
        replica: String,
        /// The numbers of two of its entries.
        entries: [u64; 2],
    },
    /// A call stands in some histories and not in others.
    Missing {
        /// The call.
        reference: String,
        /// The replicas that lack it.
        replicas: Vec<String>,
    },
    /// Two members of a stateless group executed a call.
    ExecutedByTwo {
        /// The call.
        reference: String,
        /// The members.
        members: Vec<String>,
    },
    /// The caller was told COMPLETED_NO, and the call was executed.
    RefusedButExecuted {
        /// The call.
        reference: String,
    },
    /// A user exception was raised, and the call changed something all the same.
    RaisedButExecuted {
        /// The call.
        reference: String,
    },
    /// A history has the call under another operation than the caller.
    OtherOperation {
        /// The call.
        reference: String,
        /// The caller's operation.
        recorded: String,
        /// The history's.
        executed: String,
    },
    /// One call was acknowledged before another was begun, and stands after it.
    Reordered {
        /// The replica whose history shows it.
        replica: String,
        /// The call that was acknowledged first.
        ended_first: String,
        /// The call that was begun after that, and stands before it.
        stands_first: String,
    },
    /// A history has an entry that nobody recorded.
    Unrecorded {
        /// The call.
        reference: String,
    },
    /// Two calls were recorded under one name, so neither can be accounted for.
    ReferenceReused {
        /// The name.
        reference: String,
    },
    /// Two replicas differ.
    Diverged {
        /// The two.
        replicas: [String; 2],
        /// In what: `history`, `balance of …`, `counter` or `state`.
        what: String,
        /// What the first has.
        first: String,
        /// What the second has.
        second: String,
    },
    /// A replica's balances or counter are not what its own history leads to.
    Inconsistent {
        /// The replica.
        replica: String,
        /// In what way.
        what: String,
    },
    /// A replica's final state could not be read.
    Unread {
        /// The replica.
        replica: String,
        /// Why.
        reason: String,
    },
    /// There was no replica to read, so nothing is shown.
    NoReplica,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { reference } => write!(f, "{reference} was acknowledged and is lost"),
            Self::Doubled { reference, replica, entries: [first, second] } => {
                write!(f, "{reference} stands twice at {replica}: entries {first} and {second}")
            }
            Self::Missing { reference, replicas } => {
                write!(f, "{reference} is missing at {}", replicas.join(", "))
            }
            Self::ExecutedByTwo { reference, members } => {
                write!(f, "{reference} was executed by {}", members.join(" and "))
            }
            Self::RefusedButExecuted { reference } => {
                write!(f, "{reference} was executed although its caller was told COMPLETED_NO")
            }
            Self::RaisedButExecuted { reference } => {
                write!(f, "{reference} was executed although it raised a user exception")
            }
            Self::OtherOperation { reference, recorded, executed } => {
                write!(f, "{reference} was sent as {recorded} and executed as {executed}")
            }
            Self::Reordered { replica, ended_first, stands_first } => write!(
                f,
                "at {replica}, {stands_first} stands before {ended_first}, which was acknowledged \
                 before {stands_first} was begun"
            ),
            Self::Unrecorded { reference } => {
                write!(f, "{reference} stands in a history, and no client recorded it")
            }
            Self::ReferenceReused { reference } => {
                write!(f, "{reference} was recorded twice: clients need different names")
            }
            Self::Diverged { replicas: [one, two], what, first, second } => {
                write!(f, "{what} differs: {one} has {first}, {two} has {second}")
            }
            Self::Inconsistent { replica, what } => write!(f, "at {replica}, {what}"),
            Self::Unread { replica, reason } => {
                write!(f, "the final state of {replica} could not be read: {reason}")
            }
            Self::NoReplica => f.write_str("no replica was read, so nothing is shown"),
        }
    }
}

/// A capped list of differences.
#[derive(Default)]
pub(super) struct Differences(Vec<Difference>);

impl Differences {
    pub(super) fn add(&mut self, difference: Difference) {
        if self.0.len() < DIFFERENCES_MAX {
            self.0.push(difference);
        }
    }

    pub(super) fn into_list(self) -> Vec<Difference> {
        self.0
    }
}
