//! The page of a run: everything in one file that needs no other.

use std::fmt::Write;

use super::svg::{COLOURS, Series, escape, plot};
use super::table::{cells, heads, settings};
use super::{Plots, with_range};
use crate::environment::Environment;
use crate::placement::Setting;
use crate::record::{Row, Run};

/// The page.
pub(crate) fn html(run: &Run, plots: &Plots) -> String {
    let mut page = open_page(&run.title, &run.faults);
    let _ = writeln!(
        page,
        "<p>One client, one call at a time, a sequence of {} longs each way. {} measured calls \
         per round after {} others, {} rounds of every configuration in turn. Each figure is the \
         median of the rounds <span class=\"range\">(lowest–highest)</span>; times in µs. CPU is \
         that of all processes of a configuration together; a wait is a thread that gives up its \
         core until somebody wakes it.</p>",
        run.longs, run.calls, run.warm_up, run.rounds
    );
    for setting in settings(run) {
        section(&mut page, run, plots, setting);
    }
    environment(&mut page, &run.environment, &run.began, &run.plan);
    page.push_str("</html>\n");
    page
}

/// The head of a page: its title, and what is known against its figures.
pub(super) fn open_page(title: &str, faults: &[String]) -> String {
    let mut page = String::new();
    let title = escape(title);
    let _ = writeln!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>\n{}</style>\n<h1>{title}</h1>",
        include_str!("page.css")
    );
    for fault in faults {
        let _ = writeln!(page, "<p class=\"fault\">Not to be relied on: {}</p>", escape(fault));
    }
    page
}

fn section(page: &mut String, run: &Run, plots: &Plots, setting: Setting) {
    let _ = writeln!(page, "<h2>{}: {}</h2>", setting.as_str(), escape(setting.text()));
    let rows: Vec<&Row> = run.rows.iter().filter(|row| row.setting == setting).collect();
    table_of_rows(page, run, &rows);
    let (headline, blocks): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.headline);
    for (what, rows) in [("The comparison", headline), ("Building blocks", blocks)] {
        picture(page, plots, setting, what, &rows);
    }
    steps(page, run, setting);
    processes(page, &rows);
}

