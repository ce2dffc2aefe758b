//! The kinds of faults that a plan can mix.

/// One kind. What exactly happens is drawn when it happens; see `nemesis`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fault {
    // -- network --
    /// Two sides do not hear each other.
    Partition,
    /// One node is cut off.
    Isolate,
    /// One direction of one link is cut.
    OneWay,
    /// One link is cut in both directions: the network is not transitive any more.
    Link,
    /// The network is whole again.
    Heal,
    /// For a moment most datagrams are lost.
    LossBurst,
    /// One link becomes slow in one direction.
    SlowLink,
    /// Old datagrams come once more.
    Replay,
    /// Datagrams that nobody sent.
    Forged,
    // -- nodes --
    /// The node's process ends; its kernel tells its peers.
    Crash,
    /// The host loses power; nobody is told.
    PowerCut,
    /// The process ends between two of its effects.
    CrashMidway,
    /// The process is ended and started again at once.
    QuickRestart,
    /// A majority of nodes ends at once.
    MajorityCrash,
    /// Every node ends at once.
    Blackout,
    /// The node is asked to stop, and started again later.
    GracefulStop,
    /// The process stands still for a moment.
    PauseShort,
    /// The process stands still for long enough to be given up.
    PauseLong,
    /// Everything takes the node longer.
    SlowNode,
    /// The node's clock jumps ahead.
    ClockJump,
    // -- servers --
    /// A server process ends.
    ServerCrash,
    /// All servers of a group but one end.
    ServersCrash,
    /// A server does not answer any more.
    ServerHang,
    /// A server takes long.
    ServerSlow,
    /// A server resets its connections but lives on.
    ServerReset,
    /// A server closes its connections as GIOP wants it.
    ServerGoodbye,
    /// A server answers with something that is no GIOP.
    ServerGarbage,
    /// A server's next `get_state` or `set_state` raises an exception.
    ServerNoState,
    // -- clients --
    /// A client's connection breaks.
    ClientBreak,
    /// A client closes its connection in the middle of a message.
    ClientHalf,
    /// A client cancels what it waits for.
    ClientCancel,
    /// Somebody sends what is no GIOP to a gateway.
    ClientGarbage,
    /// Nothing passes between clients and one node for a while.
    ClientStall,
}

impl Fault {
    pub(crate) const ALL: &'static [Self] = &[
        Self::Partition,
        Self::Isolate,
        Self::OneWay,
        Self::Link,
        Self::Heal,
        Self::LossBurst,
        Self::SlowLink,
        Self::Replay,
        Self::Forged,
        Self::Crash,
        Self::PowerCut,
        Self::CrashMidway,
        Self::QuickRestart,
        Self::MajorityCrash,
        Self::Blackout,
        Self::GracefulStop,
        Self::PauseShort,
        Self::PauseLong,
        Self::SlowNode,
        Self::ClockJump,
        Self::ServerCrash,
        Self::ServersCrash,
        Self::ServerHang,
        Self::ServerSlow,
        Self::ServerReset,
        Self::ServerGoodbye,
        Self::ServerGarbage,
        Self::ServerNoState,
        Self::ClientBreak,
        Self::ClientHalf,
        Self::ClientCancel,
        Self::ClientGarbage,
        Self::ClientStall,
    ];

    /// Whether it takes the memory of more than a minority.
    pub(crate) fn needs_catastrophe(self) -> bool {
        matches!(self, Self::MajorityCrash | Self::Blackout)
    }
}
