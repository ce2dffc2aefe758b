//! Every code that Quorba prints, from all rooms, in one table.
//!
//! `quorba explain` reads it, and docs/reference/codes.md is made from it (`quorba explain
//! --markdown`), so that the page cannot fall behind.

use quorba_config::CodeText;
use quorba_giop::{MinorCode, QUORBA_VMCID};

/// The codes of the command line's own failures.
const CLI: &[CodeText] = &[
    CodeText {
        code: "QB-CLI-001",
        title: "the domain file has errors",
        text: "Every error is listed with its line above this message. Nothing was started or \
               asked. `quorba config check FILE` shows the same, and warnings.",
    },
    CodeText {
        code: "QB-CLI-002",
        title: "no such node or group",
        text: "The domain file has no [node.NAME] or [group.NAME] of that name. The message lists \
               those that it has. Is it the file of the right domain? Or the file names a group \
               that the nodes do not have: they run with another file.",
    },
    CodeText {
        code: "QB-CLI-003",
        title: "no node answers",
        text: "The admin API of a node listens on loopback only, so a node can be asked only on \
               its own machine, and by a user who can read its token (state_dir/admin.token). The \
               message says for each node what happened: `not running` is a refused connection.",
    },
    CodeText {
        code: "QB-CLI-004",
        title: "the deadline passed",
        text: "Every command has a deadline; --timeout sets another one. The message says what was \
               waited for, and what was known until then.",
    },
    CodeText {
        code: "QB-CLI-005",
        title: "not an object reference",
        text: "A reference is IOR: and hexadecimal digits, or corbaloc::host:port/key. The message \
               gives the place of the fault. A reference that was cut off by a mail program or a \
               terminal is the most frequent cause.",
    },
    CodeText {
        code: "QB-CLI-006",
        title: "an address does not answer",
        text: "None of the addresses in the reference answered a GIOP request in time. `refused` \
               means that the machine is there and nothing listens on the port; `timed out`, that \
               nothing came back at all: a firewall, or a wrong address.",
    },
    CodeText {
        code: "QB-CLI-007",
        title: "a file cannot be read or written",
        text: "The message names the file and what the system said. A key file that exists is \
               never overwritten: a domain whose nodes have different keys falls apart.",
    },
    CodeText {
        code: "QB-CLI-008",
        title: "the group has no object key",
        text: "Any key passes through a gateway, so Quorba does not know which objects a server \
               has. Give --key, or set object_key in the group's table. With omniORB's \
               omniINSPOA and JacORB's objectKeyMap the key is the name that the server chose.",
    },
    CodeText {
        code: "QB-CLI-009",
        title: "a node process ended",
        text: "A node that `quorba up` started could not be started, or ended by itself. Its last \
               lines stand above, after its name.",
    },
    CodeText {
        code: "QB-CLI-010",
        title: "no such code",
        text: "`quorba explain` without a code lists them all. Minor codes of CORBA exceptions are \
               understood in decimal and hexadecimal.",
    },
    CodeText {
        code: "QB-CLI-011",
        title: "the demo failed",
        text: "Either it could not be set up, or a promise was broken: calls lost or doubled, or \
               replicas that differ. The message says which; the latter is a fault of Quorba, and \
               worth a report with the printed object.",
    },
    CodeText {
        code: "QB-CLI-012",
        title: "standard output cannot be written",
        text: "The disk is full, or the file was closed. A closed pipe is no failure.",
    },
    CodeText {
        code: "QB-CLI-013",
        title: "nothing was measured",
        text: "The message says why: programs that are not built, a machine or a build whose \
               figures would mislead, or a block that failed. Blocks that ended before are in the \
               run's folder, in samples.ndjson.",
    },
    CodeText {
        code: "QB-CLI-014",
        title: "a group was not changed",
        text: "The node says why: it is in no primary component, the style has no leader, \
               the member is not in the group now, a passive style is wanted for a group \
               without a state_object, or the last member was to be removed. Nothing has changed.",
    },
    CodeText {
        code: "QB-CLI-015",
        title: "no backup was taken, or no group restored",
        text: "The message says why. Groups without a state_object, stateless ones, and those that \
               call others or are called have no backup of their own. Of a passive group only the \
               leader's node gives one. A node outside of a primary component orders nothing. \
               Nothing has changed, and no file \
               was left; but when it is not known whether a majority has a restore, it may have \
               come to pass: the nodes say in their logs that the group has the state of a \
               backup now.",
    },
    CodeText {
        code: "QB-CLI-016",
        title: "a backup cannot be used",
        text: "The file is no backup, is of another version of the format, is damaged (the message \
               names the place), was not written or copied whole, or is of another group or of \
               objects of another type than the group that was to have it. Nothing was restored.",
    },
    CodeText {
        code: "QB-CLI-017",
        title: "a restore wants --yes",
        text: "A restore throws away what the group has: all that it executed since the backup, \
               acknowledged or not. The message says what is known of it. Nothing was done.",
    },
    CodeText {
        code: "QB-CLI-018",
        title: "the command line is wrong",
        text: "An argument is missing, unknown or of the wrong kind; the message says which. The \
               command with --help shows how it is used.",
    },
    CodeText {
        code: "QB-CLI-019",
        title: "it was not said that the state may be given up",
        text: "In a stateless group each request is executed by one member only, and nothing of \
               what a member has becomes the others'. A group whose servers have a state would \
               lose acknowledged calls. Say --yes only if the servers keep nothing, or keep it \
               elsewhere.",
    },
    CodeText {
        code: "QB-CLI-020",
        title: "this machine is not as the domain file says",
        text: "A host name has no address here, the program of a server is missing or may not be \
               executed, or a state directory cannot be written. On another host of the domain it \
               may be so, so this is a warning of `quorba config check` only.",
    },
    CodeText {
        code: "QB-CLI-021",
        title: "the definition of a group cannot be used",
        text: "What --from or the options of `quorba group create` say is read by the rules of the \
               domain file, against its nodes and the groups that the running domain has. Every \
               problem is marked with a code of its own.",
    },
    CodeText {
        code: "QB-CLI-022",
        title: "it was not said that the group may be deleted",
        text: "Deleting a group ends its servers and throws away what it had acknowledged, on the \
               disks, too. Take a backup if its state is still wanted, and say --yes.",
    },
    CodeText {
        code: "QB-CLI-023",
        title: "not everything of a file was applied",
        text: "`quorba config apply` creates and changes groups of a running domain, and deletes \
               them with --yes. A group of which a key has changed that is fixed when it is \
               created has to be deleted and created; what is said of nodes, the ring, limits and \
               the domain is read when nodes start. `quorba config apply --dry-run` shows what \
               each difference takes.",
    },
    CodeText {
        code: "QB-CLI-024",
        title: "a naming service does not do it",
        text: "The naming service raised an exception. NotFound: nothing is bound to a component \
               of the name (missing_node), what stands before a / is an object (not_context), or \
               a context is in the way of an object (not_object). AlreadyBound: `quorba naming \
               rebind` puts another object in its place. CannotProceed: the rest of the name is \
               in other naming services, and they lead nowhere. InvalidName: the service takes it \
               for no name. With -o json the error has the exception and its fields.",
    },
    CodeText {
        code: "QB-CLI-025",
        title: "the event service does not do it",
        text: "There is no such channel, or one with other settings, or it is in the domain file \
               and ends only with it there; or a channel has ended a subscription, because it ends \
               itself or its consumer could not be called. The message says which.",
    },
];

