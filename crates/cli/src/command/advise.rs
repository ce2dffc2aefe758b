//! `quorba group advise`: what a call would cost with each member as the leader.
//!
//! What it is not: a change. It says which command would make one.
//!
//! Invariant: what is shown comes from two looks at counters, and says so.

use std::thread;
use std::time::Duration;

use quorba_admin::status::Status;
use quorba_base::NodeId;
use quorba_config::{Domain, Group};
use quorba_node::placement::{GAIN_PERCENT_MIN, Load, Part, Prediction};
use serde_json::json;

use crate::ask;
use crate::catalog;
use crate::context::{Context, Deadline};
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::{span_us, table};

/// How long the nodes have to answer each time.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// What was measured, and what follows.
struct Advice<'a> {
    domain: &'a Domain,
    group: &'a Group,
    leader: Option<NodeId>,
    load: Load,
    predictions: Vec<Prediction>,
}

pub(super) fn advise(
    context: &Context,
    domain: &Domain,
    group: &str,
    over: Duration,
) -> Result<Exit, Failure> {
    let deadline = context.deadline(over + 2 * ANSWER_WITHIN);
    let definition = catalog::find_group(context, domain, group)?;
    let before = look(domain, group, deadline)?;
    if deadline.left() < over {
        let what = format!("measuring takes {} s, longer than is left", over.as_secs());
        let next = "measure for a shorter time with --seconds, or give more with --timeout";
        return Err(Failure::new(codes::TIMED_OUT, Exit::TimedOut, what, next));
    }
    thread::sleep(over);
    let after = look(domain, group, deadline)?;
    let advice = Advice::of(domain, &definition, (&before, &after), over);
    let advice = advice.ok_or_else(|| ask::nobody_here(domain))?;
    if context.is_json() {
        context.print_json(&advice.json())?;
    } else {
        context.print(&advice.text())?;
    }
    Ok(Exit::Ok)
}

/// What the nodes say that know the group.
fn look(domain: &Domain, group: &str, deadline: Deadline) -> Result<Vec<Status>, Failure> {
    let answers = ask::everyone(domain, ANSWER_WITHIN.min(deadline.left()));
    let knows = |status: &&Status| status.groups.iter().any(|one| one.name == group);
    let said = answers.iter().filter_map(|answer| answer.status.as_ref().ok());
    let all: Vec<Status> = said.filter(knows).cloned().collect();
    if all.is_empty() { Err(ask::no_word(domain, &answers, group, None)) } else { Ok(all) }
}

impl<'a> Advice<'a> {
    fn of(
        domain: &'a Domain,
        group: &'a Group,
        looks: (&[Status], &[Status]),
        over: Duration,
    ) -> Option<Self> {
        let (load, leader) = Load::between(domain, &group.name, looks, over)?;
        let predictions = load.predict(domain, group);
        Some(Self { domain, group, leader, load, predictions })
    }

    fn name(&self, node: NodeId) -> &str {
        self.domain.node(node).map_or("?", |node| &node.name)
    }

    fn now(&self) -> Option<&Prediction> {
        let leader = self.leader?;
        self.predictions.iter().find(|one| one.leader == leader)
    }

    /// Who would be better than the leader there is, and by how much.
    fn better(&self) -> Option<(&Prediction, u64)> {
        let (now, best) = (self.now()?, self.predictions.first()?);
        let gain = now.gain_percent(best);
        (gain > 0).then_some((best, gain))
    }

    fn command(&self, node: NodeId) -> String {
        format!("quorba group promote {} {}", self.group.name, self.name(node))
    }

    fn text(&self) -> String {
        let rows = self.predictions.iter().map(|one| {
            let leads = if self.leader == Some(one.leader) { " (leads)" } else { "" };
            let words = [format!("{}{leads}", self.name(one.leader)), span(one.latency)];
            words.into_iter().chain(one.parts.map(span)).collect()
        });
        let heads = ["LEADER", ">PREDICTED"].into_iter().chain(Part::ALL.map(head));
        let legend = Part::ALL.map(Part::text).join(", ");
        format!(
            "{}\n\n{}\nIn the order of a call: {legend}.\n{}{}\n",
            self.measured(),
            table(&heads.collect::<Vec<_>>(), rows.collect()),
            self.caution(),
            self.word()
        )
    }

