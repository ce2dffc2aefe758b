//! The codes that stand in front of what this crate says, each with its explanation.
//!
//! Invariants: a code never changes its meaning and is never used again for another; errors count
//! from `QB-CFG-001`, warnings from `QB-CFG-101`.

/// A code with the text that `quorba explain` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeText {
    /// The code, such as `QB-CFG-003`.
    pub code: &'static str,
    /// What it means, in a few words.
    pub title: &'static str,
    /// Why it is said, and what to do.
    pub text: &'static str,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $code:literal $title:literal $text:literal)*) => {
        /// What a [`Problem`](crate::Problem) is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        impl Code {
            /// The code as it is printed.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $code,)*
                }
            }
        }

        /// Every code of the domain file with its explanation.
        pub const CODES: &[CodeText] = &[
            $(CodeText { code: $code, title: $title, text: $text },)*
        ];
    };
}

codes! {
    FileUnreadable "QB-CFG-001" "the domain file cannot be read"
    "The file named with --config does not exist, is not readable for this user, is not UTF-8 \
     text, or is larger than 64 MiB. Give the path of the domain file; every host of a domain \
     has the same one."

    Syntax "QB-CFG-002" "the domain file is not TOML"
    "The file breaks the rules of TOML at the marked place: often a missing quote, a missing \
     bracket, or a table that is defined twice."

    UnknownKey "QB-CFG-003" "a key or table that does not exist"
    "Unknown keys are errors, because a misspelt setting that is silently ignored shows only \
     when it is needed. If the key belongs to a newer version, this program is too old for the \
     file."

    MissingKey "QB-CFG-004" "a required key is missing"
    "The marked table needs the key. There is no default that would be right for most domains."

    WrongType "QB-CFG-005" "a value of the wrong type"
    "For instance a text in quotes where a number is needed: listen = 5000, not \"5000\"."

    OutOfRange "QB-CFG-006" "a value outside of its range"
    "The message says the range. Ranges keep a slip (seconds for milliseconds, say) from \
     becoming a node that never notices a crash, or one that sees crashes everywhere."

    UnknownValue "QB-CFG-007" "a word that is not among the possible ones"
    "The message lists the words that this version knows."

    BadName "QB-CFG-008" "a name that cannot be used"
    "Names of domains, nodes and groups stand in paths, log lines and commands. They are 1 to 64 \
     characters long, of letters, digits, '-', '_' and '.', and begin with a letter or digit."

    BadAddress "QB-CFG-009" "an address that cannot be used"
    "host is an IP address or a host name without a port; other nodes and clients connect to it, \
     so it cannot be 0.0.0.0. bind is an IP address of this machine. admin is a loopback address \
     with a port, because the admin API is never offered to the network. connect is host:port; an \
     IPv6 address stands in brackets: [::1]:6000."

    BadPlaceholder "QB-CFG-010" "a placeholder that does not exist"
    "In server, env and cwd these are replaced: {port}, the private port on which the server \
     shall listen at 127.0.0.1, or {socket}, the file of a socket for that; {host}, the node's \
     address, for what others are told; {listen}, the gateway's port; {node}; {group}; \
     {state_dir}; {time}, the reference of the group's ordered time; {gateways}, the gateways \
     on all nodes as host:port,host:port, the same for every server, and {gateways.omniorb}, \
     the same for -ORBendPointPublish; {call.NAME}, the host:port on which it calls the group \
     or the server outside NAME; {url.NAME}, the same with the object key of that server's \
     reference. A brace itself is written twice: {{ or }}."

    NoSuchNode "QB-CFG-011" "a name that is no node of the domain"
    "members and connect name nodes that have a table of their own: [node.NAME]."

    Conflict "QB-CFG-012" "two things in one place"
    "Two listeners of one host would need the same port, or two nodes of one host the same state \
     directory. Several nodes of one host need different ring_port, admin and \
     gateway_port_offset; groups need different listen."

    KeyFileMissing "QB-CFG-013" "the key file cannot be read"
    "Every node of a domain has the same key file; who does not hold the key can neither join \
     the ring nor read it. Make one with `quorba key new FILE` and copy it to each host."

    KeyFileMalformed "QB-CFG-014" "the key file does not hold a key"
    "A key file holds 64 hexadecimal digits (32 bytes) and a newline. `quorba key new FILE` \
     makes one."

    KeyFileOpen "QB-CFG-015" "the key file is open to other users"
    "Whoever reads the key can join the ring and change what the servers execute. Take the \
     permissions away with `chmod 600 FILE`; if others may have read it, make a new one."

    Backend "QB-CFG-016" "a group needs exactly one way to its servers"
    "server = [...] makes each member's node start and watch a process. connect = \"host:port\" \
     uses a server that somebody else runs. A group has one of them. A started server must be \
     told where to listen, so {port} or {socket} has to stand in its arguments or environment."

    NotInThisVersion "QB-CFG-017" "not in this version"
    "The word is known and planned; this version of the program cannot do it."

    TooMany "QB-CFG-018" "more than this version can handle"
    "A domain has at most 64 nodes and 100,000 groups; a text has at most 4096 characters and a \
     list at most 256 values."

    SharedServer "QB-CFG-019" "several members use one server"
    "Each member must have a server of its own. Two members that connect to the same server \
     would make it execute each request twice. Give each its address: \
     connect = { n1 = \"...\", n2 = \"...\" }."

    StyleNeeds "QB-CFG-020" "the style needs something that the group lacks"
    "In a passive style the leader sends its state to the other members, so the servers need an \
     FT::Checkpointable whose object key is the group's state_object. In a cold-passive group only \
     the leader's server runs, so the nodes must be able to start and end it: server, not connect."

    DurableNeeds "QB-CFG-021" "durable needs something that the group or the domain lacks"
    "A durable group goes on from its disks after the end of all nodes: its servers are started by \
     the nodes and given what was acknowledged, from a state and the requests behind it. So it \
     needs server, not connect; a state_object; no on_total_loss = \"fresh\"; a style that orders \
     requests, not \"stateless\"; the quorum \"majority\"; and the engine \"totem\"."

    ReplayNeeds "QB-CFG-022" "a replay needs something that the group lacks"
    "With recovery = \"replay\" a new server executes again all that the group has executed, \
     for servers that are deterministic and have no state to give. So the nodes start the servers \
     (server, not connect), all members execute (not in passive styles, nor stateless), and there \
     is no state_object."

    NoOrderedTime "QB-CFG-023" "the group cannot be told ordered time"
    "The server's command has the placeholder {time}, a reference to the time of the request that \
     the server executes. With several calls at a time nobody but the server knows which that is, \
     and calls of a stateless group have no place in the order. Leave concurrency at \
     \"sequential\", or take the time from the requests."

    CallsNeed "QB-CFG-024" "calls needs something that one of the two groups lacks"
    "Every replica of a group that calls another one makes the same calls, and each is known by \
     the request in which it is made. So the group that calls needs concurrency = \"sequential\" \
     and server, not connect; it can be neither stateless nor, in this version, durable; and the \
     group that is called cannot be stateless."

    NoSuchGroup "QB-CFG-025" "a name that is nobody whom a group can call"
    "calls names groups that have a table of their own, [group.NAME], and servers outside of the \
     domain, [outside.NAME]."

    BadReference "QB-CFG-026" "a reference that cannot be used"
    "reference of [outside.NAME] says where a server is that is not in the domain: a corbaloc URL \
     with host and port, such as corbaloc::10.0.0.9:5000/bank, or an IOR with an IIOP profile. \
     The nodes connect to that address, without TLS. connect of a group takes references of its \
     members' servers in the same forms; the first IIOP profile of each counts, and either all \
     say an object key or the group has an object_key."

    ApplicationNeeds "QB-CFG-027" "recovery by the application excludes something"
    "With recovery = \"application\" a member comes in without a state: the application takes care \
     of what its servers have (CONS_APP_CTRL of FT-CORBA). So there is no state_object and nothing \
     durable, no style that moves states or compares replies (active and semi-active remain), and \
     the group has no calls of its own."

    TwoNodes "QB-CFG-101" "two nodes do not survive a crash"
    "Replies are released when a majority of the nodes holds the request. The majority of two is \
     two: when either stops, the domain stops. Three nodes survive one crash, five survive two. \
     The third node may be small: it needs no server of its own."

    NoStateObject "QB-CFG-102" "members of the group are not brought back"
    "A server that restarts has lost what the others executed meanwhile. If the group names a \
     state_object, an FT::Checkpointable in the server, the node fetches the state from another \
     member; without one the member stays out, and each crash leaves one replica fewer."

    FewMembers "QB-CFG-103" "the group does not survive a crash"
    "The group has one member. When its server or node stops, nothing answers until it is back."

    LoopbackHost "QB-CFG-104" "a loopback address among others"
    "Only the machine itself reaches a loopback address, and the other nodes of this domain are \
     elsewhere. Give the address that other hosts see."

    SilentSetting "QB-CFG-105" "a setting without effect"
    "The marked setting means something only together with another one, which is not there."

    CallsOverlap "QB-CFG-106" "the server may change the order of calls"
    "concurrency = \"pipelined\" is for servers that execute the calls of a connection one after \
     the other. omniORB does so with -ORBmaxServerThreadPerConnection 1 among its arguments, \
     JacORB with jacorb.poa.thread_pool_max=1 and jacorb.poa.thread_pool_min=1; by default both \
     execute them at the same time, and each replica in another order."

    OwnReferences "QB-CFG-107" "references that the server makes do not lead to the group"
    "The group has no listen, so its clients come through the one port of [gateway], where its \
     name in the object key says whose call it is: QRB/NAME/KEY. `quorba ior make` writes that; a \
     server that is told to publish the gateways' addresses does not, and calls to objects whose \
     references it has made are refused there. If it gives such references to clients, give the \
     group a listen of its own."
}

impl Code {
    /// Whether the code is a warning: allowed, and probably not meant.
    #[must_use]
    pub const fn is_warning(self) -> bool {
        matches!(
            self,
            Self::TwoNodes
                | Self::NoStateObject
                | Self::FewMembers
                | Self::LoopbackHost
                | Self::SilentSetting
                | Self::CallsOverlap
                | Self::OwnReferences
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_in_order() {
        for pair in CODES.windows(2) {
            assert!(pair[0].code < pair[1].code, "{} before {}", pair[0].code, pair[1].code);
        }
    }

    #[test]
    fn warnings_are_those_from_101() {
        for (code, warning) in [
            (Code::SharedServer, false),
            (Code::FileUnreadable, false),
            (Code::TwoNodes, true),
            (Code::SilentSetting, true),
        ] {
            assert_eq!(code.is_warning(), warning, "{}", code.as_str());
            assert_eq!(code.as_str() > "QB-CFG-100", warning, "{}", code.as_str());
        }
    }
}
