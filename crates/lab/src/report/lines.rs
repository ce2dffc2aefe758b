//! Lines over a few values, as SVG: one line per name, a mark at every value.
//!
//! What it is not: a plotting library; see [`super::svg`].
//!
//! Invariants: all text is escaped; colours are the page's; the y axis begins at 0, and values
//! stand at equal distances on the x axis, whatever they are.

use std::fmt::Write;

use super::svg::{COLOURS, escape};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 44.0;
const LEVELS: u32 = 4;

/// A line: a y for each value of the x axis that it has one for.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) ys: Vec<Option<f64>>,
    pub(super) dashed: bool,
}

/// Draws the lines and names them; nothing if there is nothing to draw.
pub(super) fn lines(label: &str, axis: &str, xs: &[u32], all: &[Line]) -> String {
    let ys = all.iter().flat_map(|line| line.ys.iter().flatten());
    let Some(top) = ys.copied().max_by(f64::total_cmp).filter(|top| *top > 0.0) else {
        return String::new();
    };
    let x = |index: usize| {
        let share = (index as f64 + 0.5) / xs.len() as f64;
        LEFT + share * (WIDTH - LEFT - RIGHT)
    };
    let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
    let label = escape(label);
    let mut svg = format!(
        "<div><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">\n"
    );
    for level in 0..=LEVELS {
        let value = top * f64::from(level) / f64::from(LEVELS);
        let y = y(value);
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{:.1}\" stroke=\"var(--fg)\" stroke-opacity=\"0.15\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value:.2}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0
        );
    }
    for (index, value) in xs.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value}</text>",
            x(index),
            HEIGHT - BOTTOM + 16.0
        );
    }
    for (index, line) in all.iter().enumerate() {
        draw(&mut svg, index, line, &x, &y);
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n</svg>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 8.0,
        escape(axis)
    );
    legend(&mut svg, all);
    svg.push_str("</div>\n");
    svg
}

fn draw(
    svg: &mut String,
    index: usize,
    line: &Line,
    x: &dyn Fn(usize) -> f64,
    y: &dyn Fn(f64) -> f64,
) {
    let colour = index % COLOURS;
    let places: Vec<(f64, f64)> = (line.ys.iter().enumerate())
        .filter_map(|(index, value)| Some((x(index), y((*value)?))))
        .collect();
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    let dash = if line.dashed { " stroke-dasharray=\"5 3\"" } else { "" };
    if !path.is_empty() {
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" fill=\"none\" stroke=\"var(--c{colour})\" \
             stroke-width=\"1.6\"{dash}/>",
            path.join("L")
        );
    }
    for (x, y) in places {
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"var(--c{colour})\"/>"
        );
    }
}

fn legend(svg: &mut String, all: &[Line]) {
    svg.push_str("<div class=\"legend\">");
    for (index, line) in all.iter().enumerate() {
        let dash = if line.dashed { " class=\"dash\"" } else { "" };
        let colour = index % COLOURS;
        let name = escape(&line.name);
        let _ = write!(
            svg,
            "<span><i{dash} style=\"border-color: var(--c{colour})\"></i>{name}</span>"
        );
    }
    svg.push_str("</div>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_a_mark_and_holes_are_none() {
        let line =
            |ys: &[Option<f64>]| Line { name: "<a>".to_owned(), ys: ys.to_vec(), dashed: false };
        let all = [line(&[Some(1.0), None, Some(3.0)]), line(&[None, None, None])];
        let svg = lines("l", "x", &[1, 2, 4], &all);
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("&lt;a&gt;") && svg.contains(">3.00<") && !svg.contains("NaN"));
        assert_eq!(lines("l", "x", &[1], &[line(&[None])]), "");
    }
}
