//! The summary for a terminal.

use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, Table, presets};

use super::{figure, times, with_range};
use crate::placement::Setting;
use crate::record::{Row, Run};

/// The summary of a run: the configurations, then the breakdown, setting by setting.
#[must_use]
pub fn table(run: &Run) -> String {
    let mut text = String::new();
    for fault in &run.faults {
        let _ = writeln!(text, "NOT TO BE RELIED ON: {fault}");
    }
    let _ = writeln!(
        text,
        "{} calls of {} longs per round, {} rounds; median of rounds (lowest–highest), µs",
        run.calls, run.longs, run.rounds
    );
    for setting in settings(run) {
        let _ = writeln!(text, "\n{}: {}", setting.as_str(), setting.text());
        let _ = writeln!(text, "{}", rows(run, setting));
        let _ = writeln!(text, "\nCPU µs/call by process; × calls/s is in those of the direct");
        let _ = writeln!(text, "call of the same round\n{}", processes(run, setting));
        if run.rows.iter().any(|row| row.setting == setting && row.replies.is_some()) {
            let _ = writeln!(text, "\nreplies through the order, per call");
            let _ = writeln!(text, "{}", replies(run, setting));
        }
        if run.plan == crate::irl::PLAN {
            super::irl::irl_text(&mut text, run, setting);
        }
        if run.steps.iter().any(|step| step.setting == setting) {
            let _ = writeln!(text, "\n{}", steps(run, setting));
        }
    }
    for claim in run.zhao2002.iter().flat_map(|outcome| &outcome.claims) {
        let verdict = if claim.agrees { "agrees " } else { "differs" };
        let setting = claim.setting.as_str();
        let _ = writeln!(text, "\n{verdict} ({setting}) {}: {}", claim.place, claim.paper);
        let _ = writeln!(text, "        here: {}", claim.ours);
        let _ = writeln!(text, "        {}", claim.why);
    }
    text
}

/// The settings of a run, in its order.
pub(super) fn settings(run: &Run) -> Vec<Setting> {
    let mut settings: Vec<Setting> = run.rows.iter().map(|row| row.setting).collect();
    settings.dedup();
    settings
}

/// The columns of a row after the first two, which are its name and its title.
pub(super) fn cells(row: &Row) -> [String; 7] {
    [
        with_range(row.p50_us),
        with_range(row.p99_us),
        times(row.times_against),
        figure(row.calls_per_s.median),
        times(row.calls_against),
        with_range(row.cpu_us),
        figure(row.sleeps.median),
    ]
}

/// Heads of those columns.
pub(super) fn heads(run: &Run) -> [String; 7] {
    [
        "p50".to_owned(),
        "p99".to_owned(),
        if run.rows.iter().any(|row| row.against != run.against) {
            "× p50".to_owned()
        } else {
            format!("× {}", run.against)
        },
        "calls/s".to_owned(),
        "× calls/s".to_owned(),
        "CPU/call".to_owned(),
        "waits/call".to_owned(),
    ]
}

fn rows(run: &Run, setting: Setting) -> Table {
    let mut table = plain();
    table.set_header(std::iter::once("configuration".to_owned()).chain(heads(run)));
    for row in run.rows.iter().filter(|row| row.setting == setting) {
        let name = Cell::new(&row.configuration);
        table.add_row(std::iter::once(name).chain(cells(row).map(right)));
    }
    table
}

fn processes(run: &Run, setting: Setting) -> Table {
    let mut table = plain();
    for row in run.rows.iter().filter(|row| row.setting == setting) {
        let of_all: Vec<String> = (row.cpu_us_by_process.iter())
            .map(|(name, cpu_us)| {
                let name = name.replace("server of ", "s:");
                format!("{name} {}", figure(cpu_us.median))
            })
            .collect();
        table.add_row([row.configuration.clone(), of_all.join("  ")]);
    }
    table
}

fn replies(run: &Run, setting: Setting) -> Table {
    let mut table = plain();
    table.set_header(["", "sent", "not sent", "sent in vain", "rotation µs"]);
    for row in run.rows.iter().filter(|row| row.setting == setting) {
        let Some(replies) = row.replies else { continue };
        let mut cells = vec![Cell::new(&row.configuration)];
        cells.extend(replies.map(|spread| right(format!("{:.2}", spread.median))));
        cells.push(right(row.rotation_us.map_or_else(String::new, with_range)));
        table.add_row(cells);
    }
    table
}

fn steps(run: &Run, setting: Setting) -> Table {
    let mut table = plain();
    table.set_header(["where it goes", "p50", "CPU/call", "from", "to"]);
    for step in run.steps.iter().filter(|step| step.setting == setting) {
        table.add_row([
            Cell::new(&step.name),
            right(with_range(step.p50_us)),
            right(with_range(step.cpu_us)),
            Cell::new(step.from.as_deref().unwrap_or("")),
            Cell::new(&step.to),
        ]);
    }
    table
}

pub(super) fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

pub(super) fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::run;

    #[test]
    fn every_row_and_step_has_its_line() {
        let text = table(&run());
        for part in ["free: ", "70.0 (60.0–80.0)", "140 (120–150)", "2.00", "gateway", "waits"]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("RELIED"));
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    }

    #[test]
    fn faults_come_first() {
        let mut run = run();
        run.faults.push("a storm".to_owned());
        assert!(table(&run).starts_with("NOT TO BE RELIED ON: a storm\n"));
    }
}