/// Why a node refuses what comes in another one's name; `quorba status` says which.
const RING: &[CodeText] = &[
    CodeText {
        code: "QB-RING-001",
        title: "a node has another domain key",
        text: "Datagrams that come in the name of a node do not open with this node's domain key. \
               Most often the key file was not copied to that node, or was made anew there. If the \
               node is in the view all the same, somebody forges datagrams, which does no harm. \
               docs/security.md tells how a key is changed while a domain runs.",
    },
    CodeText {
        code: "QB-RING-002",
        title: "one node protects the ring and another one does not",
        text: "`encrypt` of [ring] must be the same on all nodes.",
    },
    CodeText {
        code: "QB-RING-003",
        title: "a node speaks another version",
        text: "All nodes of a domain run the same version of quorba; `quorba status` shows which.",
    },
    CodeText {
        code: "QB-RING-004",
        title: "a node is not in this node's domain file",
        text: "The number of the sender is no node's of this domain file, or is this node's own. \
               Nodes are numbered in the order in which the file names them, so all must have the \
               same file.",
    },
    CodeText {
        code: "QB-RING-005",
        title: "a node runs twice",
        text: "An older boot of a node is still there, or two processes have its name: a copy of a \
               machine, or a state directory that was copied.",
    },
    CodeText {
        code: "QB-RING-006",
        title: "a node has another domain file",
        text: "What must be equal on all nodes differs; the message says in which keys, if the \
               node could be asked. Copy the file, and start the node anew. What may differ: \
               groups (the domain has its own list of them), where a server outside is and how \
               long it is waited for, key_file, admin, bind, directories, and limits but for \
               state_bytes and message_bytes.",
    },
    CodeText {
        code: "QB-RING-007",
        title: "a node sends what cannot be read",
        text: "The datagrams are sealed with the domain key, so a node of the domain sends them, \
               and they follow no rule of the protocol: a node of another version, or a fault of \
               Quorba.",
    },
];

