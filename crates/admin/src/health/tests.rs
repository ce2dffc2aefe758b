//! Each fact is found where it is the case, by its name, and nothing is found where all is well.

use super::*;
use crate::requests::EndKind;
use crate::status::{
    ChannelStatus, DifferStatus, EndedStatus, GroupStatus, LogStatus, MemberState, MemberStatus,
    MissingChannelStatus, NodeStatus, RefusalStatus, RequestStatus, RingStatus, ServerStatus,
    SlowestStatus, StateRefusedStatus, StuckStatus, WaitStatus,
};
use crate::status::{SchedulingStatus, ServerState};

const NODES: [&str; 3] = ["n1", "n2", "n3"];

fn group() -> GroupStatus {
    let member = |node: &str| MemberStatus {
        node: node.into(),
        state: MemberState::In,
        ..MemberStatus::default()
    };
    GroupStatus {
        name: "bank".into(),
        style: "active".into(),
        has_state_object: true,
        members: NODES.map(member).into(),
        server: Some(ServerStatus { state: ServerState::Running, ..ServerStatus::default() }),
        ..GroupStatus::default()
    }
}

fn status(node: &str) -> Status {
    let seen =
        |name: &str| NodeStatus { name: name.into(), in_view: true, ..NodeStatus::default() };
    Status {
        node: node.into(),
        ring: RingStatus { view_seq: 8, primary: true, ..RingStatus::default() },
        nodes: NODES.map(seen).into(),
        groups: vec![group()],
        ..Status::default()
    }
}

/// The judgement after `change` of what each node says.
fn judged(change: impl Fn(&mut Status)) -> Judgement {
    let mut all = NODES.map(status);
    all.iter_mut().for_each(change);
    judge(&all.each_ref().map(Seen::Answered), None)
}

fn server(status: &mut Status) -> &mut ServerStatus {
    status.groups[0].server.as_mut().expect("it has one")
}

/// What is found if one node says something else.
fn found_at(node: &str, change: impl Fn(&mut Status)) -> Vec<String> {
    let judgement = judged(|status| {
        if status.node == node {
            change(status);
        }
    });
    assert_eq!(judgement.health == Health::Ok, judgement.findings.is_empty());
    for one in &judgement.findings {
        assert!(one.next.is_some() || one.fact == "other-view", "{one:?}");
        assert!(!one.what.is_empty() && one.health != Health::Ok, "{one:?}");
    }
    judgement.findings.into_iter().map(|one| one.fact).collect()
}

/// What is found if all say so.
fn found(change: impl Fn(&mut Status)) -> Vec<String> {
    let judgement = judged(change);
    assert!(judgement.findings.iter().all(|one| one.health != Health::Ok));
    judgement.findings.into_iter().map(|one| one.fact).collect()
}

#[test]
fn a_domain_of_which_all_is_well_is_healthy() {
    assert_eq!(judged(|_| {}), Judgement { health: Health::Ok, findings: vec![], notes: vec![] });
}

