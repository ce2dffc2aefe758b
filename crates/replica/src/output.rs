//! What a replica asks of its surroundings: a closed set of effects.

mod event;

pub use self::event::{Event, IdentityFault, Returned};
use crate::messages::backed_up::{Backup, BackupRefused};
use crate::messages::catalog::{CatalogChanged, CatalogRecord, CatalogRefused, Definition};
use crate::messages::command::CommandRefused;
use crate::messages::hello::Record;
use crate::messages::log::LogRecord;
use crate::messages::peer::Lane;
use crate::primary::Blocked;
use crate::table::DownReason;
use crate::table::endings::RequestEnd;
use crate::words::history::History;
use crate::words::ids::{
    Attempt, CallKey, ChannelId, GatewayKey, GroupId, RequestKey, RequestNumber,
};
use crate::words::place::Place;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::NodeId;

/// One effect, by who carries it out; they are to be carried out in the order in which they are
/// polled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// The order does.
    Order(OrderOutput),
    /// This node's gateway does.
    Gateway(GatewayOutput),
    /// The driver does, which gets it as it is.
    Driver(DriverOutput),
    /// Something that people want to know.
    Event(Event),
}

/// What goes to the order, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OrderOutput {
    /// Submit this to the order.
    Submit(Bytes),
    /// A reply to be ordered, which [`Self::Withdraw`] may take back.
    SubmitReply {
        /// Its group.
        group: GroupId,
        /// To which call.
        to: GatewayKey,
        /// The message.
        payload: Bytes,
    },
    /// The last [`Self::SubmitReply`] of this name is needed no more, if it has not left yet;
    /// [`crate::Replica::handle_withdrawn`] wants to be told if it had not.
    Withdraw {
        /// Its group.
        group: GroupId,
        /// To which call.
        to: GatewayKey,
    },
    /// Submit this to the order; when a majority holds it, [`crate::Replica::handle_held`] wants to
    /// be told. After the next view change nobody waits for that.
    SubmitHeld {
        /// Whose operation it is.
        group: GroupId,
        /// The message.
        payload: Bytes,
    },
}

