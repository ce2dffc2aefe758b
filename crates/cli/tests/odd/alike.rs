//! Every oddity at all members alike, in groups of every style: the caller gets an answer in time,
//! everybody else's calls are there and answered, and servers that live are left alone.

use std::time::Duration;

use crate::reaction::found_wrong;
use crate::reaction::{FATAL, LATE, LIVING, Reaction, SERVER_REPLY};
use crate::stage::pids;
use crate::stage::scripted::{NODES, SOON, Scripted, Step, eventually};

/// How often a server that refuses a call may have been sent it, per second.
const REFUSALS_PER_SECOND_MAX: u64 = 50;
/// What the caller of something odd waits for an answer: more than the latest reply takes.
const ANSWER: Duration = Duration::from_secs(10);
/// What servers may take to start again, with their states.
const RECOVERY: Duration = Duration::from_secs(40);

/// A style, durable or not.
struct Kind {
    style: &'static str,
    durable: bool,
}

/// A group under trial, with what was acknowledged in it.
struct Scene {
    scripted: Scripted,
    known: Vec<String>,
    trials: usize,
}

impl Kind {
    fn start(&self) -> Scene {
        let lines =
            format!("server_reply_ms = {}\ndurable = {}\n", SERVER_REPLY.as_millis(), self.durable);
        let scripted = Scripted::start(self.style, &lines, &[]);
        Scene { scripted, known: Vec::new(), trials: 0 }
    }

    /// All processes that have executed something have ended, and nothing is on disks.
    fn may_be_lost(&self, executed: [usize; 3]) -> bool {
        let is_at_all = executed.iter().all(|count| *count > 0);
        !self.durable && self.executions_max() > 2 && is_at_all
    }

    /// How often a request may be executed at which processes end: where all execute it at once,
    /// by each of them.
    fn executions_max(&self) -> usize {
        let is_one_at_a_time = self.style.ends_with("passive") || self.style == "stateless";
        if is_one_at_a_time { 2 } else { 3 }
    }
}

impl Scene {
    /// A call at every gateway, each of which is answered.
    fn add(&mut self, when: &str) -> Step {
        for (node, name) in NODES.iter().enumerate() {
            let text = format!("{}-{when}-{name}", self.trials);
            self.scripted.add(node, &text, SOON).map_err(|wrong| format!("{when} it: {wrong}"))?;
            self.known.push(text);
        }
        Ok(())
    }

    /// The odd call, at another gateway each time.
    fn odd(&self, reaction: &Reaction, late: bool) -> Step {
        let mut client = self.scripted.client(self.trials % NODES.len())?;
        let text = reaction.text(late);
        let answer = Scripted::odd(&mut client, (reaction.what, "", late), &text, ANSWER);
        reaction.check(&answer)
    }

    fn try_living(&mut self, reaction: &Reaction, late: bool) -> Step {
        self.trials += 1;
        self.add("before")?;
        let processes = self.scripted.processes()?;
        self.odd(reaction, late)?;
        self.add("after")?;
        self.scripted.has_each_once(&self.known, SOON)?;
        self.scripted.becomes_healthy(SOON)?;
        self.scripted.are_left_alone(&processes)?;
        let text = reaction.text(late);
        let executed = self.scripted.executions("odd", &text);
        if executed.iter().any(|count| *count > 1) {
            return Err(format!("it was executed {executed:?} times"));
        }
        let refused = self.scripted.executions("refuse", &text);
        let refused_max = (REFUSALS_PER_SECOND_MAX * ANSWER.as_secs()) as usize;
        if refused.iter().any(|count| *count > refused_max) {
            return Err(format!("it was sent {refused:?} times to servers that refuse it"));
        }
        Ok(())
    }