pub(super) fn table_of_rows(page: &mut String, run: &Run, rows: &[&Row]) {
    open_table(page, &["configuration"], &heads(run));
    for row in rows {
        let class = if row.headline { " class=\"headline\"" } else { "" };
        let name = format!("{}: {}", row.configuration, row.title);
        let _ = write!(page, "<tr{class}><td>{}</td>", escape(&name));
        for cell in cells(row) {
            let _ = write!(page, "<td>{}</td>", ranged(&cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

fn picture(page: &mut String, plots: &Plots, setting: Setting, what: &str, rows: &[&Row]) {
    let series: Vec<Series<'_>> = (rows.iter())
        .filter_map(|row| {
            let bins = plots.of(setting, &row.configuration)?.bins();
            Some(Series { name: &row.configuration, bins })
        })
        .collect();
    let label = format!("{what}, {}: distribution of latency", setting.as_str());
    let Some(svg) = plot(&label, &series) else { return };
    let _ = write!(page, "<h3>{what}</h3>\n{svg}<div class=\"legend\">");
    for (index, one) in series.iter().enumerate() {
        let dash = if index < COLOURS { "" } else { " class=\"dash\"" };
        let colour = index % COLOURS;
        let name = escape(one.name);
        let _ = write!(
            page,
            "<span><i{dash} style=\"border-color: var(--c{colour})\"></i>{name}</span>"
        );
    }
    page.push_str("</div>\n");
}

fn steps(page: &mut String, run: &Run, setting: Setting) {
    let steps: Vec<_> = run.steps.iter().filter(|step| step.setting == setting).collect();
    if steps.is_empty() {
        return;
    }
    page.push_str("<h3>Where the time goes</h3>\n");
    open_table(page, &["part"], &["p50", "CPU/call", "difference of"].map(str::to_owned));
    for step in steps {
        let of = match &step.from {
            Some(from) => format!("{} − {from}", step.to),
            None => step.to.clone(),
        };
        let _ = writeln!(
            page,
            "<tr><td><b>{}</b>: {}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&step.name),
            escape(&step.text),
            ranged(&with_range(step.p50_us)),
            ranged(&with_range(step.cpu_us)),
            escape(&of),
        );
    }
    page.push_str("</table></div>\n");
}

fn processes(page: &mut String, rows: &[&Row]) {
    page.push_str("<h3>CPU time per call, by process</h3>\n");
    open_table(page, &["configuration", "process"], &["CPU/call".to_owned()]);
    for row in rows {
        for (process, cpu_us) in &row.cpu_us_by_process {
            let _ = writeln!(
                page,
                "<tr><td>{}</td><td class=\"text\">{}</td><td>{}</td></tr>",
                escape(&row.configuration),
                escape(process),
                ranged(&with_range(*cpu_us)),
            );
        }
    }
    page.push_str("</table></div>\n");
}

pub(super) fn environment(page: &mut String, facts: &Environment, began: &str, plan: &str) {
    let unknown = || "unknown".to_owned();
    let load = facts.load_average.map(|[one, five, fifteen]| format!("{one} {five} {fifteen}"));
    let lines = [
        ("began", began.to_owned()),
        ("CPU", facts.cpu.clone().unwrap_or_else(unknown)),
        ("cores", facts.cores.to_string()),
        ("virtual machine", if facts.is_virtual { "yes" } else { "no" }.to_owned()),
        ("kernel", facts.kernel.clone()),
        ("frequency governor", facts.governor.clone().unwrap_or_else(unknown)),
        ("idle driver, governor", facts.idle.clone().unwrap_or_else(unknown)),
        ("load average before", load.unwrap_or_else(unknown)),
        ("version", format!("{}, {} build", facts.version, facts.build)),
        ("commit", facts.commit.clone().unwrap_or_else(unknown)),
        ("again", format!("quorba lab run {plan}")),
    ];
    page.push_str("<h2>Environment</h2>\n<table>\n");
    for (name, value) in lines {
        let value = escape(&value);
        let _ = writeln!(page, "<tr><td>{name}</td><td class=\"text\">{value}</td></tr>");
    }
    page.push_str("</table>\n");
}

pub(super) fn open_table(page: &mut String, words: &[&str], figures: &[String]) {
    page.push_str("<div class=\"wide\"><table><thead><tr>");
    for word in words {
        let _ = write!(page, "<th class=\"text\">{word}</th>");
    }
    for figure in figures {
        let _ = write!(page, "<th>{}</th>", escape(figure));
    }
    page.push_str("</tr></thead>\n");
}

/// The range in a paler shade, so that the medians can be read down a column.
pub(super) fn ranged(cell: &str) -> String {
    match cell.split_once(" (") {
        Some((median, range)) => {
            format!("{} <span class=\"range\">({}</span>", escape(median), escape(range))
        }
        None => escape(cell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::{block, run};

    fn page() -> String {
        let mut plots = Plots::default();
        for name in ["direct", "one-node"] {
            plots.add(&block(name, 1, 70.0), &[70_000, 71_000, 90_000]);
        }
        html(&run(), &plots)
    }

    #[test]
    fn the_page_holds_everything_and_needs_nothing() {
        let page = page();
        for part in ["direct", "one-node", "gateway", "server", "A &lt;CPU&gt;", "<svg", "2.00"] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("http") && !page.contains("<script") && !page.contains("src="));
        assert!(!page.contains("class=\"fault\""));
    }

    #[test]
    fn tags_are_closed() {
        let page = page();
        for tag in ["table", "tr", "td", "th", "thead", "svg", "div", "span", "h2", "h3", "path"] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            let alone = page
                .split(&format!("<{tag} "))
                .skip(1)
                .filter(|rest| rest.split_once('>').is_some_and(|(inner, _)| inner.ends_with('/')))
                .count();
            assert_eq!(opened - alone, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn faults_are_shouted() {
        let mut run = run();
        run.faults.push("1 < 2".to_owned());
        let page = html(&run, &Plots::default());
        assert!(page.contains("<p class=\"fault\">Not to be relied on: 1 &lt; 2</p>"));
        assert!(!page.contains("<svg"));
    }
}
