//! Every code that Quorba prints, from all rooms, in one table.
//!
//! `quorba explain` reads it, and docs/reference/codes.md is made from it (`quorba explain
//! --markdown`), so that the page cannot fall behind.

use quorba_config::CodeText;

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
               those that it has. Is it the file of the right domain?",
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
        title: "the node could not run",
        text: "The message says why: an address in use, a state directory that cannot be written, \
               another process that has the node's name already.",
    },
    CodeText {
        code: "QB-CLI-012",
        title: "the demo failed",
        text: "Either it could not be set up, or a promise was broken: calls lost or doubled, or \
               replicas that differ. The message says which; the latter is a fault of Quorba, and \
               worth a report with the printed object.",
    },
    CodeText {
        code: "QB-CLI-013",
        title: "standard output cannot be written",
        text: "The disk is full, or the file was closed. A closed pipe is no failure.",
    },
];

/// Every code, by room.
pub fn tables() -> Vec<(&'static str, Vec<CodeText>)> {
    vec![("Domain file", quorba_config::CODES.to_vec()), ("Command line", CLI.to_vec())]
}

/// The explanation of `code`; upper and lower case are one, and `QB-` may be left out.
pub fn find(code: &str) -> Option<CodeText> {
    let wanted = code.trim().to_ascii_uppercase();
    let wanted = if wanted.starts_with("QB-") { wanted } else { format!("QB-{wanted}") };
    all().find(|known| known.code == wanted)
}

/// Every code in the order of the page.
pub fn all() -> impl Iterator<Item = CodeText> {
    tables().into_iter().flat_map(|(_, codes)| codes)
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
            let text = crate::text::wrapped(code.text, 98, "");
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
            assert!(seen.insert(code.code), "{} stands twice", code.code);
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
            codes::NODE,
            codes::DEMO,
            codes::OUTPUT,
        ] {
            assert!(find(code).is_some(), "{code}");
        }
    }

    #[test]
    fn codes_are_found_however_they_are_typed() {
        let code = find("QB-CFG-003").expect("it exists").code;
        assert_eq!(find("qb-cfg-003").map(|found| found.code), Some(code));
        assert_eq!(find(" cfg-003").map(|found| found.code), Some(code));
        assert!(find("CFG-3").is_none());
    }
}
