//! What each key is for, for people: a sentence or two. Defaults that the reader works out, and
//! that no number shows, stand here.
//!
//! What it is not: the explanations in `docs/`.

/// By kind of table and key.
pub(super) const TEXTS: &[((&str, &str), &str)] = &[
    (("domain", "id"), "A name for the domain, the same in all files. Required."),
    (("domain", "key_file"), "The file with the domain's key; made by `quorba key new`. Required."),
    (
        ("domain", "quorum"),
        "Who goes on when nodes cannot reach each other: a majority of all nodes, or of the last \
         component.",
    ),
    (("domain", "tie_breaker"), "The node whose half goes on where there are two. Default: none."),
    (("ring", "accelerated"), "The token is passed on before all messages of a visit are sent."),
    (
        ("ring", "datagram_bytes_max"),
        "The largest datagram. Where all nodes are on the loopback interface the default is 60000.",
    ),
    (("ring", "encrypt"), "Datagrams and links are encrypted. They are authenticated in any case."),
    (
        ("ring", "engine"),
        "Who makes the order: the ring of the nodes themselves, or the Corosync cluster that the \
         hosts run; the other keys of the table mean nothing then.",
    ),
    (
        ("ring", "multicast"),
        "How a message reaches all nodes: `auto` takes IP multicast where a probe finds that it \
         works, `off` sends a datagram to each node, and an address such as `239.1.2.3:4701` is \
         used without a probe. Default: `auto`.",
    ),
    (
        ("ring", "token_loss_ms"),
        "Silence after which the token is lost. Default: from the measured rotation.",
    ),
    (
        ("ring", "token_rests"),
        "The token rests while nobody needs it. `false` keeps all nodes busy: for experiments.",
    ),
    (("gateway", "listen"), "The port on every node, before the node's offset. Required."),
    (
        ("limits", "buffered_bytes"),
        "What a node holds for clients: unfinished messages, requests, replies that are not sent.",
    ),
    (
        ("limits", "buffered_bytes_per_group"),
        "The same for requests to one group. Default: half of it.",
    ),
    (
        ("limits", "buffered_bytes_per_peer"),
        "The same for one client address. Default: a quarter of it.",
    ),
    (("limits", "connections"), "Connections of clients to a node."),
    (("limits", "connections_per_peer"), "The same from one address."),
    (("limits", "header_ms"), "Time in which a message that has begun must be complete."),
    (
        ("limits", "idle_ms"),
        "Silence after which a connection is closed on which nothing is pending; 0: never. \
         Default: 3600000, an hour.",
    ),
    (
        ("limits", "log_bytes"),
        "The durable log is compacted when it has grown by so much; 0: never. Default: 256 MiB.",
    ),
    (
        ("limits", "message_bytes"),
        "The longest message of a client. Default: what the order carries, 2 KiB less than \
         16 MiB, or 900,000 bytes with Corosync.",
    ),
    (
        ("limits", "request_ms"),
        "Time after which a client is told TRANSIENT or NO_RESPONSE instead of waiting on.",
    ),
    (("limits", "requests_pending"), "Requests that wait at a node."),
    (("limits", "requests_pending_per_connection"), "Requests that wait of one connection."),
    (("limits", "requests_per_second_per_peer"), "Requests a second of one address; 0: no limit."),
    (("limits", "state_bytes"), "The longest state that a server may give."),
    (
        ("limits", "unsent_bytes_per_connection"),
        "Replies that a client may leave unread before its requests are not read any more.",
    ),
    (
        ("node", "admin"),
        "Where the admin API listens, always on loopback. Default: 127.0.0.1:4780, and upwards for \
         further nodes of one host.",
    ),
    (("node", "bind"), "The local address to bind to. Default: the one that `host` resolves to."),
    (
        ("node", "gateway_port_offset"),
        "Is added to the ports of all gateways on this node, so that several fit on one host. \
         Default: 0.",
    ),
    (("node", "host"), "The address or name that other nodes and clients use. Required."),
    (("node", "ring_port"), "The UDP port of the ring, and the TCP port of links. Default: 4700."),
    (
        ("node", "state_dir"),
        "The folder of the node's token, logs and durable state, in which its servers run. \
         Default: `quorba-state/NAME` beside the file.",
    ),
    (
        ("group", "abandon_ms"),
        "How long all servers may be at one request before the group gives it up; 0, the default: \
         for ever.",
    ),
    (
        ("group", "ack"),
        "When a reply may leave: when a majority of the nodes holds the request, when all nodes of \
         the view do, or when it is ordered, which a crash may lose.",
    ),
    (("group", "calls"), "Groups that its servers call while they execute a request."),
    (("group", "checkpoint_ms"), "A passive leader gives its state so long after a request."),
    (("group", "checkpoint_requests"), "It does so after so many requests, if that is sooner."),
    (
        ("group", "checkpoint_updates"),
        "The state object is an FT::Updateable: what has changed is enough.",
    ),
    (
        ("group", "clients"),
        "Who may call, and which operations: a list of addresses, networks and certificates. \
         Default: everybody, everything.",
    ),
    (
        ("group", "compare_replies"),
        "Replies are compared in windows of so many requests; 0: never; `\"ignore-padding\"`: \
         what looks like padding does not count. Default: 64.",
    ),
    (
        ("group", "concurrency"),
        "What its servers can be trusted with: one call at a time, several in order, or calls of \
         different objects side by side.",
    ),
    (
        ("group", "connect"),
        "Where servers are that somebody else runs: by node, an address, an IOR or a corbaloc. \
         Instead of `server`.",
    ),
    (("group", "cwd"), "The folder in which the server runs. Default: the node's `state_dir`."),
    (
        ("group", "depth"),
        "How many members must have a call before its caller goes on, where the caller's context \
         says nothing; with fewer the call is refused. 0: as `ack` says.",
    ),
    (
        ("group", "durable"),
        "A reply leaves when a majority has the request on disk: what is acknowledged survives the \
         end of all nodes.",
    ),
    (("group", "env"), "Variables for the server, beside the node's own."),
    (
        ("group", "execution"),
        "Members execute a request together, or one of them first and the others when it is \
         through: a request that ends servers then costs one or two.",
    ),
    (
        ("group", "leader"),
        "The node of the first leader, in styles that have one. Default: the first member.",
    ),
    (
        ("group", "listen"),
        "The port of its gateway on every node, before the node's offset. Required unless there is \
         a `[gateway]`.",
    ),
    (
        ("group", "ft_group"),
        "The number of the object group in its references; the replication manager writes it.",
    ),
    (
        ("group", "ft_monitored"),
        "Whether faults of its members are reported; the replication manager writes it.",
    ),
    (
        ("group", "ft_version"),
        "The version of its references; the replication manager writes it. Default: 0.",
    ),
    (
        ("group", "note"),
        "What the service that has made the group knows of it; nobody else reads it.",
    ),
    (("group", "members"), "The nodes that have a replica. Required."),
    (
        ("group", "object_key"),
        "The key of the object that clients are to get: `quorba ior make` writes it.",
    ),
    (
        ("group", "on_divergence"),
        "A member whose replies differ is reported, or expelled and brought back.",
    ),
    (
        ("group", "on_total_loss"),
        "When no member is left that knows the state: refuse calls until an operator decides, or \
         go on with the state of a fresh server.",
    ),
    (("group", "placement"), "Who decides where the leader is: operators, or measured cost."),
    (
        ("group", "placement_watch_ms"),
        "With `placement = \"auto\"`: how long another place must have been better.",
    ),
    (
        ("group", "pull_monitorable"),
        "The object of `object_key` is an FT::PullMonitorable: with FaultMonitoringStyle PULL it \
         is asked `is_alive` beside the order.",
    ),
    (
        ("group", "quarantine_after"),
        "A server that fails so often in a row, before it was in use, is left alone for a while; \
         0: never.",
    ),
    (
        ("group", "quarantine_ms"),
        "How long the first time. It doubles each time, up to 16 times this.",
    ),
    (
        ("group", "readonly"),
        "Operations that change nothing, so that one member executes them past the order; `*` \
         stands for any part of a name.",
    ),
    (("group", "readonly_consistency"), "What such a read may miss."),
    (
        ("group", "recovery"),
        "How a member is brought back: by another one's state, by executing all requests again, or \
         by the application, so that it comes in without a state.",
    ),
    (
        ("group", "replay_bytes"),
        "With `recovery = \"replay\"`: bytes of requests that are kept for it. Default: 64 MiB.",
    ),
    (
        ("group", "replication"),
        "Which members count for a caller that wants so many to have its call: those that hold it, \
         or those that have executed it, all at once (parallel) or one after the other (chain).",
    ),
    (("group", "replier"), "The node whose member replies while it is in. Default: the nearest."),
    (
        ("group", "reply"),
        "Replies go to the gateway directly, or through the order: for experiments.",
    ),
    (
        ("group", "reply_retention_bytes"),
        "Bytes of replies that are kept for repeated calls. Default: 256 MiB.",
    ),
    (("group", "reply_retention_ms"), "How long a reply is kept for calls that are repeated."),
    (
        ("group", "restart_backoff_ms"),
        "The first pause before a server that ended is started again; it doubles up to 10 s.",
    ),
    (
        ("group", "server"),
        "The program of a member's server, and its arguments, with placeholders such as `{port}`.",
    ),
    (
        ("group", "server_reply_ms"),
        "A server that owes a reply for so long which another member's has given is started anew.",
    ),
    (("group", "start_timeout_ms"), "Time in which a started server must serve."),
    (
        ("group", "service"),
        "The service that the group is: `[service.NAME]` stands in a file instead.",
    ),
    (
        ("group", "state_object"),
        "The key of the server's FT::Checkpointable. Without one no member is brought back by \
         state.",
    ),
    (
        ("group", "state_operations"),
        "Of get_state, set_state, get_update and set_update those that clients may call.",
    ),
    (("group", "stuck_ms"), "A server that is at one request for so long is stuck, says status."),
    (("group", "style"), "How the members share the work."),
    (
        ("group", "suppress_duplicates"),
        "With `reply = \"ordered\"`: a member that hears another's reply does not send its own.",
    ),
    (
        ("group", "tls"),
        "IIOP over TLS at the gateways: listen, certificate, key, client_ca, client_certificates, \
         plain.",
    ),
    (
        ("group", "transfer_bytes_per_second"),
        "The most that a member sends to one that joins. Default: what the link takes.",
    ),
    (("group", "type_id"), "The repository id in the reference of `quorba ior make`."),
    (
        ("group", "unavailable_wait_ms"),
        "How long a request waits for a majority or a member before it is refused.",
    ),
    (
        ("channel", "batch"),
        "Events in one push to a consumer that takes several at once; 1 MiB together at most, but \
         for one event that is larger.",
    ),
    (
        ("channel", "calls_back"),
        "A client of TAO's interface that disconnects is called back, as the standard wants.",
    ),
    (
        ("channel", "cos_source"),
        "The source that events of the standard's interface are given. 0 fits every source that a \
         filter names.",
    ),
    (
        ("channel", "cos_type"),
        "The type that events of the standard's interface are given. 16 is also the first type of \
         TAO's applications, so filters may name it for other events. 0 fits every type that a \
         filter names.",
    ),
    (
        ("channel", "full"),
        "What happens when a consumer has no room. A reliable channel drops nothing. Default: \
         `drop-oldest`; of a reliable channel `back-pressure`.",
    ),
    (
        ("channel", "give_up_ms"),
        "A consumer that could not be called for so long is disconnected, a supplier that is \
         pulled and has not answered, and a consumer that pulls if suppliers had to wait for it \
         for so long and it has not pulled; 0: never.",
    ),
    (
        ("channel", "may_reconnect"),
        "Who connects again with TAO's interface changes its subscription; else it hears \
         AlreadyConnected.",
    ),
    (("channel", "pull_ms"), "Before a supplier that had nothing is asked again."),
    (("channel", "queue_bytes"), "Bytes of events that wait for one consumer."),
    (("channel", "queue_events"), "Events that wait for one consumer."),
    (
        ("channel", "reliable"),
        "Events are replicated and kept until their consumers have them. Each costs what an \
         ordered call costs.",
    ),
    (("channel", "retry_ms"), "Before a consumer or supplier that failed is called again."),
    (
        ("channel", "rt_info"),
        "What each `rt_info` means for `strategy`: by its number a table `[rt_info]`, 64 at most. \
         0 is that of consumers of the standard's interface.",
    ),
    (
        ("channel", "strategy"),
        "Which consumer is served first, if several can be, and what overtakes in the queue of \
         one. It is told by `rt_info`; without, what came first is first. In a reliable channel \
         each consumer's own events keep their order.",
    ),
    (
        ("channel", "takes_hop"),
        "Events go to gateways with one hop less (`ttl`), for channels that are joined without \
         TAO's gateway.",
    ),
    (("channel", "total_bytes"), "Bytes of events that wait for all consumers together."),
    (("outside", "connect_ms"), "How long it may take until it accepts a connection."),
    (
        ("outside", "on_doubt"),
        "When nobody knows whether it has executed a call: the caller is told so, or it is called \
         again.",
    ),
    (("outside", "reference"), "Where it is: an IOR or a corbaloc. Required."),
    (("outside", "reply_bytes"), "The longest reply."),
    (("outside", "reply_ms"), "How long it may take to reply."),
    (("rt_info", "critical"), "For `maximum-urgency`: it comes before all that is not."),
    (
        ("rt_info", "deadline_us"),
        "How long after it came an event should be at its consumer; 0: any time. For \
         `earliest-deadline`, `least-laxity`, `maximum-urgency`.",
    ),
    (
        ("rt_info", "execution_us"),
        "How long its consumer takes for it: what is left of the deadline without that is the \
         laxity. For `least-laxity`, `maximum-urgency`.",
    ),
    (
        ("rt_info", "priority"),
        "For `fixed-priority`, and among equals for `maximum-urgency`: 0 is the most urgent; what \
         nothing is said of is behind all others.",
    ),
    (("service", "channel"), "Of `events`: its channels by name, each a table `[channel]`."),
    (
        ("service", "channels_bytes"),
        "Of `events`: bytes that may wait in all channels together; the sum of their \
         `total_bytes` is no more. Of the reliable ones it is no more than 7/8 of `state_bytes`.",
    ),
    (("service", "durable"), "What is acknowledged survives the end of all nodes. Default: true."),
    (
        ("service", "listen"),
        "The port on every node, before the node's offset. Default: the service's; naming: 2809.",
    ),
    (("service", "members"), "The nodes that have a replica. Default: all."),
    (
        ("service", "pushes_at_once"),
        "Of `events`: pushes to consumers that are under way at a time; those behind them go in \
         the order of `strategy`. With 1 it is strict. Who is slow does not count.",
    ),
    (
        ("service", "readonly"),
        "Operations that go past the order. Default: the service's, such as `resolve`.",
    ),
    (
        ("service", "real_time_priority"),
        "Of `events`: the real-time priority (SCHED_FIFO) of the threads that take pushes past the \
         order, and that deliver events; 0: they are in the normal class, as all others. Where the \
         system does not permit it they are in that, too, and `quorba status` says so.",
    ),
    (
        ("service", "style"),
        "How the members share the work. Default: `active`; events: `semi-active`.",
    ),
];
