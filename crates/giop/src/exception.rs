//! System exceptions (CORBA §4.12) and Quorba's own minor codes.

use crate::cdr::{Reader, Writer};
use crate::error::MessageError;
use core::fmt;

/// The first 20 bits of Quorba's minor codes: "QB" and a zero nibble. The OMG assigns such ids;
/// this one is not registered, and only has to differ from those of ORBs in use.
pub const QUORBA_VMCID: u32 = 0x5142_0000;

/// Whether the operation was executed when the exception was raised.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Completion {
    /// It was.
    Yes,
    /// It was not, and never will be.
    No,
    /// Nobody can say.
    Maybe,
}

impl Completion {
    const fn number(self) -> u32 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
            Self::Maybe => 2,
        }
    }
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "COMPLETED_YES",
            Self::No => "COMPLETED_NO",
            Self::Maybe => "COMPLETED_MAYBE",
        })
    }
}

macro_rules! exception_kinds {
    ($($variant:ident $name:literal)*) => {
        /// The standard system exceptions.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum ExceptionKind {
            $(#[doc = $name] $variant,)*
            /// One that is not standard; some ORBs have their own.
            Other,
        }

        impl ExceptionKind {
            /// All standard ones.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name, as in `IDL:omg.org/CORBA/NAME:1.0`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other => "UNKNOWN",
                }
            }
        }
    };
}

exception_kinds! {
    Unknown "UNKNOWN" BadParam "BAD_PARAM" NoMemory "NO_MEMORY" ImpLimit "IMP_LIMIT"
    CommFailure "COMM_FAILURE" InvObjref "INV_OBJREF" NoPermission "NO_PERMISSION"
    Internal "INTERNAL" Marshal "MARSHAL" Initialize "INITIALIZE"
    NoImplement "NO_IMPLEMENT" BadTypecode "BAD_TYPECODE" BadOperation "BAD_OPERATION"
    NoResources "NO_RESOURCES" NoResponse "NO_RESPONSE" PersistStore "PERSIST_STORE"
    BadInvOrder "BAD_INV_ORDER" Transient "TRANSIENT" FreeMem "FREE_MEM"
    InvIdent "INV_IDENT" InvFlag "INV_FLAG" IntfRepos "INTF_REPOS" BadContext "BAD_CONTEXT"
    ObjAdapter "OBJ_ADAPTER" DataConversion "DATA_CONVERSION"
    ObjectNotExist "OBJECT_NOT_EXIST" TransactionRequired "TRANSACTION_REQUIRED"
    TransactionRolledback "TRANSACTION_ROLLEDBACK" InvalidTransaction "INVALID_TRANSACTION"
    InvPolicy "INV_POLICY" CodesetIncompatible "CODESET_INCOMPATIBLE" Rebind "REBIND"
    Timeout "TIMEOUT" TransactionUnavailable "TRANSACTION_UNAVAILABLE"
    TransactionMode "TRANSACTION_MODE" BadQos "BAD_QOS"
    InvalidActivity "INVALID_ACTIVITY" ActivityCompleted "ACTIVITY_COMPLETED"
    ActivityRequired "ACTIVITY_REQUIRED"
}

/// Bytes of a repository id that are looked at.
const ID_BYTES_MAX: usize = 1024;
const PREFIX: &[u8] = b"IDL:omg.org/CORBA/";
const SUFFIX: &[u8] = b":1.0";

/// A system exception.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SystemException {
    /// Which.
    pub kind: ExceptionKind,
    /// Vendor and detail.
    pub minor: u32,
    /// Whether the operation was executed.
    pub completed: Completion,
}

impl SystemException {
    /// One of Quorba's own.
    #[must_use]
    pub const fn ours(kind: ExceptionKind, code: MinorCode, completed: Completion) -> Self {
        Self { kind, minor: QUORBA_VMCID | code.number(), completed }
    }

    /// Reads the body of a reply that raises one.
    ///
    /// # Errors
    /// If it is no such body.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, MessageError> {
        let id = reader.read_string(ID_BYTES_MAX, "exception id")?;
        let name = id.strip_prefix(PREFIX).and_then(|id| id.strip_suffix(SUFFIX));
        let kind = ExceptionKind::ALL
            .iter()
            .find(|kind| Some(kind.name().as_bytes()) == name)
            .copied()
            .unwrap_or(ExceptionKind::Other);
        let minor = reader.read_u32("minor code")?;
        let completed = match reader.read_u32("completion status")? {
            0 => Completion::Yes,
            1 => Completion::No,
            // The safe reading of what is out of range.
            _ => Completion::Maybe,
        };
        Ok(Self { kind, minor, completed })
    }

    /// Writes the body of a reply that raises it.
    pub fn write(&self, writer: &mut Writer) {
        let name = self.kind.name().as_bytes();
        let mut id = alloc::vec::Vec::with_capacity(64);
        id.extend_from_slice(PREFIX);
        id.extend_from_slice(name);
        id.extend_from_slice(SUFFIX);
        writer.write_string(&id);
        writer.write_u32(self.minor);
        writer.write_u32(self.completed.number());
    }
}

