//! Predicted and measured latencies of each leader, for people.
//!
//! Invariant: what is known against the figures stands before them.

use std::fmt::Write;

use comfy_table::Cell;

use super::html::{environment, open_page, open_table, ranged};
use super::table::{plain, right};
use super::with_range;
use crate::leaders::{Candidate, Leaders, RingSetting};

const HEADS: [&str; 4] = ["predicted", "measured", "predicted more", "measured more"];

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
    }
    text
}

fn cells(one: &Candidate) -> [String; 4] {
    [one.predicted_us, one.measured_us, one.predicted_more_us, one.measured_more_us].map(with_range)
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
         Sockets and \
         ORBs are not in them, so the columns to compare are the last two: what a call takes more \
         than with the round's best leader. Medians of the rounds <span \
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
        page.push_str("</table></div>\n");
    }
    environment(&mut page, &run.environment, &run.began, run.plan);
    page.push_str("</html>\n");
    page
}
