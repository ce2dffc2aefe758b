//! What is done to a group in each case, where its nodes run the servers.

use std::fs;
use std::time::Duration;

use quorba_giop::{Endian, MinorCode, cdr::Writer, context};

use super::super::domain::NODES;
use super::client::{self, Answer, Arguments, Call};
use super::story::{ANSWER_TIME_MAX, POISON, Process, SLEEP, Story};
use super::{Deed, Setting};
use crate::wait;

/// What omniORB writes when a request has the context that offers the connection.
const OFFER_SEEN: &str = "Receive bidir IIOP service context";
/// How long omniORB may take to end idle connections: it looks for them each second.
const IDLE_TIME_MAX: Duration = Duration::from_secs(10);
/// Servers whose processes may end at one request.
const ENDED_MAX: usize = 2;

/// Figures, for people.
pub(super) fn run(mut story: Story, setting: Setting) -> Result<String, String> {
    let processes = story.processes()?;
    let told = match setting.deed {
        // Every increment is a long call there.
        Deed::LongCall => long_call(&mut story, &processes)?,
        deed => {
            story.increment_everywhere("before")?;
            let told = match deed {
                Deed::NewerIdl => newer_idl(&mut story)?,
                Deed::Malformed => malformed(&mut story)?,
                Deed::IdleEnds => idle_ends(&story)?,
                Deed::Bidirectional => bidirectional(&mut story)?,
                Deed::CrashAtCall => crash_at_call(&story, setting)?,
                Deed::Connect
                | Deed::ConnectActivated
                | Deed::ConnectKills { .. }
                | Deed::LongCall => return Err("no deed of this kind".into()),
            };
            story.increment_everywhere("after")?;
            told
        }
    };
    match setting.deed {
        Deed::CrashAtCall => {
            story.fleet.wait_whole()?;
            ended_at_most(&story, &processes, setting)?;
            never_again(&mut story, setting)?;
        }
        _ => story.nobody_was_restarted(&processes)?,
    }
    let acknowledged = story.acknowledged();
    story.finish(setting.style)?;
    Ok(format!("{told}; {acknowledged} acknowledged and there"))
}

/// At each gateway once; between them, others go on.
pub(super) fn newer_idl(story: &mut Story) -> Result<String, String> {
    let mut told = Vec::new();
    for gateway in 0..NODES {
        let text = format!("newer-{gateway}");
        let arguments = Arguments::TextAndMore(&text);
        let call = Call { operation: "increment", contexts: &[], arguments };
        told.push(story.odd(gateway, &call)?);
        story.increment((gateway + 1) % NODES, format!("between-{gateway}"))?;
    }
    Ok(told.join(", "))
}

fn malformed(story: &mut Story) -> Result<String, String> {
    let contexts: &[(u32, &[u8])] = &[(context::CODE_SETS, &[1])];
    let code_sets =
        Call { operation: "increment", contexts, arguments: Arguments::Text("code-sets") };
    let (answer, _) = story.call(0, &code_sets);
    if answer.ours() != Some(MinorCode::ContextUnreadable) {
        return Err(format!("code sets of one octet: {answer}"));
    }
    let code_sets = story.odd(0, &code_sets)?;
    story.increment_everywhere("between")?;
    let truncated = Call { operation: "increment", contexts: &[], arguments: Arguments::Truncated };
    let truncated = story.odd(1, &truncated)?;
    Ok(format!("code sets: {code_sets}; truncated: {truncated}"))
}

/// Waits until each server has ended the connection of its node.
fn idle_ends(story: &Story) -> Result<String, String> {
    let reconnects = |index| {
        story.of_group(index, |group| group.server.as_ref().map_or(0, |server| server.reconnects))
    };
    wait::until("every server has ended an idle connection", IDLE_TIME_MAX, || {
        let counts: Vec<u64> = (0..NODES).map(reconnects).collect::<Result<_, _>>()?;
        if counts.iter().all(|count| *count > 0) { Ok(()) } else { Err(format!("{counts:?}")) }
    })?;
    Ok("all servers have ended idle connections".into())
}