impl fmt::Display for SystemException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (minor {:#010x}, {})", self.kind.name(), self.minor, self.completed)?;
        match MinorCode::from_minor(self.minor) {
            Some(code) => write!(f, ": {}", code.text()),
            None => Ok(()),
        }
    }
}

macro_rules! minor_codes {
    ($($variant:ident = $number:literal $text:literal)*) => {
        /// Why Quorba raised an exception: the low bits of the minor code.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum MinorCode {
            $(#[doc = $text] $variant,)*
        }

        impl MinorCode {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The number in the low bits.
            #[must_use]
            pub const fn number(self) -> u32 {
                match self { $(Self::$variant => $number,)* }
            }

            /// What it means, for people.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

minor_codes! {
    NoSuchGroup = 15 "the domain has no such group: it was deleted, or never was"
    NoPrimary = 16 "this part of the domain is not a primary component; try another gateway"
    NoMember = 17 "no member of the group is up; try again later"
    GroupStarting = 18 "the group waits for its first members; try again"
    TimedOut = 19 "no reply came in time; the call may have been executed"
    NoRoom = 20 "too many requests are remembered for repetition; try again later"
    Crowded = 21 "the gateway has no room for the request; try again"
    StateIsProtected = 22 "clients may not read or set the state of a group as a whole"
    Rejected = 23 "the server rejected the message as one that it cannot read"
    RequestTooLarge = 24 "the request is larger than what can be put into the common order"
    ReplyTooLarge = 25 "the call was executed; its reply is larger than what can be passed on"
    ReplicasDisagree = 26 "the replicas replied different things, and none of these most of them"
    NoOrderedRequest = 27 "no ordered request is being executed, so there is no ordered time"
    CallCycle = 28 "the call would wait for the request in which it is made: a cycle of groups"
    CalleeGone = 29 "no member of the group that is called was up"
    CallOutsideRequest = 30 "a replicated server may call only while it executes a request"
    TooManyCalls = 31 "the server has made more calls than it may while it executes one request"
    OutsideNotReached = 32 "the server outside takes no connections; the call was not executed"
    OutsideInDoubt = 33 "the server outside has not replied; the call may have been executed"
    OutsideMoved = 34 "the server outside refers to another one, which is not followed"
    CircleUnanswered = 35 "the server that is in a cycle of calls does not answer a read meanwhile"
    MemoryAway = 36 "the group waits for a node that may know acknowledged calls; try again later"
    NoReply = 37 "every server that executed the call ended it without a reply"
    EndsServers = 38 "server processes ended at this call; no server executes it again"
    Skipped = 39 "an operator, or a limit of the group, has given the call up"
    NeverTaken = 40 "the servers closed the connection each time the call was sent to them"
    ContextUnreadable = 41 "a service context of the request is not what its id says it is"
    TargetUnreadable = 42 "the request names no object: its profile or reference has no object key"
    CallbackNotCarried = 43 "a server's calls on its node's connection are not carried to clients"
    OperationUnreadable = 48 "the name of the operation has a zero octet in it"
    ClientNotAllowed = 49 "the group's rules let this client call nothing"
    OperationNotAllowed = 50 "the group's rules do not let this client call this operation"
    IdentityTaken = 51 "another call has this client id and retention id; this one was not executed"
    Forgotten = 52 "the call may have been executed; the group has forgotten what came of it"
    Expired = 53 "the call came long after the time in which its client would repeat it"
    TooManyConnections = 56 "the gateway has too many connections; try another gateway"
    OverBudget = 57 "the client's address holds the most of the gateway's memory; try again later"
    ConsumerFull = 58 "a consumer of the event channel has no room; push again later"
    NothingYet = 59 "the event channel has no event for the consumer yet; pull again"
    DepthNotMet = 60 "fewer members have the call than its caller, or its group, demands"
    GatewaysOnly = 61 "the operation is a question of gateways; clients may not call it"
    ServiceOnly = 62 "the object is for the service's own processes; clients may not call it"
}

impl MinorCode {
    /// Which of Quorba's codes a minor code is, if any.
    #[must_use]
    pub fn from_minor(minor: u32) -> Option<Self> {
        Self::ALL.iter().find(|code| QUORBA_VMCID | code.number() == minor).copied()
    }
}