    fn try_fatal(&mut self, kind: &Kind, reaction: &Reaction, late: bool) -> Step {
        self.trials += 1;
        self.add("before")?;
        self.odd(reaction, late)?;
        let text = reaction.text(late);
        let executed_max = kind.executions_max();
        let check_executed = |scripted: &Scripted| {
            let executed = scripted.executions("odd", &text);
            let is_right = executed.iter().sum::<usize>() <= executed_max;
            let words = format!("executed {executed:?} times, at most {executed_max} in all");
            if is_right { Ok(executed) } else { Err(words) }
        };
        if kind.may_be_lost(check_executed(&self.scripted)?) {
            return Ok(());
        }
        self.recover()?;
        if kind.durable {
            let executed = check_executed(&self.scripted)?;
            let running = pids(&self.scripted.status()?);
            self.scripted.domain.black_out(&running);
            self.recover().map_err(|wrong| format!("after a restart of all: {wrong}"))?;
            let again = self.scripted.executions("odd", &text);
            if again != executed {
                return Err(format!("executed {executed:?} times, after a restart {again:?}"));
            }
        }
        check_executed(&self.scripted).map(drop)
    }

    /// All members come back by themselves, with all that was acknowledged.
    fn recover(&mut self) -> Step {
        self.scripted.becomes_healthy(RECOVERY)?;
        let mut tries = 0;
        for (node, name) in NODES.iter().enumerate() {
            let added = eventually(RECOVERY, || {
                // Under another text: nobody may know what became of the last one.
                tries += 1;
                let text = format!("{}-again-{name}-{tries}", self.trials);
                self.scripted.add(node, &text, SOON).map(|_| text)
            })?;
            self.known.push(added);
        }
        self.scripted.has_each_once(&self.known, SOON)
    }
}

/// Tries all of them in one group, and in a new one behind each that went wrong.
fn is_no_crash(style: &'static str, durable: bool) {
    let kind = Kind { style, durable };
    let mut scene = None;
    let mut wrong = Vec::new();
    for reaction in LIVING.iter().chain([&LATE]) {
        for late in [false, true] {
            if late && reaction.what == LATE.what {
                continue;
            }
            let trial = scene.get_or_insert_with(|| kind.start()).try_living(reaction, late);
            if let Err(why) = trial {
                scene = None;
                found_wrong(&mut wrong, &reaction.text(late), &why);
                break;
            }
        }
    }
    // The last: what is not durable may be lost by it.
    for (reaction, late) in FATAL.iter().zip([false, true]) {
        let mut of_it = scene.take().unwrap_or_else(|| kind.start());
        if let Err(why) = of_it.try_fatal(&kind, reaction, late) {
            found_wrong(&mut wrong, &reaction.text(late), &why);
        }
    }
    assert!(
        wrong.is_empty(),
        "{style}{}: {} went wrong:\n{}",
        if durable { ", durable" } else { "" },
        wrong.len(),
        wrong.join("\n")
    );
}

/// A test of one style.
macro_rules! styles {
    ($($name:ident: $style:literal, $durable:literal;)*) => {
        $(#[test]
        fn $name() {
            is_no_crash($style, $durable);
        })*
    };
}

styles! {
    what_all_do_alike_is_no_crash_in_active: "active", false;
    what_all_do_alike_is_no_crash_in_semi_active: "semi-active", false;
    what_all_do_alike_is_no_crash_in_active_with_voting: "active-with-voting", false;
    what_all_do_alike_is_no_crash_in_warm_passive: "warm-passive", false;
    what_all_do_alike_is_no_crash_in_cold_passive: "cold-passive", false;
    what_all_do_alike_is_no_crash_in_stateless: "stateless", false;
    what_all_do_alike_is_no_crash_in_durable_active: "active", true;
    what_all_do_alike_is_no_crash_in_durable_semi_active: "semi-active", true;
    what_all_do_alike_is_no_crash_in_durable_active_with_voting: "active-with-voting", true;
    what_all_do_alike_is_no_crash_in_durable_warm_passive: "warm-passive", true;
    what_all_do_alike_is_no_crash_in_durable_cold_passive: "cold-passive", true;
}
