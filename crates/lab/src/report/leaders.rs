//! Predicted and measured latencies of each leader, for people.
//!
//! Invariant: what is known against the figures stands before them.

use std::fmt::Write;

use comfy_table::Cell;

use super::html::{environment, open_page, open_table, ranged};
use super::table::{plain, right};
use super::with_range;
use crate::leaders::{Candidate, Leaders, RingSetting, Trial};

const HEADS: [&str; 5] = ["predicted", "measured", "error %", "predicted more", "measured more"];

/// The summary of a placement run.
#[must_use]
pub fn leaders_table(run: &Leaders) -> String {
    let mut text = String::new();
    for fault in &run.faults {
        let _ = writeln!(text, "NOT TO BE RELIED ON: {fault}");
    }
    let _ = writeln!(
        text,
        "{} calls per leader and round, {} rounds; median of rounds (lowest–highest), µs; more: \
         than the round's best",
        run.calls, run.rounds
    );
    for ring in RingSetting::ALL {
        let mut table = plain();
        table.set_header(["leader"].into_iter().chain(HEADS));
        for one in run.candidates.iter().filter(|one| one.ring == ring) {
            let name = Cell::new(&one.leader);
            table.add_row(std::iter::once(name).chain(cells(one).map(right)));
        }
        let _ = writeln!(text, "\n{}\n{table}", ring.text());
        for line in by_asker(run, ring) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

fn cells(one: &Candidate) -> [String; 5] {
    [
        one.predicted_us,
        one.measured_us,
        one.error_percent,
        one.predicted_more_us,
        one.measured_more_us,
    ]
    .map(with_range)
}

/// What was predicted while each leader led, beside what was measured; of every round.
fn by_asker(run: &Leaders, ring: RingSetting) -> Vec<String> {
    let trials = || run.trials.iter().filter(|trial| trial.ring == ring);
    let line = |asker: &Trial| {
        let mut words = Vec::new();
        for one in &asker.asked {
            let same = |trial: &&Trial| (trial.round, &trial.leader) == (asker.round, &one.leader);
            let Some(trial) = trials().find(same) else { continue };
            let error = 100.0 * (one.predicted_us / trial.measured_us - 1.0);
            words.push(format!("{} {:.0} ({error:+.0} %)", one.leader, one.predicted_us));
        }
        format!("round {}, asked while {} led: {}", asker.round, asker.leader, words.join(", "))
    };
    trials().map(line).collect()
}

/// The page.
pub(crate) fn leaders_page(run: &Leaders) -> String {
    let mut page = open_page("Where the leader should be: predicted and measured", &run.faults);
    let _ = writeln!(
        page,
        "<p>Four nodes behind a wire of 30 µs a hop and 100 Mbit/s, a semi-active group on n1 to \
         n3, one client that calls without a pause ({} calls with each leader, {} rounds); the \
         lead moves from member to member while the domain runs. Predictions are made as \
         <code>quorba group advise</code> makes them, from what the nodes measured while n1 led. \
         Where the token rests sockets and \
         ORBs are not in them, so the columns to compare there are the last two: what a call takes \
         more than with the round's best leader. Where it circulates the client's own time is \
         known and added, so the error is one of the whole call. Medians of the rounds <span \
         class=\"range\">(lowest–highest)</span>, µs.</p>",
        run.calls, run.rounds
    );
    for ring in RingSetting::ALL {
        let _ = writeln!(page, "<h2>{}</h2>", ring.text());
        open_table(&mut page, &["leader"], &HEADS.map(str::to_owned));
        for one in run.candidates.iter().filter(|one| one.ring == ring) {
            let _ = write!(page, "<tr><td>{}</td>", one.leader);
            for cell in cells(one) {
                let _ = write!(page, "<td>{}</td>", ranged(&cell));
            }
            page.push_str("</tr>\n");
        }
        page.push_str(
            "</table></div>\n<p>By what was measured while another led, the cheapest \
                       first, with the error:</p>\n<ul>\n",
        );
        for line in by_asker(run, ring) {
            let _ = writeln!(page, "<li>{line}</li>");
        }
        page.push_str("</ul>\n");
    }
    environment(&mut page, &run.environment, &run.began, run.plan);
    page.push_str("</html>\n");
    page
}
