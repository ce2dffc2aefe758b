//! Strips of dots, as SVG: one row per case, every sample a dot, on one logarithmic axis.
//!
//! What it is not: a plotting library; see [`super::svg`].
//!
//! Invariant: all text is escaped; colours are the page's.

use std::fmt::Write;

use super::svg::{COLOURS, escape};

const WIDTH: f64 = 920.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 44.0;
/// Height of a row.
const ROW: f64 = 34.0;

/// A row.
pub(super) struct Strip {
    pub(super) name: String,
    pub(super) dots: Vec<f64>,
    /// Where a short line stands.
    pub(super) short: Option<f64>,
    /// Where a long line stands.
    pub(super) long: Option<f64>,
}

/// Draws the rows; nothing if there is nothing to draw.
pub(super) fn strips(label: &str, axis: &str, rows: &[Strip]) -> String {
    let values = || rows.iter().flat_map(|row| row.dots.iter().chain(&row.short).chain(&row.long));
    let positive = || values().copied().filter(|value| *value > 0.0);
    let (Some(least), Some(most)) =
        (positive().min_by(f64::total_cmp), positive().max_by(f64::total_cmp))
    else {
        return String::new();
    };
    // Whole decades, so that there are at least two marks.
    let (from, to) = (least.log10().floor(), (most.log10().floor() + 1.0));
    let x = |value: f64| {
        let share = (value.max(f64::MIN_POSITIVE).log10() - from) / (to - from);
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    };
    let bottom = TOP + ROW * rows.len() as f64;
    let height = bottom + BOTTOM;
    let label = escape(label);
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{label}\">\n");
    let mut power = from;
    while power <= to {
        let value = 10f64.powf(power);
        let x = x(value);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{bottom:.1}\" stroke=\"var(--fg)\" stroke-opacity=\"0.15\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value}</text>",
            bottom + 16.0
        );
        power += 1.0;
    }
    for (index, row) in rows.iter().enumerate() {
        let middle = TOP + ROW * (index as f64 + 0.5);
        draw(&mut svg, row, index, middle, &x);
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n</svg>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        height - 8.0,
        escape(axis)
    );
    svg
}

fn draw(svg: &mut String, row: &Strip, index: usize, middle: f64, x: &dyn Fn(f64) -> f64) {
    let colour = index % COLOURS;
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        LEFT - 8.0,
        middle + 4.0,
        escape(&row.name)
    );
    for (value, half) in [(row.short, 6.0), (row.long, ROW / 2.0 - 2.0)] {
        let Some(value) = value else { continue };
        let _ = writeln!(
            svg,
            "<path d=\"M{:.1} {:.1}V{:.1}\" stroke=\"var(--fg)\" stroke-width=\"1.6\"/>",
            x(value),
            middle - half,
            middle + half
        );
    }
    for value in &row.dots {
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"4\" fill=\"var(--c{colour})\" \
             fill-opacity=\"0.6\"/>",
            x(*value)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_a_dot_within_the_drawing() {
        let row = |dots: &[f64]| Strip {
            name: "a<b".to_owned(),
            dots: dots.to_vec(),
            short: Some(0.1),
            long: None,
        };
        let svg = strips("\"l\"", "ms", &[row(&[1.0, 20.0, 333.0]), row(&[5.0])]);
        assert_eq!(svg.matches("<circle").count(), 4);
        assert!(svg.contains("a&lt;b") && svg.contains(">1000</text>") && !svg.contains("NaN"));
        for part in svg.split("cx=\"").skip(1) {
            let x: f64 = part.split('"').next().expect("a number").parse().expect("a number");
            assert!((LEFT..=WIDTH - RIGHT).contains(&x));
        }
    }

    #[test]
    fn nothing_is_no_drawing() {
        assert_eq!(strips("", "", &[]), "");
    }
}
