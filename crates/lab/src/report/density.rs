//! Plots of densities on a linear x axis, as SVG: the form of the paper's figures.
//!
//! What it is not: a plotting library. One plot, some lines, some marks.
//!
//! Invariants: as those of [`mod@super::svg`]; the x axis begins at 0 and ends where nearly all
//! samples of every line are shown, so that two plots of one row can be compared.

use std::fmt::Write;

use super::svg::{COLOURS, escape};
use crate::zhao::Pdf;

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 210.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 34.0;
/// Samples beyond this share do not widen the x axis.
const SHOWN: f64 = 0.95;
/// Figures on the x axis, at most.
const TICKS_MAX: f64 = 7.0;
/// Lines across, from 0 to the highest value.
const LEVELS: u32 = 3;

/// A line.
pub(super) struct Line<'a> {
    pub(super) name: String,
    pub(super) samples_ns: &'a [u64],
}

/// A vertical mark with a word to it.
pub(super) struct Mark {
    pub(super) at_us: f64,
    pub(super) word: String,
}

/// Draws densities; `None` if no line has samples. `least_us`: the axis is at least so long.
pub(super) fn densities(
    title: &str,
    lines: &[Line<'_>],
    marks: &[Mark],
    least_us: f64,
) -> Option<String> {
    let pdfs: Vec<Pdf> = lines.iter().map(|line| Pdf::of(line.samples_ns).smooth()).collect();
    let most_us = shown_us(lines).max(least_us);
    let highest = pdfs.iter().flat_map(|pdf| &pdf.per_us).copied().fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let scale = Scale { most_us, highest };
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n\
         <text x=\"{LEFT}\" y=\"14\">{title}</text>\n",
        title = escape(title)
    );
    axes(&mut svg, &scale);
    for mark in marks.iter().filter(|mark| (0.0..=most_us).contains(&mark.at_us)) {
        let x = scale.x(mark.at_us);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{:.1}\" stroke=\"var(--fg)\" stroke-dasharray=\"4 3\" \
             stroke-opacity=\"0.7\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            HEIGHT - BOTTOM,
            x + 3.0,
            TOP + 10.0,
            escape(&mark.word),
        );
    }
    for (index, (line, pdf)) in lines.iter().zip(&pdfs).enumerate() {
        let _ = writeln!(
            svg,
            "<path d=\"{}\" fill=\"none\" stroke=\"var(--c{})\" stroke-width=\"1.4\">\
             <title>{}</title></path>",
            path(&scale, pdf),
            index % COLOURS,
            escape(&line.name),
        );
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

/// Up to where nearly all samples of each line lie.
#[expect(clippy::cast_precision_loss, reason = "a time has far fewer than 52 bits")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a count")]
pub(super) fn shown_us(lines: &[Line<'_>]) -> f64 {
    let of = |line: &Line<'_>| {
        let mut sorted = line.samples_ns.to_vec();
        sorted.sort_unstable();
        let index = (sorted.len() as f64 * SHOWN) as usize;
        sorted.get(index.min(sorted.len().saturating_sub(1))).map_or(0.0, |ns| *ns as f64 / 1e3)
    };
    lines.iter().map(of).fold(10.0, f64::max).min(Pdf::MOST_US as f64)
}

struct Scale {
    most_us: f64,
    highest: f64,
}

impl Scale {
    fn x(&self, us: f64) -> f64 {
        LEFT + (us / self.most_us).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, per_us: f64) -> f64 {
        HEIGHT - BOTTOM - per_us / self.highest * (HEIGHT - TOP - BOTTOM)
    }
}

fn axes(svg: &mut String, scale: &Scale) {
    let grid = "stroke=\"var(--fg)\" stroke-opacity=\"0.15\"";
    let step = round_step(scale.most_us / TICKS_MAX);
    let mut us = 0.0;
    while us <= scale.most_us {
        let x = scale.x(us);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{:.1}\" {grid}/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{us}</text>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 14.0,
        );
        us += step;
    }
    for level in 0..=LEVELS {
        let per_us = scale.highest * f64::from(level) / f64::from(LEVELS);
        let y = scale.y(per_us);
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{:.1}\" {grid}/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{:.2}</text>",
            WIDTH - RIGHT,
            LEFT - 4.0,
            y + 4.0,
            per_us * 100.0,
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">µs; % of samples per µs</text>",
        WIDTH - RIGHT,
        HEIGHT - 5.0
    );
}

/// The next of 1, 2, 5, 10, 20 and so on.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| *step >= least)
        .unwrap_or(10.0 * power)
}

/// A step for each microsecond, those of equal height together.
#[expect(clippy::cast_precision_loss, reason = "there are few bins")]
fn path(scale: &Scale, pdf: &Pdf) -> String {
    let mut path = format!("M{LEFT:.1} {:.1}", scale.y(0.0));
    let mut last = f64::NAN;
    for (us, per_us) in
        pdf.per_us.iter().enumerate().take_while(|(us, _)| *us as f64 <= scale.most_us)
    {
        let y = scale.y(*per_us);
        if (y - last).abs() >= 0.05 || last.is_nan() {
            let _ = write!(path, "H{:.1}V{y:.1}", scale.x(us as f64));
            last = y;
        }
    }
    let end = (pdf.per_us.len() as f64).min(scale.most_us);
    let _ = write!(path, "H{:.1}", scale.x(end));
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_shows_its_lines_and_marks() {
        let samples: Vec<u64> = (0..1_000).map(|n| 100_000 + n * 50).collect();
        let line = |name: &str| Line { name: name.to_owned(), samples_ns: &samples };
        let marks = [
            Mark { at_us: 120.0, word: "paper 741".to_owned() },
            Mark { at_us: 9_999.0, word: "far away".to_owned() },
        ];
        let svg = densities("a < b", &[line("one"), line("two")], &marks, 0.0).expect("a plot");
        assert!(svg.contains("a &lt; b") && svg.contains("paper 741") && !svg.contains("far away"));
        assert_eq!(svg.matches("fill=\"none\"").count(), 2);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(svg.contains(">100</text>"), "{svg}");
        let none = Line { name: String::new(), samples_ns: &[] };
        assert!(densities("none", &[none], &marks, 0.0).is_none());
    }

    #[test]
    fn steps_are_round() {
        assert_eq!([0.3, 7.0, 14.0, 21.0, 90.0].map(round_step), [1.0, 10.0, 20.0, 50.0, 100.0]);
    }
}
