//! Plots of how often a call took how long, as SVG.
//!
//! What it is not: a plotting library. It draws this one plot: latency on a logarithmic x axis,
//! the share of calls per bin on the y axis, one line per configuration.
//!
//! Invariants: all text is escaped; colours come from the page's variables `--c0` to `--c7` and
//! `--fg`, so that the page chooses them for light and dark; beyond 8 lines they are dashed.

use std::fmt::Write;

use crate::histogram::Bin;

/// Lines of one colour before colours repeat with dashes.
pub(super) const COLOURS: usize = 8;
/// The whole drawing, in units of the SVG.
const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 340.0;
/// Room for the axes' figures.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 44.0;
/// Bins of smaller share than this do not widen the x axis: a single slow call would.
const SHARE_SEEN: f64 = 5e-4;
/// Lines across, from 0 to the highest share.
const LEVELS: u32 = 4;

/// A line of a plot.
pub(super) struct Series<'a> {
    pub(super) name: &'a str,
    pub(super) bins: Vec<Bin>,
}

/// Where figures are on the drawing.
struct Scale {
    from_log: f64,
    to_log: f64,
    top_share: f64,
}

/// Draws the lines; `None` if there is nothing to draw.
pub(super) fn plot(label: &str, series: &[Series<'_>]) -> Option<String> {
    let scale = Scale::around(series)?;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
        escape(label)
    );
    axes(&mut svg, &scale);
    for (index, one) in series.iter().enumerate() {
        let dash = if index < COLOURS { "" } else { " stroke-dasharray=\"5 3\"" };
        let _ = writeln!(
            svg,
            "<path d=\"{}\" fill=\"none\" stroke=\"var(--c{})\" stroke-width=\"1.6\"{dash}>\
             <title>{}</title></path>",
            line(&scale, &one.bins),
            index % COLOURS,
            escape(one.name),
        );
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

/// Text as it may stand in HTML and SVG, in attributes too.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Scale {
    fn around(series: &[Series<'_>]) -> Option<Self> {
        let bins = || series.iter().flat_map(|one| &one.bins);
        let seen = || bins().filter(|bin| bin.share >= SHARE_SEEN);
        let least = seen().map(|bin| bin.from_us).min_by(f64::total_cmp)?;
        let most = seen().map(|bin| bin.to_us).max_by(f64::total_cmp)?;
        let top_share = bins().map(|bin| bin.share).max_by(f64::total_cmp)?;
        Some(Self { from_log: least.log10(), to_log: most.log10(), top_share })
    }

    fn x(&self, us: f64) -> f64 {
        let share = (us.log10() - self.from_log) / (self.to_log - self.from_log);
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, share: f64) -> f64 {
        HEIGHT - BOTTOM - share / self.top_share * (HEIGHT - TOP - BOTTOM)
    }
}

fn axes(svg: &mut String, scale: &Scale) {
    let grid = "stroke=\"var(--fg)\" stroke-opacity=\"0.15\"";
    for us in marks(scale) {
        let x = scale.x(us);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{:.1}\" {grid}/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{us}</text>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 16.0,
        );
    }
    for level in 0..=LEVELS {
        let share = scale.top_share * f64::from(level) / f64::from(LEVELS);
        let y = scale.y(share);
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{:.1}\" {grid}/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{:.1} %</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            share * 100.0,
        );
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    let bottom = HEIGHT - 8.0;
    let _ = writeln!(
        svg,
        "<text x=\"{middle}\" y=\"{bottom}\" text-anchor=\"middle\">latency, µs (logarithmic); \
         share of calls per bin, 48 bins to a factor of 10</text>"
    );
}

/// 1, 2 and 5 times the powers of ten, as far as they are in range.
fn marks(scale: &Scale) -> Vec<f64> {
    let mut marks = Vec::new();
    for power in -3..=10 {
        for digit in [1.0, 2.0, 5.0] {
            let us: f64 = digit * 10f64.powi(power);
            if (scale.from_log..=scale.to_log).contains(&us.log10()) {
                marks.push(us);
            }
        }
    }
    marks
}

/// Steps, because that is what bins are.
fn line(scale: &Scale, bins: &[Bin]) -> String {
    let mut path = String::new();
    let beyond =
        |bin: &&Bin| bin.from_us.log10() < scale.to_log && bin.to_us.log10() > scale.from_log;
    for (index, bin) in bins.iter().filter(beyond).enumerate() {
        let (from, to, y) = (scale.x(bin.from_us), scale.x(bin.to_us), scale.y(bin.share));
        let start = scale.y(0.0);
        let lead = if index == 0 { format!("M{from:.1} {start:.1}") } else { String::new() };
        let _ = write!(path, "{lead}V{y:.1}H{to:.1}");
    }
    if !path.is_empty() {
        let _ = write!(path, "V{:.1}", scale.y(0.0));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;

    fn bins(samples_ns: &[u64]) -> Vec<Bin> {
        let mut some = Histogram::default();
        some.add(samples_ns);
        some.bins()
    }

    #[test]
    fn all_of_a_plot_is_within_it() {
        let fast: Vec<u64> = (0..1000).map(|n| 60_000 + n * 50).collect();
        let slow = [fast.clone(), vec![900_000_000]].concat();
        let series =
            [Series { name: "a<b", bins: bins(&fast) }, Series { name: "c", bins: bins(&slow) }];
        let svg = plot("\"p\"", &series).expect("a plot");
        assert!(svg.contains("a&lt;b") && svg.contains("aria-label=\"&quot;p&quot;\""));
        assert_eq!(svg.matches("<path").count() - svg.matches("stroke-opacity").count(), 2);
        // The one call in 1001 is seen; the axis ends with it, and begins with the fastest.
        assert!(svg.contains(">100</text>"), "{svg}");
        for number in svg.split(['M', 'V', 'H', ' ', '"']).filter_map(|n| n.parse::<f64>().ok()) {
            assert!((-1.0..=1e9).contains(&number) && number.is_finite());
        }
        let last = Scale::around(&series).expect("a scale");
        assert!((last.x(1.0) - LEFT).abs() < 1e-9);
        assert!((last.x(1e12) - (WIDTH - RIGHT)).abs() < 1e-9);
        assert!((last.y(0.0) - (HEIGHT - BOTTOM)).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_no_plot() {
        assert!(plot("", &[]).is_none());
        assert!(plot("", &[Series { name: "a", bins: Vec::new() }]).is_none());
        let one = [Series { name: "a", bins: bins(&[1]) }];
        assert!(plot("", &one).is_some_and(|svg| !svg.contains("NaN") && !svg.contains("inf")));
    }

    #[test]
    fn marks_are_round() {
        let scale = Scale { from_log: 1.0, to_log: 2.5, top_share: 1.0 };
        assert_eq!(marks(&scale), [10.0, 20.0, 50.0, 100.0, 200.0]);
    }
}