/// What this node's gateway is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GatewayOutput {
    /// The versions of references have risen ([`crate::Catalog::reference_version`]), perhaps
    /// without a change of any definition.
    References,
    /// The reply to a request of this node's gateway; release it when promise 1 holds.
    Reply {
        /// Which group answered.
        group: GroupId,
        /// Which request.
        number: RequestNumber,
        /// The whole GIOP message, under the server's request id; `None` for a oneway.
        giop: Option<Bytes>,
    },
    /// Submit this mark to the order, with the group's guarantee; when it is as safe as the group
    /// asks of a request, [`crate::Replica::handle_mark_safe`] wants to be told. It counts for
    /// nothing after the next view change.
    Mark {
        /// Whose reads wait for it.
        group: GroupId,
        /// Which one; they count up.
        number: u64,
        /// The message.
        payload: Bytes,
    },
    /// The reply to a read, or to a call to a stateless group, of this node's gateway; it may be
    /// released.
    Read {
        /// Which group answered.
        group: GroupId,
        /// Which request.
        number: RequestNumber,
        /// The whole GIOP message, under the server's request id; `None`: nobody has it now, and
        /// it goes the way of any request, from the beginning.
        giop: Option<Bytes>,
        /// Because the process of the server that had it has ended.
        ended: bool,
    },
    /// A server's process had ended while it executed a read, or a call to a stateless group, that
    /// has gone elsewhere since: the member was known to be down before that was.
    ReadEnded {
        /// Which group.
        group: GroupId,
        /// Which request.
        number: RequestNumber,
    },
    /// A request of this node's gateway was delivered while no member was in: this delivery of
    /// it was executed nowhere.
    Dropped {
        /// Its group.
        group: GroupId,
        /// Which request.
        number: RequestNumber,
    },
    /// A request has ended without a reply, and no member is in to say so: whoever waits for it at
    /// this node's gateway is told.
    Ended {
        /// Its group.
        group: GroupId,
        /// Which request.
        key: RequestKey,
        /// How it ended.
        end: RequestEnd,
    },
    /// A request in which servers may have called others is given up: what they wait for at this
    /// node is refused.
    EndCalls {
        /// Whose servers.
        caller: GroupId,
        /// The request.
        during: History,
    },
    /// Call a server outside, as soon as a majority holds this node's copy of the call, and once
    /// for each number of tries; [`crate::Replica::handle_called_outside`] wants to be told what
    /// came of it, also if it cannot be begun.
    CallOutside {
        /// The server.
        target: GroupId,
        /// The call.
        key: CallKey,
        /// So many tries were in doubt before.
        tries: u32,
    },
    /// Submit this call of a local server once more: there is an answer to it, or its member is in
    /// again, or will not be.
    OrderAgain {
        /// Which group, or server outside, is called.
        group: GroupId,
        /// Which request.
        number: RequestNumber,
        /// The try that brought the member in, if that is another one now.
        attempt: Option<Attempt>,
    },
    /// The gateway should submit its unanswered requests again: who answers may have changed.
    Resubmit {
        /// Of this group, or of all.
        group: Option<GroupId>,
    },
    /// So many members have executed this request of this node's gateway as its caller wants
    /// ([`crate::Replica::await_depth`]).
    Executed {
        /// Its group.
        group: GroupId,
        /// Which request.
        number: RequestNumber,
        /// No: so many are not in any more.
        is_short: bool,
    },
    /// A majority has this request of this node's gateway on disk.
    Logged {
        /// Its group, which is durable.
        group: GroupId,
        /// Which request.
        number: RequestNumber,
    },
}

/// What the driver of the node carries out, whatever lies between.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DriverOutput {
    /// Send a message to one node, on the link to it; without one it is dropped. If there is no
    /// room, it is dropped, too, and [`crate::Replica::handle_peer_full`] wants to have it back.
    Peer {
        /// To whom.
        to: NodeId,
        /// How urgent it is.
        lane: Lane,
        /// At most [`crate::PEER_MESSAGE_BYTES_MAX`].
        bytes: Bytes,
    },
    /// Something for the local server of a group.
    Server {
        /// Whose server.
        group: GroupId,
        /// What to do.
        command: ServerCommand,
    },
    /// Write to disk which primary components this node takes part in, before what follows.
    PersistPrimary(Record),
    /// Write this down; [`crate::Replica::handle_catalog_saved`] wants to be told when it is on
    /// disk. Nothing waits for it but what says so. Before the first [`LogOutput::Append`] that
    /// follows is on disk, it must be.
    Catalog(CatalogRecord),
    /// Something for the log.
    Log(LogOutput),
    /// A whole state, which is in use. To free so much takes as long as many tokens: whoever
    /// carries this out holds it until nobody else does.
    FreeLater(Bytes),
    /// There is a group, or it is something else, or it is gone.
    Defined {
        /// Which.
        id: GroupId,
        /// What of the three.
        news: DefinitionNews,
        /// What it is now; none if it is gone.
        definition: Option<Definition>,
        /// The name of the operation that did it; none if the component goes on from it.
        operation: Option<Bytes>,
    },
    /// What became of [`crate::Replica::handle_define`]: it was carried out, at all nodes, and is
    /// on enough disks.
    CatalogChanged {
        /// Its name, as it was given.
        id: u64,
        /// Whose definition it was.
        result: Result<CatalogChanged, CatalogRefused>,
    },
    /// What became of a command of this node's operator.
    Commanded {
        /// Its name, as it was given.
        id: u64,
        /// Whether it was carried out, at all nodes.
        result: Result<(), CommandRefused>,
    },
    /// What became of [`crate::Replica::handle_backup`].
    BackedUp {
        /// Which group.
        group: GroupId,
        /// Its name, as it was given.
        id: u64,
        /// The backup.
        result: Result<Backup, BackupRefused>,
    },
    /// What became of [`crate::Replica::handle_restore`].
    Restored {
        /// Which group.
        group: GroupId,
        /// Its name, as it was given.
        id: u64,
        /// Whether the group has the state of the backup now, at one member at least.
        result: Result<(), BackupRefused>,
    },
}

