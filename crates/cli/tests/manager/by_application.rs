//! Groups whose members' states are the application's (CONS_APP_CTRL): members come back, others
//! take their place, and more come in, each without a state.

use super::*;
use quorba_idl::ft::generic_factory::CreateObjectError;

fn by_application(more: Vec<Property>) -> ft::Criteria {
    let mut own = vec![property("org.omg.ft.ConsistencyStyle", &ft::CONS_APP_CTRL)];
    own.extend(more);
    vec![property("org.omg.ft.FTProperties", &own)]
}

fn of(initial: u16, minimum: u16) -> ft::Criteria {
    by_application(vec![
        property("org.omg.ft.InitialNumberReplicas", &initial),
        property("org.omg.ft.MinimumNumberReplicas", &minimum),
    ])
}

/// Nodes with a member that is in, as the first one knows it.
fn inside(domain: &Domain, group: &str) -> Vec<String> {
    let status = domain.status();
    let groups = status["nodes"][0]["status"]["groups"].as_array().expect("a list").clone();
    let group = groups.iter().find(|one| one["name"] == group).expect("a group").clone();
    let members = group["members"].as_array().expect("a list");
    let is_in = |member: &&serde_json::Value| member["state"] == "in";
    let name = |member: &serde_json::Value| member["node"].as_str().expect("a name").to_owned();
    members.iter().filter(is_in).map(name).collect()
}

#[test]
fn members_of_a_group_whose_states_are_the_applications_come_back_and_more_come_in() {
    let domain = domain();
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    let created = ReplicationManagerStub(&mut manager).create_object(&PROMPT.to_owned(), &of(2, 1));
    let group = created.expect("created").0;
    let mut bank = ledger(&group);
    bank.open("a", "1").expect("opened");
    assert_eq!(bank.deposit("a", 5, "2").expect("booked"), 5);

    // Its server is killed, and started again.
    let before = process(&domain, "n2", Some("object-1"));
    kill(&domain, "n2", Some("object-1"));
    wait_until("another server is in", || {
        let status = domain.status();
        let groups = status["nodes"][1]["status"]["groups"].as_array().expect("a list").clone();
        let own = groups.iter().find(|one| one["name"] == "object-1").expect("a group").clone();
        let is_another = own["server"]["pid"]
            .as_i64()
            .is_some_and(|pid| pid != i64::from(before.as_raw_nonzero().get()));
        is_another && inside(&domain, "object-1") == ["n1", "n2"]
    });
    assert_eq!(bank.deposit("a", 1, "3").expect("booked"), 6, "n1 has what it had");

    // One more member, at a node that had none.
    let mut at = |location: &str| {
        let none = ft::Criteria::new();
        let (location, of) = (name(location), PROMPT.to_owned());
        ReplicationManagerStub(&mut manager).create_member(&group, &location, &of, &none)
    };
    let larger = at("n3").expect("it comes in");
    assert_eq!(inside(&domain, "object-1"), ["n1", "n2", "n3"]);
    assert_eq!(ledger(&larger).deposit("a", 1, "4").expect("booked"), 7);
}

#[test]
fn the_minimum_of_a_group_whose_states_are_the_applications_is_restored() {
    let domain = domain();
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    let mut create = |of_type: &str, criteria| {
        ReplicationManagerStub(&mut manager).create_object(&of_type.to_owned(), &criteria)
    };
    let refused = create(DURABLE, of(2, 2));
    assert!(matches!(refused, Err(CreateObjectError::InvalidProperty(_))), "{refused:?}");
    let passive = by_application(vec![property("org.omg.ft.ReplicationStyle", &ft::WARM_PASSIVE)]);
    let refused = create(LEDGER, passive);
    assert!(matches!(refused, Err(CreateObjectError::InvalidProperty(_))), "{refused:?}");

    let (group, id) = create(LEDGER, of(2, 2)).expect("created");
    let number = id.get::<u64>().expect("a number");
    let name_of_group = format!("object-{number}");
    let mut bank = ledger(&group);
    bank.open("a", "1").expect("opened");
    kill(&domain, "n2", Some(&name_of_group));
    wait_until("the minimum is restored", || inside(&domain, &name_of_group) == ["n1", "n3"]);
    assert_eq!(bank.deposit("a", 5, "2").expect("booked"), 5);
}
