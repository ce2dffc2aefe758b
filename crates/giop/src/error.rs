//! What can be wrong with bytes from a peer; it is always the peer's fault.

use core::fmt;

/// The byte stream cannot be cut into messages any further; the connection is to be closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// It does not begin with "GIOP".
    Magic,
    /// A version that this codec does not speak.
    Version {
        /// Major and minor, as read.
        major: u8,
        /// Minor.
        minor: u8,
    },
    /// Reserved bits of the flags are set.
    Flags(u8),
    /// A message type that the version does not have.
    MessageType(u8),
    /// A message, or what its fragments add up to, is larger than allowed.
    TooLarge {
        /// How large, in bytes.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
    /// More is unfinished than allowed.
    TooMuchBuffered {
        /// The limit, in bytes.
        limit: usize,
    },
    /// More messages are in fragments at once than allowed.
    TooManyFragmented {
        /// The limit.
        limit: usize,
    },
    /// A fragment of nothing, or one that its message type cannot have.
    UnexpectedFragment,
    /// A message that is shorter than its fixed fields.
    Short,
    /// A second first fragment under a request id that is in fragments already.
    FragmentedTwice(u32),
}

impl FrameError {
    /// Whether it is a matter of size, not of form.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(
            self,
            Self::TooLarge { .. } | Self::TooMuchBuffered { .. } | Self::TooManyFragmented { .. }
        )
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("what came is not GIOP"),
            Self::Version { major, minor } => write!(f, "GIOP {major}.{minor} is not spoken here"),
            Self::Flags(flags) => write!(f, "reserved flag bits are set: {flags:#04x}"),
            Self::MessageType(kind) => write!(f, "message type {kind} is not of this version"),
            Self::TooLarge { bytes, limit } => {
                write!(f, "a message of {bytes} bytes is over the limit of {limit}")
            }
            Self::TooMuchBuffered { limit } => {
                write!(f, "more than {limit} bytes of messages are unfinished")
            }
            Self::TooManyFragmented { limit } => {
                write!(f, "more than {limit} messages are in fragments at once")
            }
            Self::UnexpectedFragment => f.write_str("a fragment that continues nothing"),
            Self::Short => f.write_str("a message shorter than its fixed fields"),
            Self::FragmentedTwice(id) => write!(f, "request {id} is in fragments already"),
        }
    }
}

impl core::error::Error for FrameError {}

/// A message whose content is not what its type promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageError {
    /// What was being read.
    pub what: &'static str,
    /// Where, in bytes from the start of the message or encapsulation.
    pub offset: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It goes beyond the end.
    Short,
    /// It is larger than allowed.
    OverLimit,
    /// Its value has no meaning.
    Value,
    /// A string without its terminating zero octet.
    Unterminated,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = match self.fault {
            Fault::Short => "goes beyond the end",
            Fault::OverLimit => "is larger than allowed",
            Fault::Value => "has no valid value",
            Fault::Unterminated => "has no terminating zero",
        };
        write!(f, "{} at byte {} {fault}", self.what, self.offset)
    }
}

impl core::error::Error for MessageError {}
