//! One group by itself: its canonical text, and how it is read among the groups that there are.

mod common;

use quorba_base::NodeId;
use quorba_config::{
    Backend, Checked, Code, Definition, Domain, GROUPS_MAX, Host, Known, read_group,
};

const BEGINNING: &str = r#"
[domain]
id = "d"
key_file = "k"
[gateway]
listen = 5000
[node.n1]
host = "10.0.0.1"
[node.n2]
host = "10.0.0.2"
gateway_port_offset = 10
[node.n3]
host = "10.0.0.2"
ring_port = 4701
gateway_port_offset = 20
"#;

const BANK: &str = r#"
[group.bank]
members = ["n1", "n2", "n3"]
listen = 5001
server = ["./bank", "{port}"]
state_object = "s"
[group.bank.env]
B = "2"
A = ""
"#;

fn check(groups: &str) -> Checked {
    common::check(&format!("{BEGINNING}{groups}"))
}

fn domain(groups: &str) -> Domain {
    common::domain(&format!("{BEGINNING}{groups}"))
}

fn codes(report: &quorba_config::Report) -> Vec<Code> {
    report.problems().iter().map(|problem| problem.code).collect()
}

/// A running domain: bank, at 5001, and the stateless mirror, which shop calls at 5002.
struct Running {
    groups: usize,
}

impl Known for Running {
    fn is_stateless(&self, name: &str) -> Option<bool> {
        ["bank", "shop", "mirror"].contains(&name).then_some(name == "mirror")
    }

    fn is_outside(&self, _: &str) -> bool {
        false
    }

    fn outside_count(&self) -> usize {
        0
    }

    fn listener(&self, port: u16) -> Option<String> {
        match port {
            5001 => Some("bank".into()),
            5002 => Some("mirror".into()),
            _ => None,
        }
    }

    fn caller_of(&self, name: &str) -> Option<String> {
        (name == "bank").then(|| "shop".into())
    }

    fn callers_beside(&self, name: &str) -> usize {
        usize::from(name != "shop")
    }

    fn count(&self) -> usize {
        self.groups
    }

    fn names(&self) -> Vec<String> {
        ["bank", "shop", "mirror"].map(String::from).into()
    }
}

fn read(text: &str) -> Result<quorba_config::Group, quorba_config::Report> {
    read_group(&domain(""), text, &Running { groups: 3 })
}

