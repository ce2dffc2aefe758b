//! An oddity at one member only: the others' reply goes out, and that member is brought back.

use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::reaction::found_wrong;
use crate::stage::scripted::{NODES, Process, SOON, Scripted, Step, eventually};

/// The member that is odd, and whose node's gateway is called.
const ODD: usize = 1;
/// `server_reply_ms` here.
const SERVER_REPLY: Duration = Duration::from_secs(4);
/// What a call may take whose reply has to come from another member: "about a second", and the
/// machine may be busy.
const BY_OTHERS: Duration = Duration::from_secs(3);
/// What the odd member may take to come back, with its state.
const RECOVERY: Duration = Duration::from_secs(15);

/// What becomes of the member's server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It is left alone.
    LeftAlone,
    /// It is ended, if it has not ended, and started again.
    Restarted,
    /// One of both.
    Either,
}

const ODDITIES: [(&str, Fate); 15] = [
    ("twice", Fate::LeftAlone),
    ("fragment", Fate::LeftAlone),
    ("old-fragment", Fate::LeftAlone),
    ("request", Fate::LeftAlone),
    ("locate", Fate::LeftAlone),
    ("fin", Fate::Restarted),
    ("rst", Fate::Restarted),
    ("garbage", Fate::Restarted),
    ("partial", Fate::Restarted),
    ("message-error", Fate::Restarted),
    ("wrong-id", Fate::Restarted),
    ("exit", Fate::Restarted),
    ("crash", Fate::Restarted),
    ("never", Fate::Restarted),
    // Whether it is given up or obeyed in the end.
    ("close-always", Fate::Either),
];

fn start(style: &str) -> Scripted {
    let ms = SERVER_REPLY.as_millis();
    let lines = format!("server_reply_ms = {ms}\nrestart_backoff_ms = 20\nquarantine_after = 0\n");
    Scripted::start(style, &lines, &[])
}

/// The other servers are the same as before, and the odd one is what it is to be.
fn has_fate(before: &[Process], now: &[Process], fate: Fate) -> Step {
    let is_same = |node: usize| before[node] == now[node];
    let others = (0..NODES.len()).filter(|node| *node != ODD);
    let words = || format!("not {fate:?}: {before:?} became {now:?}");
    let is_right = match fate {
        Fate::LeftAlone => is_same(ODD),
        Fate::Restarted => now[ODD].pid.is_some() && now[ODD].pid != before[ODD].pid,
        Fate::Either => true,
    };
    if is_right && others.clone().all(is_same) { Ok(()) } else { Err(words()) }
}

fn try_alone(
    scripted: &Scripted,
    (what, fate): (&str, Fate),
    late: bool,
    known: &mut Vec<String>,
) -> Step {
    let text = format!("{what}-{}", if late { "late" } else { "early" });
    let mut add = |node: usize, text: String| -> Step {
        scripted.add(node, &text, SOON)?;
        known.push(text);
        Ok(())
    };
    add(ODD, format!("before-{text}"))?;
    let before = scripted.processes()?;
    let mut client = scripted.client(ODD)?;
    let answer = Scripted::odd(&mut client, (what, NODES[ODD], late), &text, BY_OTHERS);
    answer.number().map_err(|answer| format!("its caller got {answer}, not the others' reply"))?;
    known.push(text.clone());
    eventually(SERVER_REPLY + RECOVERY, || has_fate(&before, &scripted.processes()?, fate))?;
    scripted.becomes_healthy(RECOVERY)?;
    for (node, name) in NODES.iter().enumerate() {
        let text = format!("after-{text}-{name}");
        scripted.add(node, &text, SOON).map_err(|wrong| format!("after it: {wrong}"))?;
        known.push(text);
    }
    scripted.has_each_once(known, SOON)?;
    scripted.servers_are_equal(SOON)?;
    has_fate(&before, &scripted.processes()?, fate)
}

fn is_its_own_fault(style: &str) {
    let mut group = None;
    let mut wrong = Vec::new();
    for (number, oddity) in ODDITIES.iter().enumerate() {
        let late = number % 2 == 1;
        let (scripted, known) = group.get_or_insert_with(|| (start(style), Vec::new()));
        if let Err(why) = try_alone(scripted, *oddity, late, known) {
            found_wrong(&mut wrong, oddity.0, &why);
            group = None;
        }
    }
    assert!(wrong.is_empty(), "{style}: {} went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn an_odd_member_of_an_active_group_is_brought_back_and_the_others_answer() {
    is_its_own_fault("active");
}

#[test]
fn an_odd_member_of_a_semi_active_group_is_brought_back_and_the_others_answer() {
    is_its_own_fault("semi-active");
}

#[test]
fn an_odd_member_of_a_voting_group_is_brought_back_and_the_others_answer() {
    is_its_own_fault("active-with-voting");
}

#[test]
fn a_stopped_server_keeps_no_caller_of_its_gateway_waiting_and_is_restarted() {
    let scripted = start("active");
    let mut known = Vec::new();
    let mut add = |text: String, within| {
        let begin = Instant::now();
        let added = scripted.add(ODD, &text, within);
        added.unwrap_or_else(|wrong| panic!("{text}: {wrong}\n{}", scripted.domain.told()));
        known.push(text);
        begin.elapsed()
    };
    add("before".into(), SOON);
    let before = scripted.processes().expect("it tells");
    let stopped = before[ODD].pid.expect("it runs");
    kill_process(stopped, Signal::STOP).expect("it runs");
    let stopped_at = Instant::now();
    let mut number = 0;
    while number < 20 && stopped_at.elapsed() < SERVER_REPLY {
        add(format!("while {number}"), BY_OTHERS);
        number += 1;
    }
    let restarted = eventually(SERVER_REPLY + RECOVERY, || {
        has_fate(&before, &scripted.processes()?, Fate::Restarted)
    });
    restarted.expect("a server that is stopped is restarted");
    scripted.becomes_healthy(RECOVERY).expect("it comes back");
    scripted.has_each_once(&known, SOON).expect("nothing is lost");
    scripted.servers_are_equal(SOON).expect("it has the group's state");
}
