//! What a rise of each number means, and what to do then.
//!
//! Invariant: a row for every number of a status, and for nothing else; `page` refuses both.

/// What kind of number it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It grows from the start of the process, whose end sets it to zero: look at its rate.
    Counter,
    /// It is as it is now.
    Gauge,
    /// A name that happens to be a number.
    Name,
}

/// One number, by its path in the status.
pub(super) struct Row {
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    /// What it means when it rises.
    pub(super) rise: &'static str,
    /// What to do then.
    pub(super) then: &'static str,
}

const fn counter(path: &'static str, rise: &'static str, then: &'static str) -> Row {
    Row { path, kind: Kind::Counter, rise, then }
}

const fn gauge(path: &'static str, rise: &'static str, then: &'static str) -> Row {
    Row { path, kind: Kind::Gauge, rise, then }
}

const fn name(path: &'static str) -> Row {
    Row { path, kind: Kind::Name, rise: "", then: "" }
}

const NOTHING: &str = "nothing";
const DIFFER: &str = "`quorba group doctor` finds the operation \
                      ([determinism](../determinism.md))";
const STUCK: &str = "look at what the server waits for; `abandon_ms` and `server_reply_ms` say \
                     when Quorba ends it ([odd requests](../odd-requests.md))";
const STATE: &str = "read the server's log and mend its state object \
                     ([recovery](../recovery.md))";
const ENDED: &str = "`quorba events show` with the channel names the last ones, with the reasons";
const CONSUMER: &str = "`quorba events show` with the channel says which; `slowest` has the \
                        consumer for which most waits ([events](../how-to/events.md))";
const LIMITS: &str = "find the client in the node's log; [limits](../limits.md) has the keys";

