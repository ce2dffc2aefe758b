//! The table of a run, and all of its figures as JSON.
//!
//! Invariant: a row is right only if nothing is outside of its brackets, and what is outside is
//! told below the table.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use quorba_lab::Environment;
use serde::Serialize;

use super::case::{Latency, Row, Triple};
use crate::workspace;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    Text,
    Json,
}

/// All of a run.
#[derive(Serialize)]
struct Run<'a> {
    environment: Environment,
    outside: usize,
    rows: &'a [Row],
}

/// Prints the table, writes the file, and says by the exit code whether all is within brackets.
pub(super) fn finish(rows: &[Row], output: Output, out: Option<&Path>) -> ExitCode {
    let outside = rows.iter().filter(|row| !row.faults.is_empty()).count();
    let run = Run { environment: Environment::read(), outside, rows };
    let json = serde_json::to_string_pretty(&run).expect("figures and texts are plain data");
    let path: PathBuf =
        out.map_or_else(|| workspace::target().join("hostile.json"), Path::to_owned);
    if let Err(error) = fs::write(&path, &json) {
        eprintln!("failed: {}: {error}", path.display());
        return ExitCode::FAILURE;
    }
    match output {
        Output::Json => println!("{json}"),
        Output::Text => {
            print!("{}", table(rows));
            println!("figures: {}", path.display());
        }
    }
    if outside == 0 && !rows.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<24} {:<36} {:<20} {:<28} {:<16} {:<12} {:<14} {:>5} {:>4}  {}\n",
        "attack",
        "MiB n1 n2 n3: before/peak/after",
        "p50 ms b/d/a",
        "p99 ms b/d/a (max)",
        "beside b/d/a",
        "left % b/d/a",
        "files b/p/a",
        "lines",
        "s",
        "verdict"
    );
    for row in rows {
        text.push_str(&line(row));
    }
    let outside: Vec<&Row> = rows.iter().filter(|row| !row.faults.is_empty()).collect();
    for row in &outside {
        for fault in &row.faults {
            text.push_str(&format!("outside: {}: {fault}\n", row.attack));
        }
    }
    let within = rows.len() - outside.len();
    text.push_str(&format!("hostile: {within} within brackets, {} outside\n", outside.len()));
    text
}

fn line(row: &Row) -> String {
    let mib = |one: &Triple| format!("{}/{}/{}", one.before >> 20, one.peak >> 20, one.after >> 20);
    let memory: Vec<String> = row.rss_bytes.iter().map(mib).collect();
    let ms = |us: u64| us as f64 / 1e3;
    let times =
        |of: &Latency| format!("{:.1}/{:.1}/{:.1}", ms(of.before), ms(of.during), ms(of.after));
    let ([files, ..], left) = (row.files, row.left_percent);
    let verdict = if row.faults.is_empty() { "right" } else { "OUTSIDE" };
    format!(
        "{:<24} {:<36} {:<20} {:<28} {:<16} {:<12} {:<14} {:>5} {:>4.0}  {verdict}; {}\n",
        row.attack,
        memory.join("  "),
        times(&row.p50_us),
        format!("{} ({:.0})", times(&row.p99_us), ms(row.p99_us_max.during)),
        times(&row.beside_p99_us),
        format!("{}/{}/{}", left.before, left.during, left.after),
        format!("{}/{}/{}", files.before, files.peak, files.after),
        row.log_lines,
        row.took_ms as f64 / 1e3,
        row.notes.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outside_is_named_below_the_table() {
        let right = Row { attack: "mild", ..Row::default() };
        let wrong = Row { attack: "wild", faults: vec!["too much".into()], ..Row::default() };
        let text = table(&[right, wrong]);
        assert!(text.contains("outside: wild: too much\n"), "{text}");
        assert!(text.ends_with("hostile: 1 within brackets, 1 outside\n"), "{text}");
    }
}
