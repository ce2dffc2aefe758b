//! Classic bugs that can be planted, to show that the simulator finds such.
//!
//! What it is not: part of any build but the simulator's own test of its checkers. Without the
//! feature `canaries`, which nothing enables by default, this module does not exist and
//! [`canary!`](crate::canary) is the constant `false`. Invariant: at most one is planted.

use core::sync::atomic::{AtomicUsize, Ordering};

macro_rules! bugs {
    ($($(#[$doc:meta])+ $bug:ident,)+) => {
        /// One bug. Each is a mistake that somebody made once, here or elsewhere.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Canary {
            $($(#[$doc])+ $bug,)+
        }

        impl Canary {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$bug,)+];
        }
    };
}

bugs! {
    // -- order: packets and tokens --
    /// A missing packet is skipped at delivery.
    DeliversAcrossGap,
    /// A safe message is delivered as soon as an agreed one would be.
    SafeIsOnlyAgreed,
    /// A node reports the highest packet that it has, gaps or not.
    ReportsHighAsAru,
    /// A node acknowledges a packet although it lacks one before it.
    AcknowledgesAcrossGap,
    /// A token that comes once more is taken for a new one.
    TakesOldTokens,
    /// The token that rests here stays here when it is passed on.
    KeepsRestingToken,
    /// Packets are forgotten when they are delivered here, not when all have them.
    ForgetsUnstable,
    /// A message is called held when all of a majority but one have it.
    HeldWithoutMajority,
    // -- order: membership and recovery --
    /// A node that said it has everything forgets that when recovery fails.
    ForgetsObligation,
    /// What is left of the old ring is dropped at the installation.
    DropsRestOfOldRing,
    /// Behind a gap the messages of everybody are delivered.
    DeliversBehindGapFromAll,
    /// Members of other old rings count as moving together.
    MovesWithStrangers,
    /// What others lack of the old ring is not sent to them.
    RecoversNothing,
    /// The new ring is installed before everyone has what was recovered.
    InstallsTooEarly,
    /// Safe messages of the old ring are delivered as if all had them.
    SafeRestIsRegular,
    /// An attempt that failed leaves its ring number to the next one, whose tokens look the same.
    ReusesRingNumbers,
    /// Packets of the old ring are taken in after the node has said where it stands in it.
    HearsOldRingInCommit,
    /// A Join from before the sender was in this ring starts a new one.
    HeedsStaleJoins,
    /// Ring numbers are not written to the disk.
    ForgetsRingNumbers,
    /// A message that was sent in part goes on in the new ring.
    ResumesPartialMessage,
    // -- order: who is left out for poor links --
    /// Of two ends of a bad link the one goes that the other blames.
    BlamesTheBlamed,
    /// Nodes are left out although those that remain are no majority.
    LeavesOutMajority,
    /// A node is left out although the others' links are as poor.
    ComparesNoLinks,
    /// A node is kept out although the others are no majority without it.
    KeepsOutTheNeeded,
    /// A node whose links are poor is kept.
    KeepsPoorLinks,
    // -- replica --
    /// What was executed is not told to a member that joins.
    RetentionStaysHome,
    /// What was executed is noted for a joiner when its state is taken, not when it joined.
    FreezesLate,
    /// Requests expire by the clock of whatever gateway speaks.
    ExpiresByAnyClock,
    /// No request with a name is ever forgotten.
    ForgetsNothing,
    /// Requests with a name are forgotten long before their time.
    ForgetsEarly,
    /// What a gateway has ordered before is new when the name of it is forgotten.
    ForgetsSubmitted,
    /// A joiner leaves out the first request behind its state.
    ReplaysOffByOne,
    /// The state is taken before the requests that were delivered before.
    CaptureOvertakes,
    /// The state is taken while other calls are with the server.
    CaptureAmongCalls,
    /// Calls of one object run side by side.
    IgnoresObjects,
    /// A repeated request is executed again.
    ExecutesRepetitions,
    /// Who missed requests is not given the first of them, and does not notice.
    PassesOffByOne,
    /// A client's own name for its request is ignored.
    IgnoresClientNames,
    /// At a view change everything that was executed is forgotten.
    ForgetsAtTakeover,
    /// Two boots of a gateway use the same names for requests.
    ReusesNamesAfterBoot,
    /// Half of the nodes are called a majority.
    HalfIsMajority,
    /// The oldest primary component that somebody remembers decides, not the last one.
    OldestComponentDecides,
    /// What disks know of a component that nobody present remembers is ignored.
    ForgetsLaterComponents,
    /// A restarted node is believed to remember.
    BelievesTheReborn,
    /// A node that was behind keeps its own group tables.
    KeepsOwnTables,
    /// Under the dynamic rule a component is formed before all have written it down.
    FormsUnrecorded,
    /// A member that lacks the last requests is let in.
    AdmitsStaleMember,
    /// A member that had executed more when it was cut off takes the group with it, whoever is in.
    AheadOfOthers,
    /// A member that came back says that it has executed everything while it still executes.
    ClaimsWhileBusy,
    /// A member that fell behind answers with what its server still executed.
    AbandonedCallCounts,
    /// Messages that did not count are not sent again.
    LostStaysLost,
    /// A joiner takes any part of a state, whatever it is a part of, and compares no digest.
    TakesAnyChunk,
    // -- styles: found in scope `styles` --
    /// A reply that has to be voted on goes out at once.
    AnswersBeforeVote,
    /// Whether there is room for a client's request is asked of the own memory.
    FullByItself,
    /// Checkpoints leave out the replies.
    CheckpointsWithoutReplies,
    /// What has changed since a checkpoint is taken by members that have not seen that one.
    UpdatesAnything,
    /// A member that comes back with an earlier state is given the last update, whatever it lacks.
    UpdatesFromAnywhere,
    /// It is not given the first of the updates that it lacks.
    UpdatesSkipOne,
    /// The update of a leader that has given its state to a joiner is taken for one that goes on
    /// from the last checkpoint.
    JoinSplitsUpdates,
    /// A joiner compares no digest.
    IgnoresStateDigest,
    /// What was written to a log is believed to be what is read.
    IgnoresRecordChecksum,
    /// A member that takes over leaves out the first request of its log.
    ReplaysLogOffByOne,
    /// A new leader does not replay its log.
    TakesOverWithoutLog,
    /// A server is ended although nobody else knows what it does.
    StopsTooEarly,
    /// A request of a durable group is said to be on disk before it is.
    RepliesBeforeLogged,
    /// What a log has counts as memory for groups that are not durable, too.
    DisksAreMemory,
    /// A read of a durable group tells of what is not on disk yet.
    ReadsBeforeLogged,
    /// The beginning of the log is given up without what replaces it.
    ShortensTooEarly,
    /// A log snapshot of a member leaves out the requests that it has not executed.
    ImagesLackRequests,
    /// The record from which a compacted log goes on is counted as a message.
    CutsAreMessages,
    /// A durable group that nobody is in goes on from the first disk that has anything.
    RevivesTooEarly,
    /// A disk that lost a checkpoint is taken for one that has all that it had.
    SpoiltDisksSpeak,
    /// A read is answered before a majority holds the mark behind which it was executed.
    ReadsBeforeMarkIsHeld,
    /// A member that is not in executes reads.
    ReadsOutside,
    /// A node that comes back is not told who was removed.
    ForgetsTheRemoved,
    /// Nor what time servers were told.
    ForgetsToldTime,
    // -- engine --
    /// A reply is released before a majority holds its request.
    RepliesBeforeHeld,
    /// A call is refused as not executed although it was ordered.
    RefusesWhatWasOrdered,
    /// A reply is released before so many members have executed its request as its caller wants.
    RepliesBeforeDepth,
    // -- calls between groups --
    /// Calls of replicated servers are told apart by their gateways, like those of clients.
    CallsHaveNoName,
    /// A call that closes a cycle waits with the others.
    CyclesStay,
    /// All calls of one request have one name.
    CallsAreNotCounted,
    /// A call counts although the member that made it does not.
    VoidCallsCount,
    /// What a server calls whose member is in again counts as another call than before.
    HeldCallsAreNewCalls,
    /// What calls were answered is forgotten while a member may make them again.
    ForgetsCallsEarly,
    /// A call to the outside is made before a majority holds it.
    OutsideCallsAtOnce,
    /// A call to the outside whose node is gone is made again, whatever was asked for.
    OutsideForgetsDoubt,
    /// A reply from outside is given to a server before a majority holds it.
    OutsideAnswersEarly,
    /// Who was away is not told what came of calls to the outside.
    OutsideRepliesStayHome,
    /// A read that closes a cycle is served by a member that has not come to where it is asked.
    BesideBeforeItsTurn,
    // -- replica: backups --
    /// The update of a server that has given its state for a backup is taken for one that goes on
    /// from the last checkpoint.
    BackupSplitsUpdates,
    /// A group that is restored from a backup does not know what clients may repeat.
    RestoreForgetsRequests,
    /// Members go on with what they have where their group is restored from a backup.
    RestoreKeepsOthers,
    /// A backup counts before a majority holds its place.
    BackupBeforeHeld,
    /// An operator is told that a durable group was restored before that is on disk.
    RestoresBeforeLogged,
    /// The end of a process is not counted for the request that it was at.
    ForgetsProcessEnds,
    /// A request that ended server processes is executed again.
    ExecutesPoison,
    /// A connection to a server is made again without a pause.
    NoPauses,
    /// A call past the order is tried at every member, however many servers end at it.
    TriesForEver,
    /// A member whose server did not reply is at fault, whatever the others' servers did.
    OddIsFault,
    /// Who is given the group's tables is not told how requests have ended.
    EndsStayHome,
    // -- groups that come and go --
    /// A change of the catalog is answered before other disks have it.
    CreatesBeforeSaved,
    /// An operation that comes once more is carried out once more.
    ForgetsOperations,
    // -- the event service --
    /// A push with numbers leaves before the group holds its events.
    PushesUnheldNumbers,
    /// A supplier is pulled again before the group has its last event.
    PullsBeforeHeld,
    /// What was pulled is forgotten when another member leads.
    ForgetsWhatWasPulled,
    /// What a consumer did not take counts as taken.
    TakesFailedForTaken,
    /// A consumer that pulls through another gateway is not given again what it may have missed.
    GivesNothingAgain,
    /// Events are offered to everybody, whatever they want.
    IgnoresFilters,
    /// What a consumer has taken is pushed to it once more.
    PushesTwice,
    /// An event is put before the one that came last.
    PutsNewFirst,
    /// What waits for consumers is not part of the state that a member is given.
    LosesQueuesInTransfer,
    /// Which parts of a conjunction have come is not forgotten when it has passed.
    KeepsMarks,
    /// Where no events are kept, a consumer that pulls leaves the event where it is.
    LeavesWhatIsPulled,
    // -- the fault notifier --
    /// What consumers took of one state counts for another one that a member was given, too.
    BelievesBookOfOtherState,
    /// A report that its consumer did not take counts as taken.
    TakesRefusedReports,
    /// A report that a consumer has taken is pushed to it until the group knows it.
    PushesUntilSaid,
    /// That a consumer takes something does not end its failing.
    ForgivesNothing,
    /// Objects of a node that is dead are reported beside it.
    ReportsObjectsOfTheDead,
    /// Who is given the state is not told what waits for consumers.
    LosesReportsInTransfer,
    /// The report that came last is given first.
    GivesLastReportFirst,
    /// Who is slow is cut off, and who is connected next with it.
    CutsOffTheNext,
    // -- the replication manager --
    /// What could not be written down is acknowledged.
    AcknowledgesUnsaved,
    /// A group that a repair has changed is the version that it was.
    RepairsUnversioned,
    /// Groups that the application looks after are repaired.
    RepairsForApplications,
    /// Who was reported goes, however few are left.
    TakesOutTheLast,
    /// Objects of a creation that failed stay.
    LeavesObjects,
    /// A group whose definition failed halfway is not removed.
    LeavesGroups,
    /// A manager without memory reads the first page of groups.
    RemembersOnePage,
    /// It takes numbers that were reserved for others before it.
    ForgetsReserved,
    /// Who is given the state is not told what is to be removed.
    LosesGarbageInTransfer,
    /// The domain is not asked for types by a replica that has heard an object.
    AsksByHearsay,
}

static PLANTED: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Plants a bug in every node of this process, or none.
pub fn plant(canary: Option<Canary>) {
    PLANTED.store(canary.map_or(usize::MAX, |canary| canary as usize), Ordering::Relaxed);
}

/// Whether this bug is planted.
#[must_use]
pub fn is_planted(canary: Canary) -> bool {
    PLANTED.load(Ordering::Relaxed) == canary as usize
}
