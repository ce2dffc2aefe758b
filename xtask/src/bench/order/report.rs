//! A run for people: tables in Markdown, and bars.
//!
//! Invariant: no figure without its range over the rounds.

use std::fmt::Write;

use quorba_lab::Spread;

use super::plot::{self, Bar};
use super::record::Run;

/// A column: head, experiment, figure, and by what the figure is divided.
type Column = (&'static str, &'static str, &'static str, f64);

/// Tables: what they are about, and their columns.
const TABLES: [(&str, &[Column]); 6] = [
    (
        "Latency of 1 KB, one outstanding, sender to itself, µs",
        &[
            ("p50", "latency", "p50_us", 1.0),
            ("p99", "latency", "p99_us", 1.0),
            ("other node sends, p50", "latency-other", "p50_us", 1.0),
            ("after 50 ms of silence, p50", "silence", "p50_us", 1.0),
            ("safe, p50", "latency-safe", "p50_us", 1.0),
            ("CPU µs/message", "latency", "cpu_us_per_message", 1.0),
        ],
    ),
    (
        "All nodes send with a window, thousand messages/s",
        &[
            ("64 B", "stream-64", "messages_per_s", 1e3),
            ("1 KB", "stream-1024", "messages_per_s", 1e3),
            ("8 KB", "stream-8192", "messages_per_s", 1e3),
            ("CPU µs/64 B", "stream-64", "cpu_us_per_message", 1.0),
            ("CPU µs/1 KB", "stream-1024", "cpu_us_per_message", 1.0),
            ("CPU µs/8 KB", "stream-8192", "cpu_us_per_message", 1.0),
        ],
    ),
    (
        "All nodes send without a window, thousand messages/s",
        &[
            ("64 B", "flood-64", "messages_per_s", 1e3),
            ("1 KB", "flood-1024", "messages_per_s", 1e3),
            ("8 KB", "flood-8192", "messages_per_s", 1e3),
        ],
    ),
    (
        "A node fails while another sends each ms; idle",
        &[
            ("killed: view, ms", "kill", "view_ms", 1.0),
            ("longest gap, ms", "kill", "gap_ms", 1.0),
            ("frozen: view, ms", "freeze", "view_ms", 1.0),
            ("longest gap, ms", "freeze", "gap_ms", 1.0),
            ("idle CPU, % per node", "idle", "cpu_percent_per_node", 1.0),
        ],
    ),
    (
        "All nodes send 1 KB for minutes",
        &[
            ("thousand messages/s", "soak", "messages_per_s", 1e3),
            ("CPU µs/message", "soak", "cpu_us_per_message", 1.0),
            ("longest gap, ms", "soak", "gap_ms", 1.0),
            ("views", "soak", "views", 1.0),
        ],
    ),
    (
        "Token rotation, µs",
        &[
            ("after silence, p50", "silence", "rotation_p50_us", 1.0),
            ("one outstanding, p50", "latency", "rotation_p50_us", 1.0),
            ("loaded with 1 KB, p50", "stream-1024", "rotation_p50_us", 1.0),
            ("p99", "stream-1024", "rotation_p99_us", 1.0),
        ],
    ),
];

/// Plots: file name, what they show, experiment, figure, divisor.
const PLOTS: [(&str, &str, Column); 5] = [
    ("latency", "Latency of 1 KB, p50, µs (less is better)", TABLES[0].1[0]),
    ("silence", "After 50 ms of silence, p50, µs (less is better)", TABLES[0].1[3]),
    ("stream-64", "64 B, thousand messages/s (more is better)", TABLES[1].1[0]),
    ("stream-1024", "1 KB, thousand messages/s (more is better)", TABLES[1].1[1]),
    ("stream-8192", "8 KB, thousand messages/s (more is better)", TABLES[1].1[2]),
];

/// The tables of a run.
pub(super) fn markdown(run: &Run) -> String {
    let mut text = String::new();
    for fault in &run.faults {
        let _ = writeln!(text, "**Not to be relied on**: {fault}.\n");
    }
    let _ = writeln!(text, "Medians of {} rounds (lowest–highest).", run.rounds);
    for nodes in node_counts(run) {
        for (title, columns) in TABLES {
            table(&mut text, run, nodes, title, columns);
        }
    }
    text
}

fn table(text: &mut String, run: &Run, nodes: usize, title: &str, columns: &[Column]) {
    let mut rows = Vec::new();
    for (peer, _) in &run.peers {
        let spreads: Vec<_> =
            columns.iter().map(|column| cell_of(run, nodes, peer, column)).collect();
        if spreads.iter().any(Option::is_some) {
            let cells: Vec<_> =
                spreads.into_iter().map(|one| one.map_or("–".into(), cell)).collect();
            rows.push(format!("| {peer} | {} |", cells.join(" | ")));
        }
    }
    if rows.is_empty() {
        return;
    }
    let heads: Vec<_> = columns.iter().map(|(head, ..)| *head).collect();
    let _ = writeln!(text, "\n{title}, {nodes} nodes:\n\n| | {} |", heads.join(" | "));
    let _ = writeln!(text, "|---|{}", "---|".repeat(columns.len()));
    for row in rows {
        let _ = writeln!(text, "{row}");
    }
}

/// The drawings of a run: file name and SVG.
pub(super) fn plots(run: &Run) -> Vec<(String, String)> {
    let mut plots = Vec::new();
    for nodes in node_counts(run) {
        for (name, title, column) in &PLOTS {
            let bar = |(peer, _): &(&'static str, &'static str)| {
                Some(Bar { name: peer, spread: cell_of(run, nodes, peer, column)? })
            };
            let bars: Vec<Bar> = run.peers.iter().filter_map(bar).collect();
            if !bars.is_empty() {
                let title = format!("{title}, {nodes} nodes");
                plots.push((format!("{name}-{nodes}.svg"), plot::bars(&title, &bars)));
            }
        }
    }
    plots
}

fn cell_of(run: &Run, nodes: usize, peer: &str, column: &Column) -> Option<Spread> {
    let (_, experiment, figure, divisor) = column;
    let Spread { median, min, max } = run.figure(nodes, peer, experiment, figure)?;
    Some(Spread { median: median / divisor, min: min / divisor, max: max / divisor })
}

fn node_counts(run: &Run) -> Vec<usize> {
    let mut counts: Vec<usize> = run.rows.iter().map(|row| row.nodes).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn cell(spread: Spread) -> String {
    let Spread { median, min, max } = spread;
    format!("{} ({}–{})", digits(median), digits(min), digits(max))
}

/// Three digits that count.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size < 1.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use quorba_lab::Environment;

    use super::super::record::Row;
    use super::*;

    fn run() -> Run {
        let spread = Spread { median: 84.0, min: 80.0, max: 165.0 };
        Run {
            began: String::new(),
            environment: Environment::read(),
            faults: Vec::new(),
            rounds: 3,
            peers: vec![("a", "is there"), ("b", "is not")],
            skipped: Vec::new(),
            failed: Vec::new(),
            rows: vec![Row {
                nodes: 3,
                peer: "a",
                experiment: "latency".into(),
                figure: "p50_us",
                spread,
                rounds: 3,
            }],
        }
    }

    #[test]
    fn only_what_was_measured_is_shown() {
        let text = markdown(&run());
        assert!(text.contains("| a | 84.0 (80.0–165) | – | – |"), "{text}");
        assert!(!text.contains("| b |") && !text.contains("Token rotation"), "{text}");
        let plots = plots(&run());
        assert_eq!(plots.len(), 1);
        assert_eq!(plots[0].0, "latency-3.svg");
        assert!(plots[0].1.contains(">84.0<"), "{}", plots[0].1);
    }
}
