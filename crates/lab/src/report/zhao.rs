//! The page of a run that repeats Zhao02: the paper's figures 2 to 6, its numbers and ours.
//!
//! Invariants: what is known against the figures stands before them; the paper's marks in plots
//! are scaled by the rotation without load, and say so.

use std::fmt::Write;

use super::density::{Line, Mark, densities, shown_us};
use super::html::{environment, open_page, open_table, table_of_rows};
use super::svg::{COLOURS, escape};
use super::table::settings;
use crate::placement::Setting;
use crate::record::{Row, Run};
use crate::zhao::{
    Claim, Figures, NODES, Outcome, Repetition, RingKind, Samples, Scenario, Shape, list_of, paper,
};

/// The page.
pub(crate) fn page(run: &Run, outcome: &Outcome, samples: &Samples) -> String {
    let mut page = open_page(&run.title, &run.faults);
    let _ = writeln!(
        page,
        "<p>W. Zhao, L. E. Moser, P. M. Melliar-Smith, <i>End-to-End Latency of a Fault-Tolerant \
         CORBA Infrastructure</i>, 2002. Four nodes on one ring; an omniORB client at node 0, a \
         replica at each of the nodes 1 to 3, which come behind it on the ring; {} longs each way, \
         one call at a time, {} calls after {} others. The paper had four PCs of 1 GHz on a \
         100 Mbit/s Ethernet; here all processes share the cores of one machine, and the plan says \
         what wire the ring's datagrams go through.</p>\n\
         <p><b>As in the paper</b>: the token circulates always, nothing is sealed, a reply is an \
         ordered message and waits for nothing else; semi-active replication is active with one \
         member that replies. <b>As shipped</b>: the token rests where it was used last, datagrams \
         are sealed, a reply waits until a majority holds the request; one member replies.</p>",
        run.longs, run.calls, run.warm_up
    );
    for setting in settings(run) {
        let one = Section { run, outcome, samples, setting };
        one.write(&mut page);
    }
    environment(&mut page, &run.environment, &run.began, &run.plan);
    page.push_str("</html>\n");
    page
}

/// One setting of the run.
struct Section<'a> {
    run: &'a Run,
    outcome: &'a Outcome,
    samples: &'a Samples,
    setting: Setting,
}

impl<'a> Section<'a> {
    fn write(&self, page: &mut String) {
        let setting = self.setting;
        let _ = writeln!(page, "<h2>{}: {}</h2>", setting.as_str(), escape(setting.text()));
        self.claims(page);
        self.numbers(page);
        let rows: Vec<&Row> = self.run.rows.iter().filter(|row| row.setting == setting).collect();
        page.push_str("<h3>Calls</h3>\n");
        table_of_rows(page, self.run, &rows);
        self.latencies(page);
        self.rotations(page, "Figure 3: token rotation, semi-active", &Scenario::ALL[..3]);
        self.rotations(page, "Figure 4: token rotation, active", &Scenario::ALL[3..]);
        let send: Pick = |one, node| &one.trace.nodes[node].send_delays;
        self.ends(page, "Figure 5: how long messages wait for the token", send, send);
        let client: Pick = |one, node| &one.trace.nodes[node].clients;
        let server: Pick = |one, node| &one.trace.nodes[node].servers;
        self.ends(page, "Figure 6: processing in client and server", client, server);
    }

