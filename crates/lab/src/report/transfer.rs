//! A run of transfers for people: a table for the terminal, and a page.
//!
//! Invariants: what is known against the figures stands before them; what the project wants stands
//! beside them and is no verdict.

use std::fmt::Write;

use comfy_table::Cell;

use super::html::{environment, open_page, open_table, ranged};
use super::strips::{Strip, strips};
use super::svg::escape;
use super::table::{plain, right};
use super::with_range;
use crate::stats::Spread;
use crate::transfer::{LATENCIES_MAX, SHARE_MIN, Summary, Transfers};

const HEADS: [&str; 13] = [
    "MB/s",
    "raw MB/s",
    "share",
    "whole ms",
    "donor p50 ×",
    "donor p99 ×",
    "longest ms",
    "other p50 ×",
    "other p99 ×",
    "joiner ×",
    "donor ×",
    "joiner CPU ms",
    "donor CPU ms",
];

/// The summary of a run of transfers.
#[must_use]
pub fn transfer_table(run: &Transfers) -> String {
    let mut text = String::new();
    for fault in &run.faults {
        let _ = writeln!(text, "NOT TO BE RELIED ON: {fault}");
    }
    let _ = writeln!(
        text,
        "state to a member that comes back; wanted: share {SHARE_MIN} of the raw copy at least, \
         latencies {LATENCIES_MAX} times those before at most; median of {} repetitions \
         (lowest–highest)",
        run.repetitions
    );
    let mut table = plain();
    table.set_header(["state"].into_iter().chain(HEADS));
    for one in &run.summaries {
        table.add_row(std::iter::once(Cell::new(one.case)).chain(cells(one).map(right)));
    }
    let _ = writeln!(text, "{table}");
    for line in &run.skipped {
        let _ = writeln!(text, "{line}");
    }
    text
}

fn cells(one: &Summary) -> [String; 13] {
    let quotient = |spread: Spread| {
        let Spread { median, min, max } = spread;
        format!("{median:.2} ({min:.2}–{max:.2})")
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    [
        or_none(one.link_mb_s.map(with_range)),
        with_range(one.raw_mb_s),
        or_none(one.share.map(quotient)),
        with_range(one.whole_ms),
        quotient(one.donor_p50),
        quotient(one.donor_p99),
        with_range(one.donor_max_ms),
        quotient(one.other_p50),
        quotient(one.other_p99),
        quotient(one.joiner_copies),
        quotient(one.donor_copies),
        with_range(one.joiner_cpu_ms),
        with_range(one.donor_cpu_ms),
    ]
}

/// The page.
pub(crate) fn transfer_page(run: &Transfers) -> String {
    let mut page = open_page("How fast a state travels while clients call", &run.faults);
    let _ = writeln!(
        page,
        "<p>Three nodes, an active group whose servers have a state that does not compress; n1's \
         server is killed and gets its state from n2's. Two clients call, with a millisecond \
         between an answer and the next call: at n2 (donor) and at n3 (other). MB/s: over the \
         link; raw: a bare copy over the same link in the same repetition; whole: from the \
         server's death until its member is in again; donor and other ×: latencies while the \
         state is on its way, in those of the two seconds before; longest: the longest call at n2 \
         until the member is in; joiner and donor × of memory: the most that the node's process \
         had, in sizes of the state; CPU: of their processes meanwhile. Gigabit: each node has a \
         cable of 1 Gbit/s; otherwise they share the loopback. Paced: \
         <code>transfer_bytes_per_second</code> is 0.55 of the raw copy's. Wanted: share \
         {SHARE_MIN} at least, latencies {LATENCIES_MAX} at most. Medians of {} repetitions \
         <span class=\"range\">(lowest–highest)</span>.</p>",
        run.repetitions
    );
    for line in &run.skipped {
        let _ = writeln!(page, "<p>{}</p>", escape(line));
    }
    open_table(&mut page, &["state"], &HEADS.map(str::to_owned));
    for one in &run.summaries {
        let _ = write!(page, "<tr><td>{}</td>", one.case);
        for cell in cells(one) {
            let _ = write!(page, "<td>{}</td>", ranged(&cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
    let strip = |one: &Summary| {
        let mine = run.samples.iter().filter(|sample| sample.case == one.case);
        Strip {
            name: one.case.to_owned(),
            dots: mine.filter_map(|sample| sample.link_rate).map(|rate| rate / 1e6).collect(),
            short: Some(one.raw_mb_s.median),
            long: Some(one.raw_mb_s.median * SHARE_MIN),
        }
    };
    let rows: Vec<Strip> = run.summaries.iter().map(strip).collect();
    page.push_str(&strips("rate of every repetition", "MB/s over the link (logarithmic)", &rows));
    page.push_str("<p>Dots: repetitions. Short line: the raw copy. Long line: half of it.</p>\n");
    environment(&mut page, &run.environment, &run.began, run.plan);
    page.push_str("</html>\n");
    page
}