/// Why a node cannot run; `command/node.rs` says which code is whose.
const NODE: &[CodeText] = &[
    CodeText {
        code: "QB-NODE-001",
        title: "the state directory cannot be used",
        text: "A node keeps its token, its logs and what it must remember over a restart in its \
               state_dir. It is made if it is not there; the user that the node runs as must be \
               allowed to write to it. The first start needs room on the disk (300 kB), and later \
               ones do not: what the node must remember has its room there. The message names the \
               file system that is full.",
    },
    CodeText {
        code: "QB-NODE-002",
        title: "the state file is not this version's",
        text: "The file was written by another version, is damaged, or is no state file at all. A \
               node that forgets what it held must not count itself among those that hold a \
               request, so it does not begin anew by itself. Move the file away only if the rest \
               of the domain is up and has the state.",
    },
    CodeText {
        code: "QB-NODE-003",
        title: "an address is in use",
        text: "The message names the address and what it is for. Most often the node runs already, \
               or two nodes of one host have no gateway_port_offset between them. `Cannot assign \
               requested address` means that host or bind is no address of this machine.",
    },
    CodeText {
        code: "QB-NODE-004",
        title: "a host name is unknown",
        text: "The nodes' hosts are resolved when a node starts. Give addresses instead of names \
               where a resolver is not certain to be there: a cluster that needs DNS to start \
               does not start when DNS is what failed.",
    },
    CodeText {
        code: "QB-NODE-005",
        title: "the system refused a resource",
        text: "A descriptor, a thread or memory was refused. Raise the limits of the process \
               (`ulimit -n`, LimitNOFILE= and TasksMax= with systemd).",
    },
    CodeText {
        code: "QB-NODE-006",
        title: "Corosync cannot be used",
        text: "The domain file says engine = \"corosync\": the node is a client of the Corosync of \
               its own host, ends with it, and is started again with it (After=corosync.service \
               and Restart= with systemd). Corosync lets in root, and users that \
               /etc/corosync/uidgid.d names. `corosync-cfgtool -s` shows whether it runs.",
    },
    CodeText {
        code: "QB-NODE-007",
        title: "the durable log cannot be used",
        text: "A node of a domain with a durable group writes down all that it applies, in \
               state_dir/log. If the disk fails, the node stops rather than answer what it could \
               not keep; the others go on. A disk that is full stops only its start: a node that \
               runs waits for room. The message names the directory and what to do. Damage that \
               is found at the start does not come here: the node then sets the files aside, says \
               which record is damaged, and rebuilds from the others.",
    },
    CodeText {
        code: "QB-NODE-008",
        title: "another process runs with the state directory",
        text: "The message names the process: most often the node runs already. Two nodes with one \
               state_dir would overwrite what each must remember, so the second one does not \
               start. The lock (node.lock) is the kernel's: it ends with the process that has it, \
               and the file may stay.",
    },
];