#[test]
fn what_takes_calls_their_answers_is_found() {
    let no_primary = |status: &mut Status| status.ring.primary = false;
    assert_eq!(judged(no_primary).health, Health::NoQuorum);
    assert_eq!(found(no_primary), ["no-primary"]);
    let nobody = |status: &mut Status| {
        status.groups[0].members.iter_mut().for_each(|member| member.state = MemberState::Out);
    };
    assert_eq!(found(nobody), ["nobody-in", "member-out", "member-out", "member-out"]);
    let stuck = StuckStatus { since_ms: 45_000, ..StuckStatus::default() };
    assert_eq!(found(|it| it.groups[0].stuck = vec![stuck.clone()]), ["stuck"]);
    // The others have gone on, so it is the server.
    assert_eq!(found_at("n2", |it| it.groups[0].stuck = vec![stuck.clone()]), ["late"]);
    let open = |it: &mut Status| match it.node.as_str() {
        "n1" => it.groups[0].waiting = vec![stuck.request.clone()],
        "n2" => it.groups[0].stuck = vec![stuck.clone()],
        _ => {}
    };
    assert_eq!(found(open), ["stuck"], "nobody has answered it");
    let leads = |it: &mut Status| {
        it.groups[0].style = "warm-passive".into();
        if it.node == "n2" {
            it.groups[0].stuck = vec![stuck.clone()];
        }
    };
    // The others do not execute.
    assert_eq!(found(leads), ["stuck"]);
    let waits = WaitStatus { client: "10.0.0.3".into(), since_ms: 45_000 };
    assert_eq!(
        found_at("n3", |it| it.groups[0].longest_wait = Some(waits.clone())),
        ["unanswered"]
    );
    let known = |it: &mut Status| {
        it.groups[0].longest_wait = Some(waits.clone());
        it.groups[0].stuck = vec![stuck.clone()];
    };
    assert_eq!(found(known), ["stuck"], "that is why");
    assert_eq!(found(|it| it.groups[0].late = vec!["n3".into()]), ["late"]);
    assert_eq!(found_at("n3", |it| server(it).closes = 3), ["closes"]);
    let no_object = |it: &mut Status| server(it).missing_object = Some("bnak".into());
    assert_eq!(found_at("n1", no_object), ["object-missing"]);
    let waits = LogStatus { waits: Some("no room".into()), ..LogStatus::default() };
    assert_eq!(found_at("n1", |it| it.log = Some(waits.clone())), ["log-waits"]);
    assert_eq!(found(|it| it.groups[0].waits_for = vec!["n2".into()]), ["waits-for-memory"]);
}

#[test]
fn a_server_that_is_started_again_says_what_became_of_it_before() {
    let down = |it: &mut Status| {
        it.groups[0].members[0].state = MemberState::Down;
        it.groups[0].members[0].reason = Some("its server has not joined yet".into());
        if it.node == "n1" {
            server(it).state = ServerState::Starting;
            server(it).reason = Some("did not serve within 15000 ms".into());
        }
    };
    let found = judged(down).findings;
    let told = "its server has not joined yet: did not serve within 15000 ms";
    assert!(found[0].what.contains(told), "{found:?}");
}

#[test]
fn a_node_that_runs_and_is_refused_is_not_to_be_started() {
    let refuses = |it: &mut Status, is_proven| {
        it.nodes[2].in_view = false;
        let code = "QB-RING-006".into();
        it.nodes[2].refused = Some(RefusalStatus { code, is_proven, ..RefusalStatus::default() });
        if it.node == "n3" {
            it.ring.view_seq = 65;
            it.ring.primary = false;
        }
    };
    assert_eq!(found(|it| refuses(it, true)), ["refused"]);
    // It says how it is, so it runs.
    assert_eq!(found(|it| refuses(it, false)), ["refused"]);
    let mut two = ["n1", "n2"].map(status);
    two.iter_mut().for_each(|it| refuses(it, false));
    let silent = Seen::Silent { node: "n3", why: "refused".into(), is_suspect: false };
    let seen = [Seen::Answered(&two[0]), Seen::Answered(&two[1]), silent];
    let facts: Vec<_> = judge(&seen, None).findings.into_iter().map(|one| one.fact).collect();
    assert!(facts.contains(&"node-away".to_owned()), "somebody may forge it: {facts:?}");
}

#[test]
fn replicas_that_may_differ_are_found() {
    assert_eq!(found(|it| it.groups[0].may_differ = Some(7)), ["may-differ"]);
    let differ = DifferStatus { what: "replied differently".into(), ..DifferStatus::default() };
    // One node may have been started anew since.
    assert_eq!(found_at("n2", |it| it.groups[0].differ = Some(differ.clone())), ["differ"]);
}

