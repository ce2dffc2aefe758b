//! A participant that is a node of the ring itself: no client socket between.

use super::command::Command;
use super::director::tell;
use super::{Director, Experiment, Port, monotonic_ns, offer, pause, ring_figures};
use bytes::Bytes;
use quorba_net::Interest;
use quorba_order::{Counters, Guarantee, Progress, ViewKind};
use quorba_ringd::driver::{Driver, Event, OWN_TOKENS, log_view};
use serde_json::{Value, json};
use std::io;

const STDIN: u64 = OWN_TOKENS;

impl Port for Driver {
    fn send(&mut self, message: &[u8], safe: bool) -> io::Result<bool> {
        let guarantee = if safe { Guarantee::Safe } else { Guarantee::Agreed };
        Ok(self.submit(Bytes::copy_from_slice(message), guarantee).is_ok())
    }

    fn push(&mut self) -> io::Result<()> {
        self.pump()
    }
}

/// Rotations of the token that are kept; later ones only count.
const ROTATIONS_MAX: usize = 1 << 20;

/// How long rotations of the token took that began here.
#[derive(Default)]
struct Rotations {
    seen: u64,
    took_us: Vec<f64>,
}

impl Rotations {
    fn begin(&mut self, progress: Progress) {
        self.seen = progress.rotations;
        self.took_us.clear();
    }

    fn note(&mut self, progress: Progress) {
        if progress.rotations > self.seen && self.took_us.len() < ROTATIONS_MAX {
            self.took_us.push(progress.rotation_last.as_nanos() as f64 / 1000.0);
        }
        self.seen = progress.rotations;
    }

    /// What is told of them, if there were any.
    fn figures(&mut self) -> Option<Value> {
        self.took_us.sort_unstable_by(f64::total_cmp);
        let at = |percent: usize| self.took_us.get((self.took_us.len() * percent / 100).max(1) - 1);
        let (p50, p99) = (at(50)?, at(99)?);
        Some(json!({ "p50": p50, "p99": p99, "count": self.took_us.len() }))
    }
}

/// Takes part until told to quit.
pub(crate) fn member(mut driver: Driver, me: u32, nodes: u32) -> io::Result<()> {
    driver.register(io::stdin(), STDIN, Interest::READ)?;
    let mut director = Director::default();
    let mut experiment: Option<Experiment> = None;
    let mut before = Counters::default();
    let mut rotations = Rotations::default();
    let mut ready = false;
    loop {
        if let Some(experiment) = &mut experiment {
            offer(experiment, &mut driver)?;
        }
        take_in(&mut driver, experiment.as_mut(), nodes, &mut ready)?;
        if experiment.as_ref().is_some_and(Experiment::is_done)
            && let Some(done) = experiment.take()
        {
            let ring = ring_figures(before, driver.snapshot().counters, done.took_ns());
            tell(&done.done(ring, rotations.figures()))?;
        }
        rotations.note(driver.progress());
        driver.wait(experiment.as_mut().and_then(pause))?;
        while let Some(event) = driver.ready() {
            debug_assert_eq!(event.token, STDIN);
            for command in director.read()? {
                match command {
                    Command::Prepare(plan) => {
                        tell(&json!({ "event": "prepared", "id": plan.id }))?;
                        experiment = Some(Experiment::new(plan, me, nodes));
                    }
                    Command::Go => {
                        before = driver.snapshot().counters;
                        rotations.begin(driver.progress());
                        if let Some(experiment) = &mut experiment {
                            experiment.go(monotonic_ns());
                        }
                    }
                    Command::Stop => {
                        if let Some(experiment) = &mut experiment {
                            experiment.stop();
                        }
                    }
                    Command::Quit => return driver.leave(),
                }
            }
        }
    }
}

fn take_in(
    driver: &mut Driver,
    mut experiment: Option<&mut Experiment>,
    nodes: u32,
    ready: &mut bool,
) -> io::Result<()> {
    while let Some(event) = driver.event() {
        match event {
            Event::Deliver(delivery) => {
                if let Some(experiment) = &mut experiment {
                    experiment.delivered(monotonic_ns(), &delivery.payload);
                }
            }
            Event::View(view) if view.kind == ViewKind::Regular => {
                log_view(&view);
                let members: Vec<u32> =
                    view.members.iter().map(|node| u32::from(node.index()) + 1).collect();
                if let Some(experiment) = &mut experiment {
                    experiment.view(monotonic_ns(), &members).map_err(io::Error::other)?;
                }
                if members.len() == nodes as usize && !*ready {
                    *ready = true;
                    tell(&json!({ "event": "ready", "members": nodes }))?;
                }
            }
            Event::Refused(node, reason) => eprintln!("refused: {node}: {reason:?}"),
            Event::View(_) | Event::Held(_) | Event::Stable(_) => {}
        }
    }
    Ok(())
}
