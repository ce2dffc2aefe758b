//! Members that are created, removed and replaced in running nodes, and what is told where that
//! cannot be.

use quorba_idl::ft::generic_factory::CreateObjectError;

use super::*;

/// A server that has no state to hand out.
const STATELESS: &str = "IDL:Bank/StatelessLedger:1.0";
/// A server that ends at once on node n2.
const PARTIAL: &str = "IDL:Bank/PartialLedger:1.0";

fn domain() -> Domain {
    let ports = stage::free_ports(21_500, 12);
    let (manager, shared) = (ports, ports + 3);
    let server = format!("[\"{QUORBA}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]");
    let script = format!("test {{node}} != n2 && exec {QUORBA} servant bank --port {{port}}");
    Domain::start_group(&format!(
        "[gateway]\nlisten = {shared}\n\
         [service.replication-manager]\nlisten = {manager}\n\
         [type.\"{STATELESS}\"]\nserver = {server}\nobject_key = \"bank\"\n\
         [type.\"{PARTIAL}\"]\nserver = [\"/bin/sh\", \"-c\", \"{script}\"]\n\
         state_object = \"bank\"\nobject_key = \"bank\"\n"
    ))
}

#[test]
fn why_an_object_was_not_created_is_told_by_the_status() {
    let domain = domain();
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    let own = vec![property("org.omg.ft.ReplicationStyle", &ft::WARM_PASSIVE)];
    let criteria = vec![property("org.omg.ft.FTProperties", &own)];
    let created =
        ReplicationManagerStub(&mut manager).create_object(&STATELESS.to_owned(), &criteria);
    assert!(matches!(created, Err(CreateObjectError::ObjectNotCreated(_))), "{created:?}");
    wait_until("an operator is told", || {
        let status = domain.status();
        let nodes = status["nodes"].as_array().expect("a list");
        let warnings = nodes.iter().filter_map(|node| node["status"]["warnings"].as_array());
        let mut texts = warnings.flatten().filter_map(|warning| warning.as_str());
        texts.any(|text| text.contains(STATELESS) && text.contains("state_object"))
    });
}

#[test]
fn the_last_member_hands_its_state_over_and_a_server_that_never_starts_is_replaced() {
    let domain = domain();
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    let criteria = vec![property("org.omg.ft.ObjectLocation", &name("n1"))];
    let created =
        ReplicationManagerStub(&mut manager).create_object(&PARTIAL.to_owned(), &criteria);
    let (group, _) = created.expect("created");
    assert_eq!(locations(&mut manager, &group), ["n1"]);
    ledger(&group).open("a", "1").expect("opened");
    assert_eq!(ledger(&group).deposit("a", 5, "2").expect("booked"), 5);
    // At n2 no server starts, so that n3 is tried by itself.
    let mut it = ReplicationManagerStub(&mut manager);
    it.create_member(&group, &name("n3"), &PARTIAL.to_owned(), &Vec::new()).expect("created");
    it.remove_member(&group, &name("n1")).expect("removed");
    let now = it.remove_member(&group, &name("n3")).expect("removed");
    assert_eq!(locations(&mut manager, &group), ["n1"]);
    assert_eq!(ledger(&now).balance("a").expect("it answers"), 5);

    let two = vec![property("org.omg.ft.MinimumNumberReplicas", &2_u16)];
    let set = ReplicationManagerStub(&mut manager).set_properties_dynamically(&group, &two);
    set.expect("set");
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    wait_until("another location has taken over", || {
        locations(&mut manager, &group) == ["n1", "n3"]
    });
    let latest = ReplicationManagerStub(&mut manager).get_object_group_ref(&group).expect("one");
    assert_eq!(ledger(&latest).balance("a").expect("it answers"), 5);
}