#[test]
fn what_the_next_fault_would_lose_is_found() {
    let one_left = |it: &mut Status| {
        it.groups[0].members[..2].iter_mut().for_each(|member| member.state = MemberState::Down);
    };
    assert_eq!(found(one_left), ["member-out", "member-out", "last-member"]);
    let on_disks = |it: &mut Status| {
        one_left(it);
        it.groups[0].durable = true;
    };
    assert_eq!(found(on_disks), ["member-out", "member-out"]);
    // Whom an operator took out is where it should be; what is left is one of one.
    let removed = |it: &mut Status| {
        it.groups[0].members[..2].iter_mut().for_each(|member| member.state = MemberState::Removed);
    };
    assert_eq!(found(removed), Vec::<String>::new());
    assert_eq!(found(|it| it.nodes[2].in_view = false), ["node-away"]);
    let refused = |times| StateRefusedStatus {
        times,
        reason: "IDL:omg.org/CORBA/MARSHAL:1.0".into(),
        minor: Some(0x4154_0045),
        bytes: Some(1_900_000),
    };
    let refuses = |it: &mut Status, times| it.groups[0].state_refused = Some(refused(times));
    assert_eq!(found_at("n1", |it| refuses(it, 1)), Vec::<String>::new());
    assert_eq!(found_at("n1", |it| refuses(it, 2)), ["state-refused"]);
    let not_taken = |it: &mut Status| it.groups[0].state_not_taken = Some(refused(1));
    assert_eq!(found_at("n3", not_taken), ["state-not-taken"]);
    assert_eq!(found_at("n2", |it| it.groups[0].checkpoint_overdue = true), ["checkpoint-overdue"]);
    assert_eq!(found_at("n2", |it| server(it).state = ServerState::Quarantined), ["quarantined"]);
    assert_eq!(found_at("n2", |it| it.ring.view_seq = 7), ["other-view"]);
}

#[test]
fn a_request_without_a_reply_is_told_and_makes_nobody_ill() {
    let ended = |client: Option<&str>| EndedStatus {
        request: RequestStatus {
            number: 7,
            operation: "add".into(),
            gateway: "n2".into(),
            client: client.map(str::to_owned),
            ..RequestStatus::default()
        },
        end: EndKind::NoReply,
        how: "nobody replied".into(),
    };
    let mut all = NODES.map(status);
    all[0].groups[0].ended = vec![ended(None)];
    all[1].groups[0].ended = vec![ended(Some("10.0.0.3"))];
    let seen = all.each_ref().map(Seen::Answered);
    assert_eq!(judge(&seen, None).health, Health::Ok);
    let note = ended_note(&seen, "bank").expect("there is one");
    assert!(note.contains("10.0.0.3 at n2"), "{note}");
    assert_eq!(ended_note(&seen, "shop"), None);
}

#[test]
fn threads_that_may_not_be_real_time_are_noted_with_what_helps_and_make_nobody_ill() {
    let refused = |refused: Option<&str>| {
        judged(|it| {
            if it.node == "n2" {
                server(it).scheduling = Some(SchedulingStatus {
                    wanted_priority: 42,
                    real_time_priority: if refused.is_some() { 0 } else { 42 },
                    refused: refused.map(str::to_owned),
                });
            }
        })
    };
    assert_eq!(refused(None).notes, []);
    let Judgement { health, findings, notes } = refused(Some("Operation not permitted"));
    assert_eq!((health, findings.len(), notes.len()), (Health::Ok, 0, 1));
    assert_eq!((&*notes[0].fact, notes[0].node.as_deref()), ("not-real-time", Some("n2")));
    assert!(notes[0].what.contains("priority 42: Operation not permitted"), "{notes:?}");
    let next = notes[0].next.as_deref().expect("something helps");
    assert!(next.contains("CAP_SYS_NICE") && next.contains("LimitRTPRIO=42"), "{next}");
}

#[test]
fn what_the_end_of_all_nodes_lost_is_noted_for_a_day() {
    let lost = |ms, durable| {
        let judgement = judged(|status| {
            let saw = status.node == "n2";
            status.ring.memory_lost_ms = saw.then_some(ms);
            status.groups[0].durable = durable;
            status.groups[0].lost_memory = saw;
            // One that was made later had nothing to lose.
            status.groups.push(GroupStatus { name: "later".into(), ..group() });
        });
        assert_eq!((judgement.health, judgement.findings), (Health::Ok, Vec::new()));
        judgement.notes
    };
    let notes = lost(5_000, false);
    assert_eq!((notes.len(), notes[0].fact.as_str()), (1, "memory-lost"));
    assert!(notes[0].what.contains("what bank had in memory only was lost"), "{notes:?}");
    assert!(notes[0].next.as_ref().is_some_and(|it| it.contains("quorba restore")), "{notes:?}");
    assert_eq!((lost(5_000, true), lost(86_400_000, false)), (Vec::new(), Vec::new()));
}