/// Longer than `server_reply_ms`, at all servers alike.
fn long_call(story: &mut Story, processes: &[Process]) -> Result<String, String> {
    for (gateway, when) in ["long", "long again"].into_iter().enumerate() {
        story.increment(gateway, when.into())?;
        story.nobody_was_restarted(processes)?;
        let call = Call { operation: "counter", contexts: &[], arguments: Arguments::None };
        for gateway in 0..NODES {
            match story.call(gateway, &call).0 {
                Answer::Results(number) if number == story.acknowledged() as u64 => {}
                answer => return Err(format!("{when}: then counter got {answer:?}")),
            }
        }
    }
    Ok(format!("2 calls of {:.1} s answered", SLEEP.as_secs_f64()))
}

/// Servers that would take the offer are not shown it.
fn bidirectional(story: &mut Story) -> Result<String, String> {
    let mut offer = Writer::encapsulation(Endian::Little);
    offer.write_count(1);
    offer.write_string(b"127.0.0.1");
    offer.write_u16(40_000);
    let offer = offer.finish();
    let contexts: &[(u32, &[u8])] = &[(context::BI_DIR_IIOP, &offer)];
    for gateway in 0..NODES {
        let text = format!("offers-{gateway}");
        let call = Call { operation: "increment", contexts, arguments: Arguments::Text(&text) };
        let (answer, _) = story.call(gateway, &call);
        if !matches!(answer, Answer::Results(_)) {
            return Err(format!("the offering caller got {answer}"));
        }
    }
    for index in 0..NODES {
        let log = story.of_group(index, |group| group.server.as_ref()?.log.clone())?;
        let log = log.ok_or("status names no log of the server")?;
        let seen = || fs::read_to_string(&log).map(|text| text.matches(OFFER_SEEN).count());
        let seen = || seen().map_err(|error| format!("{log}: {error}"));
        if seen()? > 0 {
            return Err(format!("the server saw an offer: {log}"));
        }
        // It would have said so.
        let address = format!("127.0.0.1:{}", story.fleet.server(index)?.port);
        let call = Call { operation: "counter", contexts, arguments: Arguments::None };
        let direct = client::call(&address, &call, ANSWER_TIME_MAX);
        if !matches!(direct, Answer::Results(_)) {
            return Err(format!("asked directly, the server answers {direct}"));
        }
        wait::until("the server says that it saw an offer", ANSWER_TIME_MAX, || {
            if seen()? > 0 { Ok(()) } else { Err(format!("nothing of it in {log}")) }
        })?;
    }
    Ok("3 offers taken out of answered calls".into())
}

fn crash_at_call(story: &Story, setting: Setting) -> Result<String, String> {
    let call = Call { operation: "increment", contexts: &[], arguments: Arguments::Text(POISON) };
    let told = story.odd(0, &call)?;
    if setting.is_durable {
        // All may have ended, and are started again without it.
        story.fleet.wait_whole()?;
    }
    Ok(told)
}

/// Who comes in later, or comes back from the disks, does not execute it either.
fn never_again(story: &mut Story, setting: Setting) -> Result<(), String> {
    let nodes = 0..NODES;
    if setting.is_durable {
        nodes.clone().for_each(|node| story.fleet.kill_node(node));
        nodes.clone().try_for_each(|node| story.fleet.start_node(node))?;
    } else {
        // The one that has not begun it, among others.
        for node in nodes.clone() {
            story.fleet.kill_node(node);
            story.fleet.start_node(node)?;
            story.fleet.wait_whole()?;
        }
    }
    story.fleet.wait_whole()?;
    let restarts: u64 = story.processes()?.iter().map(|process| process.restarts).sum();
    if restarts > 0 {
        return Err(format!("servers ended {restarts} times after a start of all nodes"));
    }
    story.increment_everywhere("later")
}

/// The call was tried at two servers, or at all at once, and never again.
fn ended_at_most(story: &Story, before: &[Process], setting: Setting) -> Result<(), String> {
    let after = story.processes()?;
    let ended = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    let ended_max = if setting.is_durable { NODES } else { ENDED_MAX };
    let times = after.iter().map(|process| process.restarts).max();
    if (1..=ended_max).contains(&ended) && times <= Some(1) {
        return Ok(());
    }
    Err(format!("ended too often, or nobody: {before:?}, now {after:?}"))
}