/// A code with its explanation, whichever room prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// As it is printed: `QB-CFG-003`, `0x51420010`.
    pub code: String,
    /// What it means, in a few words.
    pub title: String,
    /// Why it is said, and what to do.
    pub text: String,
}

impl From<&CodeText> for Entry {
    fn from(known: &CodeText) -> Self {
        let CodeText { code, title, text } = *known;
        Self { code: code.to_owned(), title: title.to_owned(), text: text.to_owned() }
    }
}

/// Every code, by room.
pub fn tables() -> Vec<(&'static str, Vec<Entry>)> {
    let entries = |codes: &[CodeText]| codes.iter().map(Entry::from).collect();
    vec![
        ("Domain file", entries(quorba_config::CODES)),
        ("Command line", entries(CLI)),
        ("Node", entries(NODE)),
        ("Ring", entries(RING)),
        ("Minor codes of system exceptions", MinorCode::ALL.iter().map(minor).collect()),
    ]
}

/// Every code in the order of the page.
pub fn all() -> impl Iterator<Item = Entry> {
    tables().into_iter().flat_map(|(_, codes)| codes)
}

/// The explanation of `code`. Upper and lower case are one, `QB-` may be left out, and a minor
/// code may be decimal or hexadecimal.
pub fn find(code: &str) -> Option<Entry> {
    if let Some(number) = minor_number(code) {
        return MinorCode::from_minor(number).map(|code| minor(&code));
    }
    let wanted = code.trim().to_ascii_uppercase();
    let wanted = if wanted.starts_with("QB-") { wanted } else { format!("QB-{wanted}") };
    all().find(|known| known.code == wanted)
}

/// Whose minor code it is, for those that are not ours: the upper 20 bits are the vendor's.
pub fn vendor(code: &str) -> Option<&'static str> {
    match minor_number(code)? & 0xffff_f000 {
        0x4f4d_0000 => Some("the OMG's: the CORBA standard lists it with its exception"),
        0x4154_0000 => Some("omniORB's: its file minorCode.h lists it"),
        0x5441_0000 => Some("TAO's: its file CORBA_macros.h lists it"),
        _ => None,
    }
}

fn minor_number(code: &str) -> Option<u32> {
    let code = code.trim().to_ascii_lowercase();
    match code.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => code.parse().ok(),
    }
}

/// Codes of requests that wait, or are refused, before they are ordered.
fn of_waiting(code: &MinorCode) -> Option<&'static str> {
    Some(match code {
        MinorCode::NoPrimary => {
            "TRANSIENT COMPLETED_NO. The node that was asked cannot reach a majority of the \
             domain's nodes, so it must not execute anything: the others may be going on without \
             it. A reference with all gateways in it lets the client try the next one by itself. \
             `quorba status` shows who sees whom."
        }
        MinorCode::MemoryAway => {
            "TRANSIENT COMPLETED_NO. Nodes were restarted, and disks have brought back the durable \
             groups. This group is not durable, and a node that is away may have acknowledged \
             requests of it in memory, so it waits for that node. `quorba status` names it: \
             start it, with an empty disk if there is no other."
        }
        MinorCode::NoMember => {
            "TRANSIENT COMPLETED_NO. The group has waited unavailable_wait_ms for a member that \
             executes, and none came. `quorba status GROUP` shows each member with the reason why \
             it is not in, and the log of its server."
        }
        MinorCode::GroupStarting => {
            "TRANSIENT COMPLETED_NO. The domain has just started, and waits for the members of \
             the group, so that all begin with the same state. It takes at most start_timeout_ms."
        }
        MinorCode::TimedOut => {
            "COMPLETED_MAYBE. The request was ordered, and no reply came in request_ms of \
             [limits]. It may still be executed: whoever repeats it should be sure that twice does \
             no harm, or repeat it with its FT_REQUEST context."
        }
        MinorCode::NoRoom => {
            "NO_RESOURCES COMPLETED_NO. So many replies are kept for clients that name their calls \
             (FT_REQUEST) that another one would break a limit: 300,000 of them in all, of which \
             one client has a third and one address half at most (docs/security.md), or \
             reply_retention_bytes; reply_retention_ms says how long they are kept at least. A \
             server that calls one outside of the domain hears it when 4 MiB of such replies are \
             kept."
        }
        MinorCode::Crowded => {
            "TRANSIENT COMPLETED_NO. The request has waited request_ms of [limits] for its turn: \
             the servers answer more slowly than requests come in. It was given to nobody. `quorba \
             status` shows how many are pending."
        }
        MinorCode::ContextUnreadable => {
            "MARSHAL COMPLETED_NO. The data of a service context whose layout a standard gives \
             (CodeSets, FT_REQUEST, SendingContextRunTime and others) is cut, has a byte order \
             that is none, or counts more than is there; a client id of FT_REQUEST may have \
             1,024 octets. Servers fail over such contexts in ways of their own, so no server \
             gets it. Look for what adds contexts in the client: an interceptor, or a proxy \
             before it."
        }
        MinorCode::TargetUnreadable => {
            "OBJECT_NOT_EXIST or MARSHAL, COMPLETED_NO. A request of GIOP 1.2 may name its \
             object by a profile or by a whole reference. This one cannot be read, has no IIOP \
             profile with an object key, or selects a profile that it does not have."
        }
        MinorCode::Rejected => {
            "The server answered the request with a MessageError: its ORB could not read it. All \
             members get the same bytes, so another gateway gives the same answer. Look into the \
             server's log, and for a client that speaks a newer GIOP than the server."
        }
        _ => return None,
    })
}

