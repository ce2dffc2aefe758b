//! The demo without a picture: what happened, and the figures now and then, as plain lines on
//! standard error.
//!
//! What it is not: data. The result goes to standard output, and scripts read that.
//!
//! Invariant: a closed standard error ends nothing.

use std::io::{self, Write};
use std::time::Duration;

use super::model::{Event, Model};

/// Time between two lines of figures.
const FIGURES_EVERY: Duration = Duration::from_secs(2);

/// Prints lines.
#[derive(Default)]
pub(super) struct Lines {
    figures_due: Duration,
}

impl Lines {
    pub(super) fn event(&self, event: &Event) {
        say(&format!("{:>7.2} s  {}", event.at.as_secs_f64(), event.text));
    }

    pub(super) fn figures(&mut self, model: &Model) {
        let Some(slot) = model.slots.back().filter(|_| model.elapsed >= self.figures_due) else {
            return;
        };
        self.figures_due = model.elapsed + FIGURES_EVERY;
        let rate = slot.answers_per_s;
        let members: Vec<String> =
            (model.nodes.iter()).map(|node| format!("{} {}", node.name, node.replica())).collect();
        say(&format!(
            "{:>7.2} s  {rate:.0} answers/s, p50 {:.2} ms, p99 {:.2} ms; {}",
            model.elapsed.as_secs_f64(),
            model.latency.p50_us as f64 / 1e3,
            model.latency.p99_us as f64 / 1e3,
            members.join(", ")
        ));
    }
}

/// One line on standard error.
pub(super) fn say(line: &str) {
    // Nobody listening is no reason to stop.
    let _closed = writeln!(io::stderr(), "{line}");
}
