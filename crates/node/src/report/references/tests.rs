//! Where references lead, by what the domain file and this node know.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const FILE: &str = "[domain]\nid = \"d\"\nkey_file = \"domain.key\"\n\
    [node.n1]\nhost = \"10.0.0.1\"\n[node.n2]\nhost = \"n2.plant\"\n\
    [node.n3]\nhost = \"10.0.0.3\"\n\
    [group.bank]\nlisten = 5000\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
    server = [\"bank\", \"{port}\"]\nobject_key = \"bank\"\n\
    [group.names]\nlisten = 5001\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
    connect = { n1 = \"10.0.0.1:2809\", n2 = \"10.0.0.2:2809\", n3 = \"127.0.0.1:2809\" }\n";

fn domain() -> Domain {
    domain_of(FILE)
}

fn domain_of(text: &str) -> Domain {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, key) = (folder.path().join("quorba.toml"), folder.path().join("domain.key"));
    fs::write(&path, text).expect("written");
    fs::write(&key, "7e".repeat(32)).expect("written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("allowed");
    Domain::load(&path).expect("a domain")
}

/// Judged at n1, whose servers listen at 40001 and 2809, and which is also called `here`.
fn judged(addresses: &[(&str, u16)], key: &str) -> Option<(ReferenceKind, String)> {
    let domain = domain();
    let me = domain.node_id("n1").expect("a node");
    let (groups, ports) = (Groups::of_domain(&domain), [40_001, 2809]);
    let scene =
        Scene { domain: &domain, groups: &groups, me, group: &domain.groups[0], ports: &ports };
    let addresses = addresses.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect();
    let keys = vec![key.as_bytes().to_vec()];
    scene.judge(&Found { offset: 0, end: 0, addresses, keys }, &mut |host| host == "here")
}

fn past(address: &str) -> Option<(ReferenceKind, String)> {
    Some((ReferenceKind::PastTheOrder, address.to_owned()))
}

#[test]
fn a_servers_own_address_leads_past_the_order_wherever_it_stands() {
    assert_eq!(judged(&[("here", 40_001)], "k"), past("here:40001"));
    assert_eq!(judged(&[("10.0.0.1", 40_001)], "k"), past("10.0.0.1:40001"));
    assert_eq!(judged(&[("10.0.0.1", 5000), ("here", 40_001)], "k"), past("here:40001"));
    // That of another group on this node, and those that the file names at any node.
    assert_eq!(judged(&[("here", 2809)], "k"), past("here:2809"));
    assert_eq!(judged(&[("10.0.0.2", 2809)], "k"), past("10.0.0.2:2809"));
}

#[test]
fn the_groups_own_object_at_a_port_that_is_no_gateway_is_a_server() {
    assert_eq!(judged(&[("10.0.0.3", 6000)], "bank"), past("10.0.0.3:6000"));
    assert_eq!(judged(&[("N2.PLANT", 6000)], "bank"), past("N2.PLANT:6000"));
    assert_eq!(judged(&[("10.0.0.3", 6000)], "other"), None);
    assert_eq!(judged(&[("10.9.9.9", 6000)], "bank"), None, "another domain's");
}

#[test]
fn one_gateway_is_noted_and_several_or_a_name_of_them_all_are_not() {
    let one = Some((ReferenceKind::OneGateway, "10.0.0.1:5000".to_owned()));
    assert_eq!(judged(&[("10.0.0.1", 5000)], "bank"), one);
    assert_eq!(judged(&[("10.0.0.1", 5000), ("n2.plant", 5000)], "bank"), None);
    assert_eq!(judged(&[("virtual", 5000)], "bank"), None);
}

#[test]
fn what_is_not_of_the_domain_is_nobodys_business() {
    assert_eq!(judged(&[("10.9.9.9", 40_001)], "k"), None, "the port alone says nothing");
    assert_eq!(judged(&[("10.0.0.9", 2809)], "NameService"), None);
}

#[test]
fn each_operation_is_told_once_and_counted_and_so_many_are_remembered() {
    let mut known = References::default();
    let group = GroupId(0);
    assert!(known.saw(group, "open", ReferenceKind::PastTheOrder, "h:1".into()));
    assert!(!known.saw(group, "open", ReferenceKind::PastTheOrder, "h:2".into()));
    assert!(known.saw(group, "open", ReferenceKind::OneGateway, "h:3".into()));
    let status = known.status(group);
    assert_eq!((status[0].times, status[0].address.as_str()), (2, "h:2"));
    (0..100).for_each(|number| {
        known.saw(group, &number.to_string(), ReferenceKind::OneGateway, "h:4".into());
    });
    assert_eq!(known.status(group).len(), 1 + OPERATIONS_MAX);
    // Notes leave room for what harms.
    assert!(known.saw(group, "harms", ReferenceKind::PastTheOrder, "h:5".into()));
    known.forget(group);
    assert_eq!(known.status(group), []);
}

#[test]
fn the_keys_of_the_last_replies_of_each_operation_are_remembered() {
    let mut known = References::default();
    let found = |key: &str| {
        vec![Found { offset: 0, end: 0, addresses: Vec::new(), keys: vec![key.into()] }]
    };
    for request in 0..1000 {
        known.saw_keys(GroupId(0), &format!("o{}", request % 40), request, &found("k"));
    }
    assert!(known.keys(GroupId(0)).len() <= OPERATIONS_MAX * REPLIES_MAX);
    known.saw_keys(GroupId(0), "open", 2000, &found("other"));
    let keys = known.keys(GroupId(0));
    let last = keys.last().expect("just seen");
    assert_eq!((last.request, last.key.as_str()), (2000, "other"));
    assert!(keys[..keys.len() - 1].iter().all(|one| one.digest != last.digest));
}

#[test]
fn loopback_is_this_machine() {
    assert!(is_this_machine("127.0.0.1") && is_this_machine("localhost"));
    assert!(!is_this_machine("192.0.2.1") && !is_this_machine("no-such.example"));
}

/// Judged at n1 for a group of each kind in a domain whose groups share a port.
fn judged_where_groups_share_a_port(
    group: &str,
    address: (&str, u16),
    key: &str,
) -> Option<(ReferenceKind, String)> {
    let text = format!(
        "{FILE}[gateway]\nlisten = 5010\n\
         [group.shares]\nmembers = [\"n1\", \"n2\"]\nstate_object = \"state\"\n\
         connect = {{ n1 = \"corbaloc::10.0.0.1:6001/east/bank\", n2 = \
         \"corbaloc::10.0.0.2:6002/west/bank\" }}\n"
    );
    let domain = domain_of(&text);
    let me = domain.node_id("n1").expect("a node");
    let groups = Groups::of_domain(&domain);
    let group = domain.group(group).expect("a group");
    let scene = Scene { domain: &domain, groups: &groups, me, group, ports: &[] };
    let addresses = vec![(address.0.to_owned(), address.1)];
    let found = Found { offset: 0, end: 0, addresses, keys: vec![key.as_bytes().to_vec()] };
    scene.judge(&found, &mut |host| host == "here")
}

#[test]
fn at_the_port_that_groups_share_the_key_must_name_one_of_them() {
    let refused = Some((ReferenceKind::NoGroup, "10.0.0.1:5010".to_owned()));
    let one = Some((ReferenceKind::OneGateway, "10.0.0.1:5010".to_owned()));
    for (key, wanted) in [
        ("QRB/shares/east/bank", &one),
        ("QRB/shares/any", &one),
        ("east/bank", &refused),
        ("QRB/nobody/bank", &refused),
        ("QRB/bank/bank", &refused),
        ("QRB/shares", &refused),
    ] {
        let found = judged_where_groups_share_a_port("shares", ("10.0.0.1", 5010), key);
        assert_eq!(&found, wanted, "{key}");
    }
    // A group's own port takes what its servers write.
    let own = judged_where_groups_share_a_port("bank", ("10.0.0.1", 5000), "any");
    assert_eq!(own, Some((ReferenceKind::OneGateway, "10.0.0.1:5000".to_owned())));
}

#[test]
fn a_members_own_key_at_a_port_that_is_no_gateway_is_a_server() {
    for key in ["east/bank", "west/bank", "state"] {
        let found = judged_where_groups_share_a_port("shares", ("10.0.0.3", 7000), key);
        assert_eq!(found, past("10.0.0.3:7000"), "{key}");
    }
    let found = judged_where_groups_share_a_port("shares", ("10.0.0.3", 7000), "QRB/shares/state");
    assert_eq!(found, None, "a key that names a group is for gateways");
}