    fn figures(&self, scenario: Scenario, ring: RingKind) -> Option<&'a Figures> {
        self.outcome.figures.iter().find(|one| {
            one.setting == self.setting
                && (one.repeats.scenario, one.repeats.ring) == (scenario, ring)
        })
    }

    fn claims(&self, page: &mut String) {
        let mine = |claim: &&Claim| claim.setting == self.setting;
        let claims: Vec<&Claim> = self.outcome.claims.iter().filter(mine).collect();
        if claims.is_empty() {
            return;
        }
        let agree = claims.iter().filter(|claim| claim.agrees).count();
        let _ = writeln!(
            page,
            "<h3>Where the shape agrees, and where not</h3>\n<p>{agree} of {} statements of \
             the paper hold here. A rotation is that of the token without load: in the paper {} \
             µs.</p>",
            claims.len(),
            paper::ROTATION_US
        );
        page.push_str("<table class=\"claims\"><thead><tr>");
        for head in ["the paper", "here, as in the paper", "", "why"] {
            let _ = write!(page, "<th class=\"text\">{head}</th>");
        }
        page.push_str("</tr></thead>\n");
        for claim in claims {
            let verdict = if claim.agrees { "agrees" } else { "differs" };
            let _ = writeln!(
                page,
                "<tr><td>{}: {}</td><td class=\"text\">{}</td><td class=\"text\"><b>{verdict}</b>\
                 </td><td class=\"text\">{}</td></tr>",
                escape(claim.place),
                escape(&claim.paper),
                escape(&claim.ours),
                escape(&claim.why)
            );
        }
        page.push_str("</table>\n");
    }

    fn numbers(&self, page: &mut String) {
        page.push_str("<h3>Numbers</h3>\n");
        let heads = RingKind::ALL.map(|ring| ring.text().to_owned());
        let heads = std::iter::once("the paper".to_owned()).chain(heads).collect::<Vec<_>>();
        open_table(page, &["quantity, µs unless it says otherwise"], &heads);
        let mut row = |name: &str, paper: &str, of: &dyn Fn(RingKind) -> Option<String>| {
            let _ = write!(page, "<tr><td>{}</td><td>{}</td>", escape(name), escape(paper));
            for ring in RingKind::ALL {
                let cell = of(ring).unwrap_or_else(|| "–".to_owned());
                let _ = write!(page, "<td>{}</td>", escape(&cell));
            }
            page.push_str("</tr>\n");
        };
        for scenario in Scenario::ALL {
            let paper = paper::latency_us(scenario);
            let times = paper / paper::ROTATION_US;
            let text = match scenario {
                Scenario::E => format!("{paper}–{}", paper + paper::THINKING_SPREAD_US),
                _ => format!("{paper} = {times:.2} rotations"),
            };
            row(&format!("latency, peak, {}", scenario.text()), &text, &|ring| {
                let figures = self.figures(scenario, ring)?;
                Some(with_rotations(&figures.latency, figures.idle_rotation.as_ref(), ring))
            });
        }
        for scenario in &Scenario::ALL[..4] {
            let paper =
                paper::rotations_per_call(*scenario).map_or("–".to_owned(), |n| n.to_string());
            row(&format!("token rotations per call, {}", scenario.text()), &paper, &|ring| {
                Some(format!("{:.2}", self.figures(*scenario, ring)?.rotations_per_call))
            });
        }
        for scenario in [Scenario::B, Scenario::D] {
            let paper = paper::messages_per_call(scenario).to_string();
            row(&format!("ordered messages per call, {}", scenario.text()), &paper, &|ring| {
                Some(format!("{:.2}", self.figures(scenario, ring)?.messages_per_call))
            });
        }
        let rotation = format!("{} = 4 × {}", paper::ROTATION_US, paper::PASSING_US);
        row("token rotation without load, peak", &rotation, &|ring| {
            // A token that rests goes round for other reasons.
            let ring = Some(ring).filter(|ring| *ring == RingKind::Paper)?;
            Some(places(self.figures(Scenario::B, ring)?.idle_rotation.as_ref()?))
        });
        let peaks = |peaks: [f64; 2]| format!("{}, {}", peaks[0], peaks[1]);
        for (name, scenario, node, paper) in [
            ("(a), node 0", Scenario::A, 0, peaks(paper::ROTATIONS_OTHERS_US)),
            ("(a), node 1", Scenario::A, 1, peaks(paper::ROTATIONS_PRIMARY_US)),
            ("(d), node 0", Scenario::D, 0, paper::ROTATION_ACTIVE_US.to_string()),
        ] {
            row(&format!("token rotation, peaks, {name}"), &paper, &|ring| {
                Some(places(self.figures(scenario, ring)?.nodes[node].rotation.as_ref()?))
            });
        }
        let wait = format!("{}", paper::REPLY_WAIT_AT_1_US);
        row("wait of the reply, median, (a), node 1", &wait, &|ring| {
            Some(median(self.figures(Scenario::A, ring)?.primary()?.send_delay.as_ref()?))
        });
        let most = format!("below {}", paper::PROCESSING_MOST_US);
        row("server's processing, median, (b)", &most, &|ring| {
            Some(median(self.figures(Scenario::B, ring)?.primary()?.server.as_ref()?))
        });
        row("client's processing, median, (b)", &most, &|ring| {
            Some(median(self.figures(Scenario::B, ring)?.nodes[0].client.as_ref()?))
        });
        page.push_str("</table></div>\n");
    }

    fn latencies(&self, page: &mut String) {
        page.push_str(
            "<h3>Figure 2: end-to-end latency at the client</h3>\n<p>The dashed line is the \
             paper's peak in rotations of its token, drawn at as many rotations of ours.</p>\n",
        );
        let rotation_us = self.figures(Scenario::B, RingKind::Paper);
        let rotation_us = rotation_us.and_then(|one| Some(one.idle_rotation.as_ref()?.peak_us()));
        for scenario in Scenario::ALL {
            let marks: Vec<Mark> = (rotation_us.iter())
                .map(|us| {
                    let paper_us = paper::latency_us(scenario);
                    Mark {
                        at_us: paper_us / paper::ROTATION_US * us,
                        word: format!("paper: {:.1} rotations", paper_us / paper::ROTATION_US),
                    }
                })
                .collect();
            let latency: Picks = |one| vec![(String::new(), &one.latencies_ns)];
            self.row_of_plots(page, scenario, latency, &marks);
        }
    }

    fn rotations(&self, page: &mut String, title: &str, scenarios: &[Scenario]) {
        let _ = writeln!(page, "<h3>{title}</h3>");
        legend(page, &std::array::from_fn::<String, NODES, _>(|node| format!("node {node}")));
        for scenario in scenarios {
            let rotations: Picks = |one| {
                let nodes = one.trace.nodes.iter().enumerate();
                nodes.map(|(n, node)| (format!("node {n}"), &node.rotations[..])).collect()
            };
            self.row_of_plots(page, *scenario, rotations, &[]);
        }
    }

    /// A figure that shows the client's node and the primary's.
    fn ends(&self, page: &mut String, title: &str, client: Pick, primary: Pick) {
        let _ = writeln!(page, "<h3>{title}</h3>");
        legend(page, &["client", "primary"]);
        for scenario in &Scenario::ALL[..3] {
            let place = scenario.primary().expect("these have one");
            let mut picked = Vec::new();
            for ring in RingKind::ALL {
                let Some(one) = self.samples.of(self.setting, *scenario, ring) else { continue };
                let line = |name: &str, samples_ns| Line { name: name.to_owned(), samples_ns };
                let lines =
                    vec![line("client", client(one, 0)), line("primary", primary(one, place))];
                picked.push((ring, lines));
            }
            plots(page, *scenario, &picked, &[]);
        }
    }

    fn row_of_plots(&self, page: &mut String, scenario: Scenario, picks: Picks, marks: &[Mark]) {
        let mut picked = Vec::new();
        for ring in RingKind::ALL {
            let Some(one) = self.samples.of(self.setting, scenario, ring) else { continue };
            let line = |(name, samples_ns)| Line { name, samples_ns };
            picked.push((ring, picks(one).into_iter().map(line).collect()));
        }
        plots(page, scenario, &picked, marks);
    }
}

