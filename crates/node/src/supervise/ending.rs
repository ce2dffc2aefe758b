//! A server that ends, or is to end: politely first if there is time for that, then for good, and
//! what it has said when it is over.
//!
//! What it is not: a wait. Invariant: it is over only when the server and all that it has started
//! are gone, as far as its keeper can see to that.

use super::server::{Process, ProcessHistory};
use crate::launch::wanted_key;
use crate::output::Output;
use crate::process::{CANNOT_START, NOT_STARTED};
use crate::ready::Look;
use crate::running::{END_WITHIN, Running};
use crate::supervision::Order;
use quorba_config::Group;
use std::time::{Duration, Instant};

/// How long after its connections a process may end that was killed.
const ENDS_WITHIN: Duration = Duration::from_millis(200);
/// How long a server may take to end by itself when the node stops.
const STOP_WITHIN: Duration = Duration::from_secs(2);
/// How long the words of a server that could not be started may be on their way, and how often it
/// is looked for them.
const WORDS_WITHIN: Duration = Duration::from_millis(300);
const WORDS_EVERY: Duration = Duration::from_millis(10);

/// Why it ends.
pub(super) enum Why {
    /// It has ended itself.
    Exited,
    /// It did not serve in time; what was found last.
    Late(Look),
    /// On order.
    Ordered(Order),
}

/// See the module's text.
pub(super) struct Ending {
    past: ProcessHistory,
    why: Why,
    step: Step,
}

enum Step {
    /// It is there, or its keeper is.
    Here(Running, How),
    /// It has ended, and may have said why it could not be started.
    Words { ended: String, until: Instant },
}

/// What is done to end it.
#[derive(Clone, Copy)]
enum How {
    /// Its connection has ended: whether it has as well.
    Looked { until: Instant },
    /// It was asked.
    Asked { until: Instant },
    /// Its keeper ends it.
    CutOff { until: Instant },
    /// Its keeper was killed, and the kernel ends it.
    Killed,
}

/// What has come of it.
pub(super) enum Ended {
    /// It is waited for: until this time at the longest.
    NotYet(Ending, Option<Instant>),
    /// It is gone; why, in words.
    Gone(ProcessHistory, Why, String),
}

impl Ending {
    /// Begins to end it.
    pub(super) fn begin(process: Process, why: Why, now: Instant) -> Self {
        let Process { mut running, past } = process;
        let how = match why {
            // That a server has ended is noticed by its connection first.
            Why::Ordered(Order::Restart) => How::Looked { until: now + ENDS_WITHIN },
            Why::Ordered(Order::Stop) if running.ask_to_end() => {
                How::Asked { until: now + STOP_WITHIN }
            }
            _ => cut_off(&running, now),
        };
        Self { past, why, step: Step::Here(running, how) }
    }

    /// Something may have come, or be due.
    pub(super) fn step(mut self, group: &Group, output: Option<&Output>, now: Instant) -> Ended {
        loop {
            self.step = match self.step {
                Step::Here(mut running, how) => {
                    let has_ended = running.has_ended(Duration::ZERO);
                    if has_ended && matches!(how, How::CutOff { .. } | How::Killed) {
                        let ended = running.how_it_ended();
                        if !may_say_more(&self.why, &ended) {
                            return gone(self.past, self.why, (&ended, None), group);
                        }
                        Step::Words { ended, until: now + WORDS_WITHIN }
                    } else if has_ended {
                        if matches!(how, How::Looked { .. }) {
                            self.why = Why::Exited;
                        }
                        let how = cut_off(&running, now);
                        Step::Here(running, how)
                    } else {
                        match overdue(&running, how, now) {
                            Ok(how) => Step::Here(running, how),
                            Err(until) => {
                                self.step = Step::Here(running, how);
                                return Ended::NotYet(self, until);
                            }
                        }
                    }
                }
                Step::Words { ended, until } => {
                    let said = output.and_then(said);
                    if said.is_some() || until <= now {
                        return gone(self.past, self.why, (&ended, said), group);
                    }
                    self.step = Step::Words { ended, until };
                    return Ended::NotYet(self, Some(now + WORDS_EVERY));
                }
            };
        }
    }
}

/// It has `ended` like that, and has `said` why if it could not be started.
fn gone(
    past: ProcessHistory,
    why: Why,
    (ended, said): (&str, Option<String>),
    group: &Group,
) -> Ended {
    let reason = match &why {
        Why::Exited => said.unwrap_or_else(|| format!("ended: {ended}")),
        Why::Late(found) => {
            let waited = group.start_timeout.as_millis();
            let found = found.text(&past.endpoint, wanted_key(group));
            format!("did not serve within {waited} ms: it {found}")
        }
        Why::Ordered(Order::GiveUp) => "not wanted any more".into(),
        Why::Ordered(Order::Stop) => "ended with its node".into(),
        Why::Ordered(_) => "restarted by its node".into(),
    };
    Ended::Gone(past, why, reason)
}

/// What is done next to a server whose time is up; else when it will be.
fn overdue(running: &Running, how: How, now: Instant) -> Result<How, Option<Instant>> {
    match how {
        How::Looked { until } | How::Asked { until } if until <= now => Ok(cut_off(running, now)),
        How::CutOff { until } if until <= now => {
            running.kill();
            Ok(How::Killed)
        }
        How::Looked { until } | How::Asked { until } | How::CutOff { until } => Err(Some(until)),
        How::Killed => Err(None),
    }
}

/// A server that could not be started has said why, in other words than its exit code.
fn may_say_more(why: &Why, ended: &str) -> bool {
    matches!(why, Why::Exited) && ended.contains(&format!(" {NOT_STARTED}"))
}

fn cut_off(running: &Running, now: Instant) -> How {
    running.cut_off();
    How::CutOff { until: now + END_WITHIN }
}

fn said(output: &Output) -> Option<String> {
    let lines = output.last_lines();
    let said = lines.iter().rev().find_map(|line| Some(&line[line.find(CANNOT_START)?..]));
    said.map(str::to_owned)
}
