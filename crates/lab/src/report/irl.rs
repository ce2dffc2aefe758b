//! The page and the table of a run that repeats IRL's experiments: the paper's ratios and ours.
//!
//! Invariants: what is known against the figures stands before them; every ratio is of one round,
//! and the paper's are those of its text.

use std::fmt::Write;

use comfy_table::Cell;
use quorba_base::policy::Style;

use super::html::{environment, open_page, open_table, table_of_rows};
use super::lines::{Line, lines};
use super::svg::escape;
use super::table::{plain, right, settings};
use crate::irl::{Experiment, STYLES, TABLE_1, direct};
use crate::placement::Setting;
use crate::record::{Row, Run};

/// What is shown of a row.
#[derive(Clone, Copy)]
enum Ratio {
    /// Mean latency, in that of the direct call.
    Latency,
    /// Calls a second, in those of the direct call.
    Throughput,
}

impl Ratio {
    const ALL: [Self; 2] = [Self::Latency, Self::Throughput];

    const fn title(self) -> &'static str {
        match self {
            Self::Latency => "L*: latency in that of the direct call",
            Self::Throughput => "throughput in that of the direct call",
        }
    }

    fn of(self, calls_against: f64) -> f64 {
        match self {
            // Clients call without a pause, so their mean latency is their number by throughput.
            Self::Latency => 1.0 / calls_against,
            Self::Throughput => calls_against,
        }
    }

    /// The middle of what the paper has for its two ORBs, and in words.
    fn paper(self, experiment: Experiment, value: u32) -> Option<(f64, String)> {
        let [low, high] = experiment.paper(value)?.map(|ratio| self.of(ratio));
        let words = if (low - high).abs() < f64::EPSILON {
            format!("{low:.1}")
        } else {
            format!("{:.1}–{:.1}", low.min(high), low.max(high))
        };
        Some((f64::midpoint(low, high), words))
    }
}

fn row<'a>(run: &'a Run, setting: Setting, name: &str) -> Option<&'a Row> {
    run.rows.iter().find(|row| row.setting == setting && row.configuration == name)
}

fn ours(
    run: &Run,
    setting: Setting,
    ratio: Ratio,
    experiment: Experiment,
    style: Style,
) -> Vec<Option<f64>> {
    let of = |value: &u32| {
        let row = row(run, setting, &experiment.configuration(style, *value))?;
        Some(ratio.of(row.calls_against.median))
    };
    experiment.values().iter().map(of).collect()
}

/// The ratios as text: experiment by experiment.
pub(super) fn irl_text(text: &mut String, run: &Run, setting: Setting) {
    for experiment in Experiment::ALL {
        for ratio in Ratio::ALL {
            let _ = writeln!(text, "\n{}; {}", experiment.title(), ratio.title());
            let mut table = plain();
            let values = experiment.values().iter().map(u32::to_string);
            table.set_header(std::iter::once("style".to_owned()).chain(values));
            for (name, cells) in ratio_rows(run, setting, ratio, experiment) {
                table.add_row(std::iter::once(Cell::new(name)).chain(cells.into_iter().map(right)));
            }
            let _ = writeln!(text, "{table}");
        }
    }
}

fn ratio_rows(
    run: &Run,
    setting: Setting,
    ratio: Ratio,
    experiment: Experiment,
) -> Vec<(String, Vec<String>)> {
    let none = || "–".to_owned();
    let mut rows: Vec<(String, Vec<String>)> = (STYLES.iter())
        .map(|style| {
            let cells = ours(run, setting, ratio, experiment, *style);
            let text = |cell: Option<f64>| cell.map_or_else(none, |ratio| format!("{ratio:.2}"));
            (style.to_string(), cells.into_iter().map(text).collect())
        })
        .collect();
    let paper = experiment.values().iter();
    let paper = paper.map(|value| ratio.paper(experiment, *value).map_or_else(none, |p| p.1));
    rows.push(("the paper".to_owned(), paper.collect()));
    rows
}

/// The ends of each experiment: what is said of a point, the experiment, and its value.
const ENDS: [(&str, Experiment, u32); 4] = [
    ("2 members, 1 client, 1 K", Experiment::Members, 2),
    ("4 members", Experiment::Members, 4),
    ("16 clients", Experiment::Clients, 16),
    ("20 K", Experiment::Size, 20),
];

