//! What the minor codes of Quorba's system exceptions mean, and what to do.
//!
//! What it is not: the codes and their titles, which crate `giop` has. Invariant: every code has a
//! text of its own.

use quorba_giop::{MinorCode, QUORBA_VMCID};

use super::Entry;

/// Codes of groups that are not there, and of calls that replicated servers make.
fn of_groups(code: &MinorCode) -> Option<&'static str> {
    Some(match code {
        MinorCode::NoSuchGroup => {
            "OBJECT_NOT_EXIST COMPLETED_NO. The request came to the port that groups share, or to \
             that of a group that has just been deleted, and the group in its object key is not in \
             the domain's catalog. `quorba status` lists the groups. Give the client the reference \
             of a group that exists: `quorba ior make GROUP`."
        }
        MinorCode::ReplicasDisagree => {
            "INTERNAL COMPLETED_MAYBE. The group compares the replies of its members before the \
             client is answered (style active-with-voting), and no reply was that of most members. \
             Every member has executed the call. `quorba faults` names the members and the \
             request; docs/determinism.md lists what makes servers differ."
        }
        MinorCode::CallCycle => {
            "NO_RESOURCES COMPLETED_NO, to a server. It has called a group that waits, itself or \
             through others, for the request in which the call is made: both would wait for ever. \
             Only operations in `readonly` of that group may close such a cycle; docs/nested.md."
        }
        MinorCode::CalleeGone => {
            "NO_RESOURCES COMPLETED_NO, to a server. No member of the group that it called could \
             execute the call. Every member of the calling group is told the same, so they stay \
             equal; a server that calls again must do so at all of them. `quorba status GROUP` \
             says why no member of the called group is up."
        }
        MinorCode::CallOutsideRequest => {
            "BAD_INV_ORDER COMPLETED_NO, to a server. A call of a replicated server has its place \
             in the order by the request that the server executes. A call from a thread of the \
             server's own, or at its start, has none; docs/nested.md."
        }
        MinorCode::TooManyCalls => {
            "NO_RESOURCES COMPLETED_NO, to a server. The node remembers each call until the \
             request is over, and how many one request may make is bounded; docs/limits.md. Look \
             for a loop in the server."
        }
        _ => return None,
    })
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
        MinorCode::GatewaysOnly => {
            "BAD_OPERATION COMPLETED_NO. has_event of QuorbaEvents::Waiting is what gateways ask \
             the member that leads while they hold a pull. Only that member knows the answer, so a \
             client's call of it is given to none. Call try_pull: it says whether there is an \
             event, and gives it."
        }
        MinorCode::ServiceOnly => {
            "NO_PERMISSION COMPLETED_NO. The object is how the processes of a service tell each \
             other what all of them must know, such as what a consumer has acknowledged. They call \
             it at a port of their node that no client is told. Clients call the service's own \
             objects, which docs/how-to/ft-corba.md and docs/how-to/events.md name."
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
        MinorCode::DepthNotMet => {
            "TRANSIENT. So many members must have the call: the client says so by \
             FT_TRANSACTION_DEPTH, or the group by `depth`. COMPLETED_NO: fewer are in, and \
             nobody was given it; `quorba status` says who is away and why. COMPLETED_MAYBE: one \
             went away while it was under way, or the call was executed before; those that are \
             left have it, and it will not be undone. Who repeats it under its name (FT_REQUEST) \
             gets its reply as soon as so many are in, or at once with a smaller depth."
        }
        MinorCode::NothingYet => {
            "TRANSIENT COMPLETED_NO. There is no event, and the gateway holds the pull no longer: \
             it holds as many as it may, the time in FT_REQUEST is over, or the call is made by a \
             replicated server, whose calls do not wait. Pull again, or use try_pull."
        }
        _ => return None,
    })
}

/// What is known of a code.
fn text(code: &MinorCode) -> Option<&'static str> {
    let texts = [of_groups, of_waiting, of_shares, of_permission, of_limits, of_silence];
    texts.into_iter().find_map(|of| of(code))
}

/// A code with its explanation.
pub(super) fn minor(code: &MinorCode) -> Entry {
    let number = QUORBA_VMCID | code.number();
    Entry {
        code: format!("{number:#010x}"),
        title: code.text().to_owned(),
        text: format!("Decimal {number}. {}", text(code).unwrap_or(code.text())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_minor_code_is_explained() {
        for code in MinorCode::ALL {
            assert!(text(code).is_some(), "{code:?}");
        }
    }
}
