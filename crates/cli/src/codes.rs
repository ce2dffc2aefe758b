//! Every code that Quorba prints, from all rooms, in one table.
//!
//! `quorba explain` reads it, and docs/reference/codes.md is made from it (`quorba explain
//! --markdown`), so that the page cannot fall behind.

mod minor;

use quorba_config::CodeText;
use quorba_giop::MinorCode;

use self::minor::minor;

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
               those that it has. Is it the file of the right domain? Or the file has a group \
               that was not created in the running domain (`quorba config apply`).",
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
        title: "confirmation missing: --yes to restore a group",
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
        title: "confirmation missing: --yes to give up the state of a group",
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
        title: "confirmation missing: --yes to delete a group",
        text: "Deleting a group ends its servers and throws away what it had acknowledged, on the \
               disks, too. Take a backup if its state is still wanted, and say --yes.",
    },
    CodeText {
        code: "QB-CLI-023",
        title: "not everything of a file was applied",
        text: "`quorba config apply` creates and changes groups and servers outside of a running \
               domain, and deletes them with --yes. A group of which a key has changed that is \
               fixed when it is created has to be deleted and created; what is said of nodes, the \
               ring, limits and the domain is read when nodes start. `quorba config apply \
               --dry-run` shows what each difference takes.",
    },
    CodeText {
        code: "QB-CLI-024",
        title: "the naming service refused",
        text: "The naming service raised an exception. NotFound: nothing is bound to a component \
               of the name (missing_node), what stands before a / is an object (not_context), or \
               a context is in the way of an object (not_object). AlreadyBound: `quorba naming \
               rebind` puts another object in its place. CannotProceed: the rest of the name is \
               in other naming services, and they lead nowhere. InvalidName: the service takes it \
               for no name. With -o json the error has the exception and its fields.",
    },
    CodeText {
        code: "QB-CLI-025",
        title: "the event service refused",
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
               groups and servers outside (the domain has its own list of them), key_file, \
               admin, bind, directories, and limits but for state_bytes and message_bytes.",
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