/// Codes of requests that their client may not make.
fn of_permission(code: &MinorCode) -> Option<&'static str> {
    Some(match code {
        MinorCode::StateIsProtected => {
            "NO_PERMISSION COMPLETED_NO. get_state, set_state, get_update and set_update carry the \
             state of a whole replica; only nodes call them, when a member joins. They are refused \
             for every object key, because servers may know one object by several. A group whose \
             clients have operations of these names lets them through with state_operations = \
             [\"get_state\"]. A client that wants a backup asks for it by an operation of its own."
        }
        MinorCode::OperationUnreadable => {
            "MARSHAL COMPLETED_NO. There is a zero octet in the operation's name. Servers differ \
             in where they take its end to be, so no server gets the request. Look for what builds \
             requests by itself in the client."
        }
        MinorCode::ClientNotAllowed => {
            "NO_PERMISSION COMPLETED_NO. The group has a list `clients` in the domain file, and \
             neither the address of this client nor a name in its certificate is in it. A call \
             over plain IIOP has no certificate. `quorba status` counts such calls as refused."
        }
        MinorCode::OperationNotAllowed => {
            "NO_PERMISSION COMPLETED_NO. The group's list `clients` knows the client, and gives \
             `operations` that it may call; this one is not among them. What ORBs ask by \
             themselves (_is_a, _non_existent) is always allowed to clients in the list."
        }
        MinorCode::IdentityTaken => {
            "BAD_CONTEXT COMPLETED_NO. A client names its calls by a client id and a retention id \
             (FT_REQUEST). Under this name the group knows a call of another operation, of another \
             object, or with other arguments from another address or certificate. This call was \
             not executed; the other one's reply is not given to it. Two clients with one client \
             id, or one that counts from the beginning again after its start, are the usual \
             causes: a client id must be unique for each start of a client."
        }
        MinorCode::Expired => {
            "BAD_CONTEXT COMPLETED_NO. The call has a client's name (FT_REQUEST) with a time after \
             which the client does not repeat it; that time was over, by more than the group \
             remembers replies (reply_retention_ms), when the call came. So nobody can say whether \
             it was executed before, and it is not executed now. The usual cause is a client \
             whose clock is minutes behind."
        }
        MinorCode::Forgotten => {
            "BAD_CONTEXT COMPLETED_MAYBE. The call has a client's name (FT_REQUEST) and was given \
             to the group before; no reply reached the gateway for so long that the group has \
             forgotten what came of it (reply_retention_ms). So it is not executed again. It \
             happens when a node stands still for longer than that, as a suspended machine does. \
             Ask the server whether the call took effect before you make it again under a new \
             name; if it happens without a reason, make reply_retention_ms longer."
        }
        _ => return None,
    })
}