    /// What is to be known of the figures.
    const fn caution(&self) -> &'static str {
        match self.load.call_timings {
            Some(_) => "",
            None if !self.load.exchange.is_zero() => "",
            None => {
                "The rotation is the ring's own estimate, for its timers, and busy hosts make it \
                 long: compare the rows with each other, not with a client's figures.\n"
            }
        }
    }

    fn measured(&self) -> String {
        let (calls, seconds) = (self.load.calls(), self.load.over.as_secs_f64());
        let shares: Vec<String> = (self.load.callers.iter())
            .filter(|(_, count)| **count > 0)
            .map(|(node, count)| format!("{} {} %", self.name(*node), count * 100 / calls.max(1)))
            .collect();
        let callers = match shares.is_empty() {
            true => "no calls were seen, so all gateways count alike".to_owned(),
            false => format!("gateways: {}", shares.join(", ")),
        };
        format!(
            "group {}: {:.0} calls/s over {seconds:.0} s; {callers}; server {}; {}",
            self.group.name,
            count(calls) / seconds,
            span(self.server()),
            self.ring(),
        )
    }

    /// What the leader's server takes: the middle of what is known of it.
    fn server(&self) -> Duration {
        let times = self
            .load
            .call_timings
            .as_ref()
            .map(|call_timings| &call_timings.server[..])
            .unwrap_or_default();
        times.get(times.len() / 2).copied().unwrap_or(self.load.service)
    }

    /// What was measured of the ring.
    fn ring(&self) -> String {
        match &self.load.call_timings {
            Some(call_timings) => format!(
                "rotation {}, {} more for each message",
                span(call_timings.rotation),
                span(call_timings.message)
            ),
            None if !self.load.exchange.is_zero() => {
                format!("a message and its answer {}", span(self.load.exchange))
            }
            None => format!("rotation {}", span(self.load.rotation)),
        }
    }

    fn word(&self) -> String {
        if self.leader.is_none() {
            return format!(
                "Group {} has no leader: the member on each client's gateway answers.",
                self.group.name
            );
        }
        match self.better() {
            None => "The leader is where a call costs least.".to_owned(),
            Some((best, gain)) if gain <= GAIN_PERCENT_MIN => format!(
                "With {} a call would cost {gain} % less of what the ring and the server take; \
                 predictions are not exact enough for {GAIN_PERCENT_MIN} % or less to be a reason \
                 to move.",
                self.name(best.leader)
            ),
            Some((best, gain)) => format!(
                "With {} a call would cost {gain} % less of what the ring and the server take: {}",
                self.name(best.leader),
                self.command(best.leader)
            ),
        }
    }

    fn json(&self) -> serde_json::Value {
        let better = self.better();
        let call_timings = self.load.call_timings.as_ref();
        let callers: serde_json::Map<String, serde_json::Value> = (self.load.callers.iter())
            .map(|(node, count)| (self.name(*node).to_owned(), json!(count)))
            .collect();
        let candidates: Vec<_> = (self.predictions.iter())
            .map(|one| {
                let parts: serde_json::Map<String, serde_json::Value> = (Part::ALL.iter())
                    .zip(one.parts)
                    .map(|(part, time)| (format!("{}_us", part.as_str()), json!(micros(time))))
                    .collect();
                json!({
                    "node": self.name(one.leader),
                    "predicted_us": micros(one.latency),
                    "parts": parts,
                })
            })
            .collect();
        json!({
            "group": self.group.name,
            "leader": self.leader.map(|node| self.name(node)),
            "seconds": self.load.over.as_secs_f64(),
            "calls": callers,
            "service_us": micros(self.server()),
            "rotation_us": micros(call_timings.map_or(self.load.rotation, |of| of.rotation)),
            "exchange_us": micros(self.load.exchange),
            "message_us": call_timings.map(|call_timings| micros(call_timings.message)),
            "candidates": candidates,
            "better": better.map(|(one, _)| self.name(one.leader)),
            "gain_percent": better.map_or(0, |(_, gain)| gain),
            "command": better.map(|(one, _)| self.command(one.leader)),
        })
    }
}

/// A column's head.
const fn head(part: Part) -> &'static str {
    match part {
        Part::TokenForRequest | Part::TokenForReply => ">TOKEN",
        Part::Request => ">REQUEST",
        Part::Server => ">SERVER",
        Part::Majority => ">MAJORITY",
        Part::Reply => ">REPLY",
    }
}

fn span(time: Duration) -> String {
    if time.is_zero() { "-".to_owned() } else { span_us(micros(time)) }
}

/// In microseconds, to a tenth.
fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e7).round() / 10.0
}

#[expect(clippy::cast_precision_loss, reason = "calls of a while have far fewer than 52 bits")]
fn count(calls: u64) -> f64 {
    calls as f64
}
