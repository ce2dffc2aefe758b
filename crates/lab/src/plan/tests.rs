//! Tests of what can be run and what not.

use super::*;

fn refusal(result: Result<Plan, LabError>) -> String {
    match result {
        Err(LabError::Plan(what)) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_built_in_plan_can_be_run() {
    for name in BUILT_IN.iter().map(|(name, _)| *name).chain([irl::PLAN]) {
        let plan = Plan::find(name).expect("a plan");
        assert_eq!(plan.name, name);
        let recorded = plan.configurations.iter().all(|one| one.repeats.is_some());
        assert!(plan.rounds >= 5 || recorded, "medians of fewer rounds say little");
    }
}

#[test]
fn what_does_not_exist_is_named() {
    let what = refusal(Plan::find("basline"));
    assert!(what.contains("\"basline\"") && what.contains("baseline"), "{what}");
    let plan = Plan::find("baseline").expect("a plan");
    let only = Some(vec!["grup".to_owned()]);
    let what = refusal(plan.with(Changes { only, ..Changes::default() }));
    assert!(what.contains("\"grup\"") && what.contains("group"), "{what}");
}

#[test]
fn fewer_configurations_keep_only_their_steps() {
    let plan = Plan::find("baseline").expect("a plan");
    let only = Some(vec!["one-node".to_owned()]);
    let calls = Some(50);
    let plan = plan.with(Changes { only, calls, ..Changes::default() }).expect("a plan");
    let names: Vec<_> = plan.configurations.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["direct", "one-node"]);
    let steps: Vec<_> = plan.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(steps, ["gateway"]);
    assert_eq!((plan.calls, plan.warm_up), (50, 5));
}

#[test]
fn what_cannot_be_run_is_refused() {
    let text = BUILT_IN[0].1;
    for (from, to, word) in [
        ("rounds = 5 ", "rounds = 0 ", "rounds"),
        ("processes = 2", "processes = 1", "processes"),
        ("members = 3 }", "members = 4 }", "member"),
        ("name = \"udp-2\"", "name = \"udp-3\"", "two configurations"),
        ("name = \"udp-2\"", "name = \"udp/2\"", "udp/2"),
        ("nodes = 3, members = 1", "nodes = 3, client = 4, members = 1", "client"),
        ("ack = \"agreed\"", "ack = \"agred\"", "agreed"),
        ("encrypt = false", "encryt = false", "encrypt"),
        ("against = \"direct\"", "against = \"absent\"", "absent"),
        ("to = \"tcp\"", "to = \"tpc\"", "tpc"),
        ("rounds = 5 ", "round = 5 ", "round"),
    ] {
        assert!(text.contains(from), "{from}");
        let what = refusal(Plan::parse(&text.replacen(from, to, 1)));
        assert!(what.contains(word), "{to}: {what}");
    }
}

#[test]
fn an_orb_is_used_where_its_programs_can_be() {
    let throughput = Plan::find("throughput").expect("a plan");
    assert!(throughput.orbs().any(|orb| orb == Orb::Jacorb));
    let one = throughput.configuration("java-group-16").expect("it is there");
    assert_eq!(throughput.warm_up_of(one), 40_000);
    let calls = Some(1_000);
    let short = throughput.clone().with(Changes { calls, ..Changes::default() }).expect("a plan");
    let one = short.configuration("java-group-16").expect("it is there");
    assert_eq!(short.warm_up_of(one), 1_000, "no more than what is measured");
    let text = include_str!("../../plans/throughput.toml");
    for (from, to, word) in [
        ("name = \"java-group-16\"", "name = \"java-group-16\"\nthink_us = 5", "thinks"),
        (
            "members = 3, group.concurrency = \"pipelined\" } }",
            "members = 3, server_socket = true } }",
            "socket",
        ),
        (
            "chain = { bare-group = {} }",
            "server_orb = \"jacorb\"\nchain = { bare-group = {} }",
            "bare group",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let what = refusal(Plan::parse(&text.replacen(from, to, 1)));
        assert!(what.contains(word), "{to}: {what}");
    }
}
