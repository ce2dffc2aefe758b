//! The plot of cost and rotation time against the size of the ring, as SVG.
//!
//! What it is not: a plotting library; it draws these two panels. Invariant: the same costs give
//! the same drawing, to the byte.

use super::Cost;
use std::fmt::Write;

/// One panel, in units of the drawing.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 260.0;
/// Room for the axes' figures.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 40.0;
/// Lines across.
const LEVELS: u32 = 4;

struct Series {
    name: &'static str,
    colour: &'static str,
    points: Vec<(f64, f64)>,
}

/// Draws what [`super::cost`] measured.
#[must_use]
pub fn plot(costs: &[Cost]) -> String {
    let of = |value: fn(&Cost) -> f64| -> Vec<(f64, f64)> {
        costs.iter().map(|cost| (cost.nodes as f64, value(cost))).collect()
    };
    let cost = [
        Series {
            name: "datagrams per message",
            colour: "#1f77b4",
            points: of(|cost| cost.datagrams),
        },
        Series {
            name: "kilobytes per message",
            colour: "#d62728",
            points: of(|cost| cost.bytes / 1000.0),
        },
    ];
    let rotation = [Series {
        name: "rotation time under load, ms",
        colour: "#2ca02c",
        points: of(|cost| cost.rotation.as_secs_f64() * 1000.0),
    }];
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#777\">\n",
        2.0 * WIDTH
    );
    panel(&mut svg, 0.0, &cost);
    panel(&mut svg, WIDTH, &rotation);
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, left: f64, series: &[Series]) {
    let points = || series.iter().flat_map(|one| &one.points);
    let right = points().map(|point| point.0).fold(1.0, f64::max);
    let top = points().map(|point| point.1).fold(f64::MIN_POSITIVE, f64::max);
    let x = |nodes: f64| left + LEFT + nodes / right * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
    for level in 0..=LEVELS {
        let value = top * f64::from(level) / f64::from(LEVELS);
        let _ = writeln!(
            svg,
            "<path d=\"M{:.1} {at:.1}H{:.1}\" stroke=\"#777\" stroke-opacity=\"0.25\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value:.2}</text>",
            x(0.0),
            x(right),
            x(0.0) - 6.0,
            y(value) + 4.0,
            at = y(value),
        );
    }
    for (nodes, _) in &series[0].points {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{nodes}</text>",
            x(*nodes),
            HEIGHT - BOTTOM + 16.0,
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">nodes in the ring</text>",
        (x(0.0) + x(right)) / 2.0,
        HEIGHT - 6.0,
    );
    for (index, one) in series.iter().enumerate() {
        let path: Vec<String> =
            one.points.iter().map(|(nodes, v)| format!("{:.1} {:.1}", x(*nodes), y(*v))).collect();
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>",
            path.join("L"),
            x(0.0),
            14.0 + 14.0 * index as f64,
            one.name,
            colour = one.colour,
        );
    }
}