#[test]
fn what_is_said_twice_in_other_words_is_one_text_and_nothing_is_added() {
    let written = domain(BANK).definitions()[0].clone();
    let expected = "[group.bank]\nlisten = 5001\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
                    server = [\"./bank\", \"{port}\"]\nstate_object = \"s\"\n\n\
                    [group.bank.env]\nA = \"\"\nB = \"2\"\n";
    assert_eq!((written.name.as_str(), written.text.as_str()), ("bank", expected));
    let inline = "# the same\ngroup.bank = { env = { A = '', B = \"\\u0032\" }, listen = 0x1389, \
                  members = ['n3', 'n2', 'n1'], server = [ \"./bank\", \"{port}\", ], \
                  state_object = \"s\" }";
    assert_eq!(Definition::parse(inline).expect("the same"), written);
    assert_eq!(Definition::parse(&written.text).expect("the same"), written);
    for (from, to) in [
        ("5001", "5002"),
        ("\"n3\"", "\"n1\""),
        ("./bank", "bank"),
        ("B = \"2\"", "B = \"3\""),
        ("state_object = \"s\"", "state_object = \"s\"\nackk = 5"),
        ("[\"./bank\", \"{port}\"]", "[\"{port}\", \"./bank\"]"),
    ] {
        let other = Definition::parse(&BANK.replace(from, to)).expect("a definition");
        assert_ne!(other, written, "{from} -> {to}");
    }
}

#[test]
fn a_text_about_anything_else_than_one_group_is_no_definition() {
    for text in ["", "[group.a]\n[group.b]\n", "[group.a]\n[node.n1]\n", "[group.\n", "x = 1"] {
        assert!(Definition::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_definition_means_what_it_means_in_the_file() {
    let whole = domain(BANK);
    let text = &whole.definitions()[0].text;
    assert_eq!(read(text).expect("right"), whole.groups[0]);
    let Backend::Start(server) = &whole.groups[0].backend else { panic!("it is started") };
    assert_eq!(server.command[0].to_string(), "/etc/d/bank", "from the file's folder");
    assert!(text.contains("\"./bank\""), "each node has a folder of its own");
}

#[test]
fn a_definition_is_judged_like_a_file_and_against_the_groups_that_there_are() {
    let said = |text: &str| codes(&read(text).expect_err(text));
    let shop = |more: &str| {
        format!(
            "[group.shop]\nmembers = [\"n1\"]\nserver = [\"s\", \"{{port}}\", \"{{call.bank}}\"]\n\
             {more}\n"
        )
    };
    assert!(read(&shop("calls = [\"bank\"]")).is_ok(), "one member is only a warning");
    assert_eq!(
        said(&shop("calls = [\"bank\", \"mirror\"]")),
        [Code::CallsNeed, Code::FewMembers, Code::SilentSetting,]
    );
    assert!(said(&shop("calls = [\"bnk\"]")).contains(&Code::NoSuchGroup));
    assert!(said(&shop("calls = [\"bank\"]\nackk = 1")).contains(&Code::UnknownKey));
    assert!(said(&BANK.replace("\"n3\"", "\"n4\"")).contains(&Code::NoSuchNode));
    let stateless = BANK.replace("state_object = \"s\"", "style = \"stateless\"");
    assert_eq!(said(&stateless), [Code::CallsNeed], "shop calls it");
    let full = |text: &str| read_group(&domain(""), text, &Running { groups: GROUPS_MAX });
    assert!(full(BANK).is_ok(), "it is one of them");
    let new = BANK.replace("bank", "mill").replace("5001", "6001");
    assert_eq!(codes(&full(&new).expect_err("one too many")), [Code::TooMany]);
    assert!(read(&new).is_ok());
}

#[test]
fn a_port_that_a_group_or_a_node_has_is_not_given_twice() {
    let mill = |port: &str| {
        let text = BANK.replace("bank", "mill").replace("5001", port);
        read(&text).map(drop).map_err(|report| report.problems()[0].message.clone())
    };
    let taken = |port: &str| mill(port).expect_err(port);
    assert_eq!(taken("5001"), "groups bank and mill both listen on 5001");
    // n2 and n3 share a machine: 5011 at n2 is what bank has at n3.
    assert_eq!(
        taken("5011"),
        "n2 and n3 are on one host: the gateway of mill and the gateway of bank both need port 5021"
    );
    assert_eq!(taken("4700"), "the ring and the gateway of mill of n1 both need port 4700");
    assert_eq!(taken("5000"), "the gateway and the gateway of mill of n1 both need port 5000");
    assert_eq!(taken("65520"), "gateway port of group mill on n3 would be above 65535");
    assert_eq!(mill("6001"), Ok(()));
    assert!(read(BANK).is_ok(), "a group may keep its own port");
}

#[test]
fn a_group_without_a_port_is_reached_by_its_name_through_the_domains() {
    let shared = domain(&BANK.replace("listen = 5001\n", ""));
    let bank = &shared.groups[0];
    assert_eq!((bank.listen, bank.port), (None, 5000));
    assert_eq!(bank.gateway(&shared.nodes[1]).to_string(), "10.0.0.2:5010");
    assert_eq!(bank.client_key(b"k"), b"QRB/bank/k");
    assert_eq!(domain(BANK).groups[0].client_key(b"k"), b"k");
    let without = BEGINNING.replace("[gateway]\nlisten = 5000\n", "");
    let text = format!("{without}{}", BANK.replace("listen = 5001\n", ""));
    let refused = common::check(&text).report;
    assert_eq!(codes(&refused), [Code::MissingKey]);
    assert!(refused.to_string().contains("[gateway] listen = 5000"), "{refused}");
    // A second node of one machine needs an offset for the domain's port, too.
    let text = format!("{}{BANK}", BEGINNING.replace("gateway_port_offset = 20\n", ""));
    let text = text.replace("gateway_port_offset = 10\n", "");
    let refused = common::check(&text).report;
    let said = "n2 and n3 are on one host: the gateway and the gateway both need port 5000";
    assert!(refused.problems().iter().any(|problem| problem.message == said), "{refused}");
}

#[test]
fn a_server_that_would_make_references_without_its_name_is_warned_of() {
    let text = BANK.replace("listen = 5001\n", "").replace("{port}\"", "{port}\", \"{gateways}\"");
    assert_eq!(codes(&check(&text).report), [Code::OwnReferences]);
    let own = BANK.replace("{port}\"", "{port}\", \"{gateways}\"");
    assert_eq!(codes(&check(&own).report), []);
}

/// `corbaloc::HOST:PORT/KEY` as an IOR of a type.
fn ior(corbaloc: &str, type_id: &str) -> String {
    let mut ior = quorba_giop::corbaloc::parse(corbaloc).expect("a URL").to_ior();
    ior.type_id = type_id.into();
    ior.stringify(quorba_giop::Endian::Big)
}

fn connected(n1: &str, n2: &str, more: &str) -> Checked {
    check(&format!(
        "[group.names]\nmembers = [\"n1\", \"n2\"]\nstate_object = \"s\"\n\
         connect = {{ n2 = \"{n2}\", n1 = \"{n1}\" }}\n{more}\n"
    ))
}

#[test]
fn a_server_that_runs_already_may_be_given_by_the_reference_of_its_object() {
    let one = ior("corbaloc::10.0.0.1:2809/first", "IDL:Names:1.0");
    let read = connected(&one, "corbaloc::10.0.0.2:2810/second%00", "");
    let domain = read.domain.unwrap_or_else(|| panic!("{}", read.report));
    let names = &domain.groups[0];
    let Backend::Connect(servers) = &names.backend else { panic!("it runs already") };
    assert_eq!(servers[0].1.endpoint.to_string(), "10.0.0.1:2809");
    assert_eq!(servers[1].1.endpoint.to_string(), "10.0.0.2:2810");
    assert!(matches!(servers[0].1.endpoint.host, Host::Address(_)));
    assert_eq!(servers[1].1.object_key.as_deref(), Some(&b"second\0"[..]));
    assert_eq!(names.object_key.as_deref(), Some(&b"first"[..]), "the first member's");
    assert_eq!(names.type_id.as_deref(), Some("IDL:Names:1.0"));
    let id = |index| NodeId::new(index).expect("a node");
    assert_eq!(names.object_key_at(id(1)), Some(&b"second\0"[..]));
    // What the file says itself counts.
    let said = "object_key = \"mine\"\ntype_id = \"IDL:Mine:1.0\"";
    let domain = connected(&one, "10.0.0.2:2810", said).domain.expect("right");
    let names = &domain.groups[0];
    assert_eq!(names.object_key.as_deref(), Some(&b"mine"[..]));
    assert_eq!(names.type_id.as_deref(), Some("IDL:Mine:1.0"));
    assert_eq!(names.object_key_at(id(0)), Some(&b"first"[..]));
    assert_eq!(names.object_key_at(id(1)), Some(&b"mine"[..]));
}

#[test]
fn references_that_cannot_be_used_are_refused_and_say_why() {
    let good = "corbaloc::10.0.0.1:2809/first";
    let nil = quorba_giop::Ior::nil().stringify(quorba_giop::Endian::Big);
    let mut other = quorba_giop::Ior::nil();
    other.type_id = "IDL:X:1.0".into();
    other.profiles.push(quorba_giop::ior::Profile { tag: 77, data: vec![1] });
    let other = other.stringify(quorba_giop::Endian::Big);
    for (reference, why) in [
        (nil.as_str(), "it is a nil reference"),
        (other.as_str(), "it has no IIOP profile"),
        ("IOR:0", "cannot be used"),
        ("corbaloc::10.0.0.2:x/k", "cannot be used"),
        ("corbaloc:rir:/k", "cannot be used"),
    ] {
        let report = connected(good, reference, "").report;
        let found = report.problems().iter().find(|problem| problem.code == Code::BadReference);
        let found = found.unwrap_or_else(|| panic!("{reference}: {report}"));
        assert!(found.message.contains(why), "{}", found.message);
    }
    let report = connected(good, "10.0.0.2:2810", "").report;
    assert_eq!(codes(&report), [Code::BadReference], "nobody knows the key at n2");
    let report = connected(good, "corbaloc::10.0.0.2:2810,:10.0.0.3:1/second", "").report;
    assert_eq!(codes(&report), [Code::SilentSetting], "{report}");
    let said = "connect uses 10.0.0.2:2810 of the reference, and not 10.0.0.3:1";
    assert_eq!(report.problems()[0].message, said);
}

#[test]
fn references_to_objects_of_different_types_are_told_unless_the_file_says_the_type() {
    let one = ior("corbaloc::10.0.0.1:2809/first", "IDL:Names:1.0");
    let other = ior("corbaloc::10.0.0.2:2810/second", "IDL:Echo:1.0");
    let report = connected(&one, &other, "").report;
    assert_eq!(codes(&report), [Code::SilentSetting], "{report}");
    let said = "the reference for n2 is to an object of type IDL:Echo:1.0, and that for n1 of type \
                IDL:Names:1.0";
    assert_eq!(report.problems()[0].message, said);
    let typed = connected(&one, &other, "type_id = \"IDL:Base:1.0\"").report;
    assert_eq!(codes(&typed), []);
    assert_eq!(codes(&connected(&one, "corbaloc::10.0.0.2:2810/second", "").report), []);
}

#[test]
fn a_note_may_be_as_long_as_its_definition_and_other_texts_may_not() {
    let long = "0".repeat(40_000);
    let table = BANK.replace("[group.bank.env]", &format!("note = \"{long}\"\n[group.bank.env]"));
    let group = domain(&table);
    assert_eq!(group.groups[0].note.as_ref().map(String::len), Some(40_000));
    let other = check(&BANK.replace("./bank", &long));
    assert_eq!(codes(&other.report), [Code::TooMany]);
}
