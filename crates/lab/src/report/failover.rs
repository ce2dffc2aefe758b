//! A failover run for people: a table for the terminal, and a page with a plot of every
//! repetition.
//!
//! Invariants: what is known against the figures stands before them; a target stands beside a
//! figure and is no verdict.

use std::fmt::Write;

use comfy_table::Cell;

use super::html::{environment, open_page, open_table, ranged};
use super::strips::{Strip, strips};
use super::svg::escape;
use super::table::{plain, right};
use super::with_range;
use crate::failover::{Case, EFFECT, Failover, SERVER_REPLY, Sharing};
use crate::stats::Spread;

const HEADS: [&str; 9] = [
    "gap ms",
    "target",
    "around ms",
    "window ms",
    "control ms",
    "controls",
    "latency ms",
    "before ms",
    "exceptions",
];

/// The summary of a failover run.
#[must_use]
pub fn failover_table(run: &Failover) -> String {
    let mut text = String::new();
    for fault in &run.faults {
        let _ = writeln!(text, "NOT TO BE RELIED ON: {fault}");
    }
    let _ = writeln!(
        text,
        "longest time without an answer around a fault; median of {} repetitions (lowest–highest)",
        run.repetitions
    );
    let mut table = plain();
    table.set_header(["style", "fault"].into_iter().chain(HEADS));
    for case in &run.cases {
        let names = [case.style.as_str(), case.fault.as_str()].map(Cell::new);
        table.add_row(names.into_iter().chain(cells(case).map(right)));
    }
    let _ = writeln!(text, "{table}");
    for line in &run.skipped {
        let _ = writeln!(text, "{line}");
    }
    text
}

fn cells(case: &Case) -> [String; 9] {
    [
        ms(case.gap_us),
        case.target_text(),
        ms(case.around_us),
        ms(case.window_us),
        ms(case.control_us),
        with_range(case.controls),
        format!("{:.3}", case.normal_us.median / 1e3),
        ms(case.longest_before_us),
        case.exceptions.to_string(),
    ]
}

fn ms(us: Spread) -> String {
    with_range(Spread { median: us.median / 1e3, min: us.min / 1e3, max: us.max / 1e3 })
}

/// The page.
pub(crate) fn failover_page(run: &Failover) -> String {
    let mut page = open_page("How long a client waits when something dies", &run.faults);
    let _ = writeln!(
        page,
        "<p>Three nodes, a bank of three members; one client calls without a pause, at the gateway \
         of n3, and knows the others; it repeats calls of unknown outcome under one FT_REQUEST \
         identity. Styles with a leader are led by n1; in an active group the member at the \
         client's gateway replies. Nodes wait {} ms for a server that owes a reply. \
         {} repetitions, each with a domain of its own.</p>\n\
         <p>The gap is the longest time without an answer from the fault until a second after it; \
         beside it, around: the wait in which the fault came; window: the longest wait that the \
         {effect} ms behind the fault touch; control: the same of {effect} ms without a fault, the \
         median of those in the second before; controls: window by control; latency: the median \
         of a call in that second; before: the longest time without an answer in it, which is \
         what the machine does by itself. Medians of the repetitions \
         <span class=\"range\">(lowest–highest)</span>.</p>\n\
         <p>A target is what the project wants on a machine that is not busy. One in ms is for the \
         median gap; one of ms + ms has what the former leader's \
         server took for the requests that the next one has to execute anew. Who does not lose its \
         replier should feel nothing, 1.5 latencies at most: as \
         the machine alone makes one call in a while wait for many latencies, that is judged by \
         the median of <i>controls</i>, which is 1 where a fault is not felt at all (see \
         <i>nothing</i>).</p>",
        SERVER_REPLY.as_millis(),
        run.repetitions,
        effect = EFFECT.as_millis()
    );
    for line in &run.skipped {
        let _ = writeln!(page, "<p>{}</p>", escape(line));
    }
    for style in Sharing::ALL {
        let cases: Vec<&Case> = run.cases.iter().filter(|case| case.style == style).collect();
        if !cases.is_empty() {
            section(&mut page, run, style, &cases);
        }
    }
    environment(&mut page, &run.environment, &run.began, run.plan);
    page.push_str("</html>\n");
    page
}

fn section(page: &mut String, run: &Failover, style: Sharing, cases: &[&Case]) {
    let _ = writeln!(page, "<h2>{}</h2>", style.as_str());
    open_table(page, &["fault"], &HEADS.map(str::to_owned));
    for case in cases {
        let text = escape(case.fault.text());
        let _ = write!(page, "<tr><td><b>{}</b>: {text}</td>", case.fault.as_str());
        for cell in cells(case) {
            let _ = write!(page, "<td>{}</td>", ranged(&cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
    let rows: Vec<Strip> = cases.iter().map(|case| strip(run, case)).collect();
    let label = format!("{}: the gap of every repetition", style.as_str());
    page.push_str(&strips(&label, "longest time without an answer, ms (logarithmic)", &rows));
    page.push_str(
        "<p>Dots: repetitions. Short line: the median latency without a fault. Long line: the \
         target.</p>\n",
    );
}

fn strip(run: &Failover, case: &Case) -> Strip {
    let mine = run.samples.iter().filter(|one| (one.style, one.fault) == (case.style, case.fault));
    Strip {
        name: case.fault.as_str().to_owned(),
        dots: mine.map(|one| one.gap_us / 1e3).collect(),
        short: Some(case.normal_us.median / 1e3),
        long: case.target_us().map(|us| us / 1e3),
    }
}