/// Every style in one table: L* and throughput at the ends of the experiments.
fn in_short(page: &mut String, run: &Run, setting: Setting) {
    page.push_str(
        "<h3>In short</h3>\n<p>L* / throughput, each in that of the direct call of as many clients \
         and K; 2 members, 1 client and 1 K if not said otherwise.</p>\n",
    );
    if let Some(direct) = row(run, setting, &direct(1, 1)) {
        let [jacorb_ms, orbacus_ms] = TABLE_1[0].1;
        let _ = writeln!(
            page,
            "<p>A ratio hangs on what the direct call takes: {jacorb_ms} and {orbacus_ms} ms in \
             the paper, {:.3} ms here (1 client, 1 K). What a group adds to a call in \
             milliseconds is that times L* − 1.</p>",
            1e3 / direct.calls_per_s.median
        );
    }
    open_table(page, &["style"], &ENDS.map(|(words, ..)| words.to_owned()));
    let pair = |cells: [Option<String>; 2]| {
        let [latency, throughput] = cells.map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
        format!("<td>{latency} / {throughput}</td>")
    };
    for style in STYLES {
        let _ = write!(page, "<tr><td>{style}</td>");
        for (_, experiment, value) in ENDS {
            let row = row(run, setting, &experiment.configuration(style, value));
            let of = |ratio: Ratio| Some(format!("{:.2}", ratio.of(row?.calls_against.median)));
            page.push_str(&pair(Ratio::ALL.map(of)));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("<tr><td>the paper</td>");
    for (_, experiment, value) in ENDS {
        page.push_str(&pair(Ratio::ALL.map(|ratio| Some(ratio.paper(experiment, value)?.1))));
    }
    page.push_str("</tr>\n</table></div>\n");
}

/// The page.
pub(crate) fn irl_page(run: &Run) -> String {
    let mut page = open_page(&run.title, &run.faults);
    let _ = writeln!(
        page,
        "<p>R. Baldoni, C. Marchetti, A. Termini, <i>IRL: A Three-Tier Approach to FT-CORBA \
         Infrastructures</i>, 2002, §5.3. There: Java ORBs (JacORB, ORBacus), a host for every \
         process, a server that answers at once with an empty state; the ratios of the paper are \
         those of its text. Here: omniORB, all processes on the cores of one machine, and a \
         majority of three nodes (of four with four members) holds a request before it is \
         answered. {} calls per round after {} others, {} rounds; a ratio is that of one round, \
         then the median.</p>\n\
         <p>All members of an active group execute on the same cores here, where the paper's had \
         cores of their own: the ratios of this run are to be read with that.</p>",
        run.calls, run.warm_up, run.rounds
    );
    for setting in settings(run) {
        let _ = writeln!(page, "<h2>{}: {}</h2>", setting.as_str(), escape(setting.text()));
        in_short(&mut page, run, setting);
        for experiment in Experiment::ALL {
            section(&mut page, run, setting, experiment);
        }
        table_1(&mut page, run, setting);
        page.push_str("<h3>All figures</h3>\n");
        let rows: Vec<&Row> = run.rows.iter().filter(|row| row.setting == setting).collect();
        table_of_rows(&mut page, run, &rows);
    }
    environment(&mut page, &run.environment, &run.began, &run.plan);
    page.push_str("</html>\n");
    page
}

fn section(page: &mut String, run: &Run, setting: Setting, experiment: Experiment) {
    let title = experiment.title();
    let _ = writeln!(page, "<h3>{title}</h3>");
    let mut plots = String::new();
    for ratio in Ratio::ALL {
        let _ = writeln!(page, "<p>{}</p>", ratio.title());
        let values: Vec<String> = experiment.values().iter().map(u32::to_string).collect();
        open_table(page, &["style"], &values);
        for (name, cells) in ratio_rows(run, setting, ratio, experiment) {
            let _ = write!(page, "<tr><td>{name}</td>");
            for cell in cells {
                let _ = write!(page, "<td>{cell}</td>");
            }
            page.push_str("</tr>\n");
        }
        page.push_str("</table></div>\n");
        let mut all: Vec<Line> = (STYLES.iter())
            .map(|style| Line {
                name: style.to_string(),
                ys: ours(run, setting, ratio, experiment, *style),
                dashed: false,
            })
            .collect();
        let paper = experiment.values().iter();
        let paper = paper.map(|value| ratio.paper(experiment, *value).map(|p| p.0));
        let name = "the paper".to_owned();
        all.push(Line { name, ys: paper.collect(), dashed: true });
        plots.push_str(&lines(
            &format!("{title}: {}", ratio.title()),
            ratio.title(),
            experiment.values(),
            &all,
        ));
    }
    let _ = writeln!(page, "<div class=\"pair\">\n{plots}</div>");
}

/// The direct calls, beside the paper's.
fn table_1(page: &mut String, run: &Run, setting: Setting) {
    page.push_str("<h3>Table 1: the direct call</h3>\n");
    let heads = ["calls/s", "JacORB", "ORBacus", "latency ms", "JacORB", "ORBacus"];
    open_table(page, &["clients"], &heads.map(str::to_owned));
    for (clients, latency_ms, calls_per_s) in TABLE_1 {
        let Some(row) = row(run, setting, &direct(clients, 1)) else { continue };
        let ours = row.calls_per_s.median;
        let _ = writeln!(
            page,
            "<tr><td>{clients}</td><td>{ours:.0}</td><td>{}</td><td>{}</td><td>{:.3}</td>\
             <td>{:.2}</td><td>{:.2}</td></tr>",
            calls_per_s[0],
            calls_per_s[1],
            f64::from(clients) * 1e3 / ours,
            latency_ms[0],
            latency_ms[1]
        );
    }
    page.push_str("</table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::block;

    #[test]
    fn ratios_of_ours_and_of_the_paper_stand_beside_each_other() {
        let plan = crate::irl::plan();
        let mut blocks = Vec::new();
        for one in &plan.configurations {
            let p50_us = if one.name.starts_with("direct") { 100.0 } else { 250.0 };
            blocks.push(block(&one.name, 1, p50_us));
        }
        let run = Run::of(&plan, String::new(), crate::Environment::read(), blocks);
        let page = irl_page(&run);
        for part in [
            "2.50",
            "0.40",
            "2.5–3.3",
            "5.0",
            "the paper",
            "<svg",
            "ORBacus",
            "1926",
            "2.50 / 0.40",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf"));
        let mut text = String::new();
        irl_text(&mut text, &run, Setting::Free);
        assert!(text.contains("Experiment 3") && text.contains("0.40"), "{text}");
    }
}