/// One series of a node.
type Pick = fn(&Repetition, usize) -> &[u64];
/// Some named series.
type Picks = fn(&Repetition) -> Vec<(String, &[u64])>;

/// Plots of one scenario beside each other, with axes of one length.
fn plots(
    page: &mut String,
    scenario: Scenario,
    picked: &[(RingKind, Vec<Line<'_>>)],
    marks: &[Mark],
) {
    let longest_us = picked.iter().map(|(_, lines)| shown_us(lines)).fold(0.0, f64::max);
    page.push_str("<div class=\"pair\">\n");
    for (ring, lines) in picked {
        // The paper's marks belong to the ring that is set like its own.
        let marks = if *ring == RingKind::Paper { marks } else { &[] };
        let title = format!("{} — {}", scenario.text(), ring.text());
        page.push_str(&densities(&title, lines, marks, longest_us).unwrap_or_default());
    }
    page.push_str("</div>\n");
}

fn legend(page: &mut String, names: &[impl AsRef<str>]) {
    page.push_str("<div class=\"legend\">");
    for (index, name) in names.iter().enumerate() {
        let colour = index % COLOURS;
        let _ = write!(
            page,
            "<span><i style=\"border-color: var(--c{colour})\"></i>{}</span>",
            name.as_ref()
        );
    }
    page.push_str("</div>\n");
}

/// A peak, and how many rotations without load that is; a resting token has none to compare with.
fn with_rotations(shape: &Shape, rotation: Option<&Shape>, ring: RingKind) -> String {
    match rotation {
        Some(rotation) if ring == RingKind::Paper => {
            let rotations = shape.peak_us() / rotation.peak_us();
            format!("{:.0} = {rotations:.2} rotations", shape.peak_us())
        }
        _ => format!("{:.0}", shape.peak_us()),
    }
}

fn median(shape: &Shape) -> String {
    format!("{:.0}", shape.p50_us)
}

/// The places of the peaks.
fn places(shape: &Shape) -> String {
    list_of(&shape.peaks)
}