#[test]
fn a_clock_that_is_far_off_is_noted_and_makes_nobody_ill() {
    let says = |ahead_ms: [Option<i64>; 3]| {
        let judgement = judged(|status| {
            for (node, ahead_ms) in status.nodes.iter_mut().zip(ahead_ms) {
                node.clock_ahead_ms = ahead_ms;
            }
        });
        assert_eq!((judgement.health, judgement.findings), (Health::Ok, Vec::new()));
        judgement.notes
    };
    let hours = 2 * 3_600_000;
    // A few seconds are usual.
    assert_eq!(says([None, Some(-4_000), Some(4_000)]), Vec::new());
    let notes = says([None, Some(100), Some(hours + 100)]);
    assert_eq!((notes.len(), notes[0].fact.as_str()), (1, "clock-apart"));
    assert_eq!(notes[0].node.as_deref(), Some("n3"));
    assert!(notes[0].what.contains("n3 is 2h 00m ahead of the others'"), "{notes:?}");
    assert!(notes[0].next.as_ref().is_some_and(|next| next.contains("NTP")), "{notes:?}");
    // The others agree, so it is the clock of the node that tells.
    let notes = says([None, Some(hours), Some(hours + 50)]);
    assert_eq!((notes.len(), notes[0].node.as_deref()), (1, Some("n1")));
    assert!(notes[0].what.contains("n1 is 2h 00m behind the others'"), "{notes:?}");
    // Of two nobody knows who is right.
    let notes = says([None, Some(-hours), None]);
    assert!(notes[0].what.contains("n2 is 2h 00m behind that of n1"), "{notes:?}");
    let notes = says([None, Some(i64::MIN), Some(i64::MAX)]);
    assert_eq!(notes.len(), 2);
}

#[test]
fn a_node_that_hangs_is_found_and_one_that_runs_elsewhere_is_no_reason() {
    let said = [status("n1"), status("n2")];
    let silent = |is_suspect| Seen::Silent { node: "n3", why: "no answer".into(), is_suspect };
    let facts = |is_suspect| {
        let seen = [Seen::Answered(&said[0]), Seen::Answered(&said[1]), silent(is_suspect)];
        let judgement = judge(&seen, None);
        judgement.findings.into_iter().map(|one| one.fact).collect::<Vec<_>>()
    };
    assert_eq!(facts(true), ["hangs"]);
    assert_eq!(facts(false), Vec::<String>::new());
    let nobody = judge(&[silent(false)], None);
    assert_eq!((nobody.health, nobody.findings[0].fact.as_str()), (Health::Unknown, "silent"));
}

#[test]
fn another_groups_trouble_is_not_this_ones() {
    let mut all = NODES.map(status);
    for status in &mut all {
        let mut shop = group();
        shop.name = "shop".into();
        shop.may_differ = Some(1);
        status.groups.push(shop);
        status.nodes[2].in_view = false;
    }
    let seen = all.each_ref().map(Seen::Answered);
    assert_eq!(judge(&seen, Some("bank")).health, Health::Ok);
    let shop = judge(&seen, Some("shop"));
    assert_eq!((shop.health, shop.findings.len()), (Health::Degraded, 1));
    assert_eq!(judge(&seen, None).findings.len(), 2);
}

#[test]
fn a_channel_that_is_missing_is_a_fault_and_slow_consumers_are_a_note() {
    let channel = ChannelStatus {
        name: "alarms".into(),
        refused_ms: Some(900),
        dropped_ms: Some(60_000),
        waiting: 7,
        slowest: Some(SlowestStatus { at: "10.0.0.9:4711".into(), waiting: 6 }),
        ..ChannelStatus::default()
    };
    let judgement = judged(|status| {
        if status.node == "n2" {
            status.groups[0].channels = vec![channel.clone()];
        }
    });
    assert_eq!((judgement.health, judgement.findings), (Health::Ok, vec![]));
    let facts: Vec<_> = judgement.notes.iter().map(|note| note.fact.as_str()).collect();
    assert_eq!(facts, ["events-refused"], "what was dropped a minute ago is not told any more");
    assert!(judgement.notes[0].what.contains("(6) for the consumer at 10.0.0.9:4711"));

    let missing = MissingChannelStatus { name: "alarms".into(), why: "no room".into() };
    let found = found_at("n2", |status| status.groups[0].missing_channels = vec![missing.clone()]);
    assert_eq!(found, ["channel-missing"]);
}
