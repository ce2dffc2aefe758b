//! Why a change of the catalog is not carried out, for operators.
//!
//! Invariant: what depends on the catalog and on tables alone is refused alike by all nodes.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CatalogRefused {
    /// This node is in no primary component, so nothing can be ordered.
    NoPrimary,
    /// Groups that are not durable wait for a node that is away.
    Waits,
    /// There is one of that name.
    Exists(Arc<str>),
    /// There is none of that name.
    Unknown(Arc<str>),
    /// Another change was carried out under the same name of an operation.
    OperationReused,
    /// The definition cannot be read, for this reason.
    Invalid(String),
    /// This key cannot be changed while the group lives.
    Fixed(&'static str),
    /// The definition is about a server outside, and what has its name is a group, or the other way
    /// round.
    OtherKind(Arc<str>),
    /// Groups call it, one of them being this.
    IsCalled(Arc<str>),
    /// It calls a stateless group, or is stateless and calls.
    CallsStateless(Arc<str>),
    /// No member that would be left is in the group now.
    LastMember,
    /// The catalog is full.
    TooMany,
    /// A name or text is empty, or too long.
    TooLong(&'static str),
    /// The node has left the primary component before enough nodes had the change on disk: nobody
    /// here can say what became of it.
    Interrupted,
}

impl CatalogRefused {
    /// The same request, with the same name of the operation, may succeed later.
    #[must_use]
    pub const fn may_be_repeated(&self) -> bool {
        matches!(self, Self::NoPrimary | Self::Waits | Self::Interrupted)
    }
}

impl fmt::Display for CatalogRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPrimary => f.write_str("this node is in no primary component"),
            Self::Waits => f.write_str(
                "groups that are not durable wait for a node that is away, and until it is back \
                 none is created, changed or deleted",
            ),
            Self::Exists(name) => {
                write!(f, "there is a group, or a server outside, called \"{name}\" already")
            }
            Self::Unknown(name) => {
                write!(f, "there is no group, and no server outside, called \"{name}\"")
            }
            Self::OperationReused => f.write_str(
                "another change was carried out under this name of an operation: choose a new one",
            ),
            Self::Invalid(what) => write!(f, "the definition cannot be used: {what}"),
            Self::Fixed(key) => write!(
                f,
                "`{key}` cannot be changed while the group lives: make a backup, delete the \
                 group, create it anew and restore the backup"
            ),
            Self::OtherKind(name) => write!(
                f,
                "a group does not become a server outside, nor the other way round: delete \
                 \"{name}\", and create it anew"
            ),
            Self::IsCalled(by) => write!(f, "group \"{by}\" calls it: delete or change that first"),
            Self::CallsStateless(name) => {
                write!(
                    f,
                    "\"{name}\" is stateless, and stateless groups neither call nor are called"
                )
            }
            Self::LastMember => f.write_str("no member that would be left is in the group now"),
            Self::TooMany => f.write_str("the domain has as many groups as it can have"),
            Self::TooLong(what) => write!(f, "the {what} is empty or too long"),
            Self::Interrupted => f.write_str(
                "the node left its primary component before a majority had the change on disk; it \
                 may have been carried out: repeat it under the same name of the operation",
            ),
        }
    }
}

impl core::error::Error for CatalogRefused {}
