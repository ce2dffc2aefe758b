//! What a run has found: one record per experiment, and the medians over the rounds.
//!
//! Invariants: a record is on disk as soon as it is known; a figure stands with its range over
//! the rounds, and with the number of rounds that gave it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use quorba_lab::{Environment, Spread};
use serde::Serialize;

use super::experiment::Figures;

/// One experiment of one peer in one round.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Record {
    pub(super) nodes: usize,
    pub(super) round: usize,
    pub(super) peer: &'static str,
    pub(super) experiment: String,
    /// What no figure says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    #[serde(flatten)]
    pub(super) result: Found,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Found {
    Figures(Figures),
    /// The peer has no such thing.
    Unsupported(String),
    Failed(String),
}

/// A record with its samples: a line of `samples.ndjson`.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    record: &'a Record,
    samples_ns: &'a [u64],
}

/// One figure over the rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) nodes: usize,
    pub(super) peer: &'static str,
    pub(super) experiment: String,
    pub(super) figure: &'static str,
    #[serde(flatten)]
    pub(super) spread: Spread,
    pub(super) rounds: usize,
}

/// All of a run: `run.json`.
#[derive(Serialize)]
pub(super) struct Run {
    pub(super) began: String,
    pub(super) environment: Environment,
    /// What is known against the figures.
    pub(super) faults: Vec<String>,
    pub(super) rounds: usize,
    /// Name and description of everyone who was measured.
    pub(super) peers: Vec<(&'static str, &'static str)>,
    /// Who was not measured, and why.
    pub(super) skipped: Vec<String>,
    pub(super) failed: Vec<String>,
    pub(super) rows: Vec<Row>,
}

impl Run {
    /// A figure, if any round gave it.
    pub(super) fn figure(
        &self,
        nodes: usize,
        peer: &str,
        experiment: &str,
        figure: &str,
    ) -> Option<Spread> {
        let is_it = |row: &&Row| {
            row.nodes == nodes
                && row.peer == peer
                && row.experiment == experiment
                && row.figure == figure
        };
        self.rows.iter().find(is_it).map(|row| row.spread)
    }
}

/// The medians over the rounds.
pub(super) fn rows(records: &[Record]) -> Vec<Row> {
    let mut values: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for record in records {
        let Found::Figures(figures) = &record.result else { continue };
        for (figure, value) in figures {
            let key = (record.nodes, record.peer, record.experiment.clone(), *figure);
            values.entry(key).or_default().push(*value);
        }
    }
    let row = |((nodes, peer, experiment, figure), values): (_, Vec<f64>)| {
        let rounds = values.len();
        let spread = Spread::of(values)?;
        Some(Row { nodes, peer, experiment, figure, spread, rounds })
    };
    values.into_iter().filter_map(row).collect()
}

/// The folder of a run.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    samples: File,
}

impl Folder {
    /// Makes a folder of this name below `out`.
    pub(super) fn make(out: &Path, name: &str) -> Result<Self, String> {
        let path = out.join(name);
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let samples = path.join("samples.ndjson");
        let samples =
            File::create(&samples).map_err(|error| format!("{}: {error}", samples.display()))?;
        Ok(Self { path, samples })
    }

    pub(super) fn add(&mut self, record: &Record, samples_ns: &[u64]) -> Result<(), String> {
        let line = serde_json::to_string(&Line { record, samples_ns }).expect("plain data");
        writeln!(self.samples, "{line}").map_err(|error| format!("samples.ndjson: {error}"))
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.path.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_median_of_the_rounds_that_have_the_figure() {
        let record = |round, result| Record {
            nodes: 3,
            round,
            peer: "a",
            experiment: "latency".into(),
            notes: Vec::new(),
            result,
        };
        let figures = |value| Found::Figures([("p50_us", value)].into());
        let records = [
            record(1, figures(3.0)),
            record(2, figures(1.0)),
            record(3, Found::Failed("late".into())),
            record(4, figures(2.0)),
        ];
        let rows = rows(&records);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].spread.median, rows[0].rounds), (2.0, 3));
        let line = serde_json::to_string(&records[2]).expect("plain data");
        assert!(line.contains("\"failed\":\"late\""), "{line}");
    }
}