/// Codes that say what the order, the servers or those outside do not take.
fn of_limits(code: &MinorCode) -> Option<&'static str> {
    Some(match code {
        MinorCode::RequestTooLarge => {
            "IMP_LIMIT COMPLETED_NO. Every request goes through the order of the domain, which \
             carries messages of up to 16 MiB, with what a request is wrapped in (Corosync: about \
             900,000 bytes); message_bytes of [limits] may be less. No gateway can take more: the \
             client has to send less in one call. The rest of the request is passed over, and the \
             connection goes on."
        }
        MinorCode::ReplyTooLarge => {
            "IMP_LIMIT COMPLETED_YES. Every member must be able to pass on every reply through the \
             order of the domain, which carries messages of up to 16 MiB (Corosync: about 900,000 \
             bytes). The servers have executed the call, and go on; a repetition gets the same \
             answer. The client has to ask for less in one call."
        }
        MinorCode::NoOrderedRequest => {
            "BAD_INV_ORDER COMPLETED_NO, of Quorba::OrderedTime. Time and chance that are equal at \
             all replicas belong to a request that has its place in the order. A server's own \
             threads, readonly operations and get_state have none; docs/determinism.md."
        }
        MinorCode::OutsideNotReached => {
            "NO_RESOURCES COMPLETED_NO. The server of [outside.NAME] has not accepted a connection \
             in connect_ms. Look whether it runs, and whether the nodes reach the address of its \
             reference; each node's log says which call failed."
        }
        MinorCode::OutsideInDoubt => {
            "COMM_FAILURE COMPLETED_MAYBE. The server of [outside.NAME] has not replied in \
             reply_ms, or its connection or the node that called it is gone. With on_doubt = \
             \"repeat\" the call is made again instead, for servers where that does no harm."
        }
        MinorCode::CircleUnanswered => {
            "NO_RESOURCES COMPLETED_MAYBE. A readonly call that closes a cycle goes to a server \
             that waits in the middle of another call. It has not answered in server_reply_ms: it \
             must take a second call on another connection meanwhile, and hold no lock while it \
             calls. docs/nested.md."
        }
        MinorCode::OutsideMoved => {
            "NO_IMPLEMENT COMPLETED_NO. The server of [outside.NAME] has answered with a \
             LOCATION_FORWARD. The nodes call the address of the reference only: give it the \
             address to which the server refers."
        }
        _ => return None,
    })
}

/// Codes of requests that servers have not answered.
fn of_silence(code: &MinorCode) -> Option<&'static str> {
    Some(match code {
        MinorCode::NoReply => {
            "COMM_FAILURE COMPLETED_MAYBE. Every server that executed the call ended the \
             connection, or sent something that is no reply, and its process lives. As all did \
             the same, it is the request that is odd, not a server: a client built from a newer \
             IDL, for example. Repetitions get the same answer. `quorba status GROUP` names the \
             operation, the object and the client; docs/odd-requests.md."
        }
        MinorCode::EndsServers => {
            "COMM_FAILURE COMPLETED_MAYBE. Two server processes ended while they executed the \
             call, so no server executes it any more: not a new leader, not a member that comes \
             back, not a durable group that starts. Repetitions get the same answer. The \
             servers' logs say why they ended; `quorba status GROUP` names the operation, the \
             object and the client."
        }
        MinorCode::Skipped => {
            "TIMEOUT COMPLETED_MAYBE. No server had answered the call, and an operator gave it up \
             (`quorba group skip`), or all servers were at it for abandon_ms. It may have been \
             executed. No server begins it again, and repetitions get the same answer."
        }
        MinorCode::NeverTaken => {
            "NO_RESOURCES COMPLETED_NO. Each time the call was sent to a server, the server closed \
             the connection in good order, which says that it has not executed the call (GIOP \
             CloseConnection). Look into the servers' logs, and for their limits on connections. \
             The call may be made again."
        }
        MinorCode::CallbackNotCarried => {
            "NO_IMPLEMENT COMPLETED_NO, to a server. It made a call on the connection on which its \
             node calls it, as GIOP allows between two that have agreed on bidirectional \
             connections. Nodes agree to none: the call would reach the node and not the client. \
             A server calls a client back over a connection of its own; docs/odd-requests.md."
        }
        _ => return None,
    })
}