/// What the log is told. It takes it in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogOutput {
    /// Append this to the log; [`crate::Replica::handle_logged`] wants to be told when it is on
    /// disk. Nothing waits for it but what says so.
    Append(LogRecord),
    /// Keep this state of a group beside the log, to be given back at the next boot if it is the
    /// newest one; [`crate::Replica::handle_saved`] wants to be told when it is on disk.
    Save {
        /// Which group.
        group: GroupId,
        /// The last record whose effect is in it.
        place: Place,
        /// Two parts of one whole; the second one may be large.
        parts: [Bytes; 2],
    },
    /// Nobody is left in this durable group: what does the log have? Wanted is what a start of the
    /// node would find, with everything that was handed out before this;
    /// [`crate::Replica::handle_looked_up`] takes it.
    LookUp {
        /// Which group.
        group: GroupId,
        /// Which look at it, to be said with what is found.
        number: u64,
    },
    /// What stands in the log before this record, counted from the first of this boot, is not
    /// needed any more: all states of this record, or later ones, are on disk. It need not be gone
    /// soon, and the record itself must stay.
    Compact {
        /// The first record that is needed.
        record: u64,
    },
    /// A log that was begun in doubt has what the next boot needs: its word may count from now on,
    /// as soon as [`crate::Replica::handle_log_rebuilt`] is told. Said once.
    Rebuilt,
}

impl From<OrderOutput> for Output {
    fn from(output: OrderOutput) -> Self {
        Self::Order(output)
    }
}

impl From<GatewayOutput> for Output {
    fn from(output: GatewayOutput) -> Self {
        Self::Gateway(output)
    }
}

impl From<DriverOutput> for Output {
    fn from(output: DriverOutput) -> Self {
        Self::Driver(output)
    }
}

impl From<LogOutput> for Output {
    fn from(output: LogOutput) -> Self {
        Self::Driver(DriverOutput::Log(output))
    }
}

/// What became of a definition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefinitionNews {
    /// There is one more.
    Created,
    /// It is something else.
    Changed,
    /// It is no more.
    Deleted,
}

/// Effects on a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerCommand {
    /// Open a connection.
    Connect(ChannelId),
    /// Send bytes.
    Send(ChannelId, Bytes),
    /// Send one message that is too long to be sent in one piece.
    SendAll(ChannelId, Vec<Bytes>),
    /// Close a connection.
    Close(ChannelId),
    /// End the process and start it anew (with back-off).
    Restart(DownReason),
    /// A process is wanted from now on: start one if none runs.
    Start,
    /// None is wanted: end the one that runs.
    Stop,
}

/// Whether a group can take a request now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Availability {
    /// Yes.
    Ready,
    /// It waits for its first members.
    Starting,
    /// This node is in no primary component.
    NoPrimary(Option<Blocked>),
    /// No member is in.
    NoMember,
    /// It is not durable, and waits for a node that is away.
    Waits,
}

/// Where the rooms of this crate put their outputs.
pub(crate) type Outbox = VecDeque<Output>;

/// Wraps server commands for one group.
pub(crate) fn forward(group: GroupId, commands: Vec<ServerCommand>, out: &mut Outbox) {
    // There are none most of the times, and this is asked several times per call.
    if !commands.is_empty() {
        out.extend(
            commands.into_iter().map(|command| DriverOutput::Server { group, command }.into()),
        );
    }
}