pub(super) const ROWS: &[Row] = &[
    name("pid"),
    gauge("uptime_ms", "the node runs; a fall means that it was started again", NOTHING),
    gauge(
        "ring.view_seq",
        "the ring was formed again: a node came or went",
        "if it rises often, look at the network of the node that the logs name",
    ),
    gauge(
        "ring.memory_lost_ms",
        "only time passes; that it is there means that groups which are not durable began anew",
        "restore them from a backup ([backups](../how-to/backups.md))",
    ),
    gauge(
        "ring.rotation_us",
        "nodes or the network are slower, or more is sent",
        "compare it with `cpu_ms` of each node and `ring.retransmits`: a node is busy, or a link \
         loses messages",
    ),
    gauge(
        "ring.exchange_us",
        "as with `ring.rotation_us`; every call takes longer by as much",
        "the same",
    ),
    counter("ring.token_visits", "the ring works; its rate is that of rotations", NOTHING),
    counter("ring.delivered", "load: requests, replies and what members tell each other", NOTHING),
    counter(
        "ring.retransmits",
        "messages get lost on the network, or in a receiver's full buffer",
        "some are harmless; if it keeps pace with `ring.delivered`, look at cables, switch ports \
         and the CPU of the nodes",
    ),
    counter(
        "ring.view_changes",
        "as with `ring.view_seq`; calls wait at each for some milliseconds",
        "the same",
    ),
    gauge(
        "nodes[].since_ms",
        "the node is still out of the view",
        "do what `quorba status` says of it ([health](../how-to/health.md))",
    ),
    gauge(
        "nodes[].refused.since_ms",
        "datagrams of this node are still refused: another key, file or version",
        "`quorba explain` with the code beside it",
    ),
    gauge(
        "nodes[].clock_ahead_ms",
        "the two clocks drift apart; a promise does not depend on it",
        "set the clocks by NTP: ordered time follows the clock that is ahead",
    ),
    gauge(
        "nodes[].link_queued_bytes",
        "states are sent to it faster than it, or the network, takes them",
        "nothing for as long as a state is under way; else look at that node",
    ),
    gauge(
        "groups[].logged",
        "in a passive style checkpoints do not come; in others the server falls behind",
        "look at `groups[].state_refused`, and at the server's log",
    ),
    counter(
        "groups[].reference_version",
        "references to the group became others: it was changed, or the nodes have other hosts",
        "nothing; clients that know FT-CORBA are told, others keep theirs as long as it leads to \
         a gateway",
    ),
    counter("groups[].executed", "load", NOTHING),
    counter("groups[].served", "load of the server on this node", NOTHING),
    counter(
        "groups[].served_us",
        "load; divided by `groups[].served` it is how long the server takes for a request",
        "if that rises, the server is slower: profile it, or let the group have more `concurrency`",
    ),
    counter(
        "groups[].callers[].requests",
        "load, by the gateway that took it in",
        "spread the clients, or put the leader where most of them are \
         ([styles](../styles.md))",
    ),
    gauge(
        "groups[].members[].since_ms",
        "the member is still not in",
        "do what `quorba status` says of it; `reason` stands beside it",
    ),
    name("groups[].server.pid"),
    name("groups[].server.port"),
    counter(
        "groups[].server.restarts",
        "the server process ends, or hangs and is ended",
        "read `log` beside it; after too many it is quarantined",
    ),
    gauge(
        "groups[].server.since_ms",
        "the server stays as `state` says; in `starting` or `down` that is bad",
        "read `reason` beside it",
    ),
    counter(
        "groups[].server.reconnects",
        "the server closes its connection or loses it, and lives",
        "see whether its ORB closes idle or busy connections",
    ),
    counter(
        "groups[].server.dropped",
        "the server answers what nobody asked, or answers twice",
        "tell who maintains the server or its ORB; clients see nothing of it",
    ),
    counter(
        "groups[].server.refused_calls",
        "the server calls back over its node's connection, which is refused",
        "callbacks go by references of their own \
         ([not supported](../explanation/not-supported.md))",
    ),
    gauge(
        "groups[].server.closes",
        "the server closes its connection at the same call again and again",
        STUCK,
    ),
    counter(
        "groups[].server.output_left_out_bytes",
        "the server prints too much, or the disk is full",
        "make room, or let it print less",
    ),
    gauge(
        "groups[].server.scheduling.wanted_priority",
        "the domain file wants another `real_time_priority` of `[service.events]`",
        NOTHING,
    ),
    gauge(
        "groups[].server.scheduling.real_time_priority",
        "the threads that pass events on have it; 0 where another one is wanted: the system does \
         not permit it",
        "give the node CAP_SYS_NICE, or RLIMIT_RTPRIO (systemd: `LimitRTPRIO=`) \
         ([events](../how-to/events.md#real-time))",
    ),
    gauge(
        "groups[].connections",
        "more clients, or clients that do not close connections",
        "below the limits nothing ([limits](../limits.md))",
    ),
    gauge(
        "groups[].pending",
        "requests come in faster than they are executed, or the domain does not serve",
        "look at `groups[].served_us`, at the server, and at `quorba status`",
    ),
    counter("groups[].requests", "load of this node's gateway", NOTHING),
    counter("groups[].reads", "load that costs no place in the order", NOTHING),
    counter("groups[].reads_executed", "load of this node's server by reads", NOTHING),
    counter(
        "groups[].read_marks",
        "load; the fewer marks there are to a read, the cheaper reads are",
        NOTHING,
    ),
    counter(
        "groups[].replies",
        "load; with oneways it stays behind `groups[].requests`",
        "if it stands still and `groups[].pending` rises, nobody answers: `quorba status`",
    ),
    counter(
        "groups[].replies_sent",
        "replies for clients of other nodes' gateways, and for those of this node's where another \
         member's came first",
        NOTHING,
    ),
    counter("groups[].replies_suppressed", "messages that were spared", NOTHING),
    counter("groups[].replies_dropped", "messages that could have been spared", NOTHING),
    counter(
        "groups[].duplicates",
        "clients or gateways repeat requests: a node or a network failed, or a time limit of \
         clients is too short",
        "compare the clients' time limit with how long calls take \
         ([retention](../explanation/retention.md))",
    ),
    gauge(
        "groups[].retained",
        "more calls of named clients within the time for which replies are retained",
        "nothing below the limits ([retention](../explanation/retention.md))",
    ),
    gauge("groups[].retained_bytes", "the same, in memory", "the same"),
    counter(
        "groups[].refused",
        "the domain does not serve, or a client meets a limit; clients see TRANSIENT",
        "`quorba status` says whether all is well; if it is, [limits](../limits.md)",
    ),
    counter(
        "groups[].malformed",
        "a client sends what is no GIOP, or a port scanner comes",
        LIMITS,
    ),
    gauge("groups[].transfers[].done_bytes", "the state arrives; if it stands, it does not", STATE),
    gauge(
        "groups[].transfers[].total_bytes",
        "states are larger, and take longer to move",
        "with large states, see [transfer](../performance/transfer.md)",
    ),
    gauge(
        "groups[].last_catch_up.bytes",
        "states, or what a member missed, are larger than the last time",
        NOTHING,
    ),
    counter("groups[].calls.made", "load of the servers behind this group", NOTHING),
    counter(
        "groups[].calls.refused",
        "servers call in a circle, or call groups of which no member is in",
        "read [nested calls](../nested.md)",
    ),
    counter("groups[].calls.differing", "the replicas of this group do different things", DIFFER),
    counter(
        "groups[].calls.void",
        "the server calls groups from a thread of its own, outside of any request",
        "such calls are refused: see [nested calls](../nested.md)",
    ),
    counter(
        "groups[].identities.taken",
        "two clients use the same client id, or one uses a retention id for two calls",
        "give each client an id of its own",
    ),
    counter(
        "groups[].identities.no_room",
        "clients name more calls than may be remembered",
        "let them name fewer, or for a shorter time \
         ([retention](../explanation/retention.md))",
    ),
    name("groups[].ended[].number"),
    gauge("groups[].ended[].bytes", "the request that ended so was larger", STUCK),
    name("groups[].ends_behind.number"),
    gauge("groups[].ends_behind.bytes", "the last answered request was larger", NOTHING),
    gauge(
        "groups[].ends_behind.ends",
        "one request makes every server process end after it has answered",
        "read the servers' logs of that request ([odd requests](../odd-requests.md))",
    ),
    name("groups[].stuck[].number"),
    gauge("groups[].stuck[].bytes", "the request is larger than another one", NOTHING),
    gauge("groups[].stuck[].since_ms", "the server is still at the request", STUCK),
    name("groups[].waiting[].number"),
    gauge("groups[].waiting[].bytes", "the request is larger than another one", NOTHING),
    gauge(
        "groups[].longest_wait.since_ms",
        "a client still waits for its reply",
        "see `groups[].stuck` of all nodes, and `quorba status`",
    ),
    name("groups[].may_differ"),
    gauge(
        "groups[].may_differ_ms",
        "the members' states may still differ",
        "do what `quorba status` says: compare states, or bring members back",
    ),
    name("groups[].differ.first_request"),
    name("groups[].differ.request"),
    counter("groups[].differ.times", "replicas do different things, again and again", DIFFER),
    gauge("groups[].differ.since_ms", "the members that differ have not been made equal", DIFFER),
    gauge("groups[].state_refused.times", "the server does not give its state", STATE),
    name("groups[].state_refused.minor"),
    gauge("groups[].state_refused.bytes", "the last state that it gave was larger", STATE),
    counter(
        "groups[].references[].times",
        "clients get references past the gateways: their calls are executed at one replica only",
        "let the server publish the gateway's address (the page of its ORB, below how-to)",
    ),
    gauge("groups[].references[].since_ms", "it was not mended yet", "the same"),
    name("groups[].reference_keys[].request"),
    name("groups[].reference_keys[].digest"),
    gauge("groups[].reference_keys[].since_ms", "the server has returned no others", NOTHING),
    gauge("groups[].state_not_taken.times", "the server does not take another one's state", STATE),
    name("groups[].state_not_taken.minor"),
    gauge("groups[].state_not_taken.bytes", "the state that it was to take was larger", STATE),
    gauge("groups[].channels[].consumers", "consumers come, or leave without a word", NOTHING),
    gauge("groups[].channels[].suppliers", "suppliers come, or leave without a word", NOTHING),
    counter("groups[].channels[].pushed", "load of the channel", NOTHING),
    counter(
        "groups[].channels[].refused",
        "a consumer is too slow for its queue, or a supplier pushes what is too large, which the \
         log of the leader's server says",
        CONSUMER,
    ),
    gauge("groups[].channels[].refused_ms", "only time passes: nothing is refused", NOTHING),
    counter(
        "groups[].channels[].left_out",
        "decisions of the channel could not be ordered",
        "read the log of the leader's server; `quorba status` shows whether the group works",
    ),
    gauge("groups[].channels[].left_out_ms", "only time passes: all is ordered", NOTHING),
    counter("groups[].channels[].delivered", "consumers get events", NOTHING),
    counter("groups[].channels[].dropped", "a consumer is too slow, and misses events", CONSUMER),
    gauge("groups[].channels[].dropped_ms", "only time passes: nothing is dropped", NOTHING),
    counter(
        "groups[].channels[].failed",
        "consumers cannot be called; each is given up after `give_up_ms`",
        "`quorba events show` names them; look at their hosts, and at firewalls between",
    ),
    gauge("groups[].channels[].waiting", "consumers are slower than suppliers", CONSUMER),
    gauge("groups[].channels[].waiting_bytes", "the same, in bytes", CONSUMER),
    gauge("groups[].channels[].slowest.waiting", "this consumer is too slow", CONSUMER),
    counter(
        "groups[].channels[].ended_too_slow",
        "consumers are disconnected: more waits for them than may",
        ENDED,
    ),
    counter(
        "groups[].channels[].ended_holding",
        "consumers are disconnected: what their conjunctions wait for does not come",
        ENDED,
    ),
    counter(
        "groups[].channels[].ended_too_large",
        "suppliers are disconnected: they gave events of more than 4 MiB",
        ENDED,
    ),
    counter(
        "groups[].channels[].ended_gone",
        "clients end without a word, or cannot be called for `give_up_ms`",
        ENDED,
    ),
    counter(
        "groups[].channels[].ended_raises",
        "clients have answered each call by an exception for `give_up_ms`: see their own logs",
        ENDED,
    ),
    counter(
        "cpu_ms",
        "load; at 1000 a second one core is full, and calls wait",
        "move clients to other nodes' gateways, or give the node a core of its own",
    ),
    gauge(
        "rss_bytes",
        "more connections, retained replies, logged requests, or states under way",
        "see which of these rose; [limits](../limits.md) bounds what clients may cost",
    ),
    gauge("call_timings.rotation_us", "the ring is slower", "as with `ring.rotation_us`"),
    gauge("call_timings.message_us", "messages are larger, or a node is busy", NOTHING),
    gauge("call_timings.client_us[]", "clients pause for longer between two calls", NOTHING),
    gauge(
        "call_timings.servers_us[][]",
        "the server takes longer for a request",
        "as with `groups[].served_us`",
    ),
    gauge(
        "log.waits_ms",
        "the log still cannot be written: durable groups answer nothing",
        "read `waits` beside it: make room, or mend the disk ([durable](../durable.md))",
    ),
];