/// Codes of clients that have their share of a gateway.
fn of_shares(code: &MinorCode) -> Option<&'static str> {
    Some(match code {
        MinorCode::TooManyConnections => {
            "TRANSIENT COMPLETED_NO. The client's address has connections_per_peer connections to \
             the gateway, or all clients together have `connections`; [limits] in the domain file \
             sets both. Another gateway may have room. The node's log names the address once a \
             minute, and `quorba status` the one that was refused most."
        }
        MinorCode::OverBudget => {
            "TRANSIENT COMPLETED_NO. The gateway held buffered_bytes of [limits] for its clients, \
             and more of it for the client's address than for any other, so the last requests of \
             that address that nobody had been given were refused. docs/limits.md."
        }
        MinorCode::ConsumerFull => {
            "TRANSIENT COMPLETED_NO. An event channel whose `full` is back-pressure has a consumer \
             for which no more may wait, so the push was not taken by any. Push it again later; \
             `quorba events show` says which consumer takes too little."
        }
        MinorCode::NothingYet => {
            "TRANSIENT COMPLETED_NO. `pull` would have to wait, and calls to a replicated service \
             do not. Pull again, or use try_pull."
        }
        _ => return None,
    })
}

fn minor(code: &MinorCode) -> Entry {
    // A new code is explained by its title.
    let texts = [of_waiting, of_shares, of_permission, of_limits, of_silence];
    let text = texts.into_iter().find_map(|of| of(code)).unwrap_or(code.text());
    let number = QUORBA_VMCID | code.number();
    Entry {
        code: format!("{number:#010x}"),
        title: code.text().to_owned(),
        text: format!("Decimal {number}. {text}"),
    }
}

/// The page docs/reference/codes.md.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Codes\n\n\
         Every message of Quorba that can need explaining carries a code. `quorba explain CODE`\n\
         prints the same texts without a network. This page is made by\n\
         `quorba explain --markdown`, and a test keeps it so.\n",
    );
    for (room, codes) in tables() {
        page.push_str(&format!("\n## {room}\n"));
        for code in codes {
            let text = crate::text::wrapped(&code.text, 98, "");
            page.push_str(&format!("\n### {}: {}\n\n{text}\n", code.code, code.title));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::failure::codes;

    #[test]
    fn each_code_stands_once() {
        let mut seen = BTreeSet::new();
        for code in all() {
            assert!(seen.insert(code.code.clone()), "{} stands twice", code.code);
        }
    }

    #[test]
    fn each_code_that_is_printed_is_explained() {
        for code in [
            codes::DOMAIN_FILE,
            codes::NOT_IN_DOMAIN,
            codes::NOBODY_ANSWERS,
            codes::TIMED_OUT,
            codes::REFERENCE,
            codes::NO_REPLY,
            codes::FILE,
            codes::NO_OBJECT_KEY,
            codes::PROCESS,
            codes::UNKNOWN_CODE,
            codes::NAMING,
            codes::NODE_STATE_DIR,
            codes::NODE_STATE_FILE,
            codes::NODE_LISTEN,
            codes::NODE_RESOLVE,
            codes::NODE_RESOURCES,
            codes::NODE_COROSYNC,
            codes::NODE_LOG,
            codes::DEMO,
            codes::OUTPUT,
            codes::LAB,
        ] {
            assert!(find(code).is_some(), "{code}");
        }
    }

    #[test]
    fn codes_are_found_however_they_are_typed() {
        let code = find("QB-CFG-003").expect("it exists").code;
        assert_eq!(find("qb-cfg-003").map(|found| found.code).as_ref(), Some(&code));
        assert_eq!(find(" cfg-003").map(|found| found.code).as_ref(), Some(&code));
        assert_eq!(find("0x51420010"), find("1363279888"));
        assert_eq!(find("0X51420010").map(|found| found.code).as_deref(), Some("0x51420010"));
        assert!(find("CFG-3").is_none());
        assert!(find("0x41540002").is_none());
        assert!(vendor("0x41540002").is_some_and(|vendor| vendor.starts_with("omniORB's")));
    }
}
