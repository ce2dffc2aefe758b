//! Bars beside each other, as an SVG file that stands alone.
//!
//! Invariants: the axis begins at 0; the range over the rounds is drawn over each bar.

use std::fmt::Write;

use quorba_lab::Spread;

/// Units of the drawing.
const WIDTH: f64 = 860.0;
const NAMES_WIDTH: f64 = 190.0;
const FIGURES_WIDTH: f64 = 80.0;
const HEAD_HEIGHT: f64 = 34.0;
const BAR_HEIGHT: f64 = 16.0;
const ROW_HEIGHT: f64 = 24.0;
/// The names of our own configurations begin with this.
const OURS: &str = "quorba";

/// Dark letters on light ground, or the other way round where the reader's page is dark.
const STYLE: &str = "<style>text{font:13px sans-serif;fill:#222}.t{font-weight:bold}\
    .o{fill:#2a6fb0}.p{fill:#b9b9b9}.r{stroke:#222;stroke-width:1.5}\
    @media(prefers-color-scheme:dark){text{fill:#ddd}.o{fill:#5aa2e6}.p{fill:#666}\
    .r{stroke:#ddd}}</style>";

pub(super) struct Bar {
    pub(super) name: &'static str,
    pub(super) spread: Spread,
}

/// Draws the bars, one below the other.
pub(super) fn bars(title: &str, bars: &[Bar]) -> String {
    let rows = bars.iter().fold(0.0, |rows, _| rows + 1.0);
    let height = HEAD_HEIGHT + ROW_HEIGHT * rows;
    let most = bars.iter().map(|bar| bar.spread.max).fold(f64::MIN_POSITIVE, f64::max);
    let x = |value: f64| NAMES_WIDTH + value / most * (WIDTH - NAMES_WIDTH - FIGURES_WIDTH);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-label=\"{title}\">\n{STYLE}\n<text class=\"t\" x=\"4\" y=\"18\">\
         {title}</text>\n"
    );
    let mut top = HEAD_HEIGHT;
    for Bar { name, spread } in bars {
        let class = if name.starts_with(OURS) { "o" } else { "p" };
        let (middle, base) = (top + BAR_HEIGHT / 2.0, top + BAR_HEIGHT - 3.0);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{base:.1}\" text-anchor=\"end\">{name}</text>\
             <rect class=\"{class}\" x=\"{NAMES_WIDTH}\" y=\"{top:.1}\" width=\"{:.1}\" \
             height=\"{BAR_HEIGHT}\"/><path class=\"r\" d=\"M{:.1} {middle:.1}H{:.1}\"/>\
             <text x=\"{:.1}\" y=\"{base:.1}\">{:.1}</text>",
            NAMES_WIDTH - 8.0,
            x(spread.median) - NAMES_WIDTH,
            x(spread.min),
            x(spread.max),
            x(spread.max) + 8.0,
            spread.median,
        );
        top += ROW_HEIGHT;
    }
    svg.push_str("</svg>\n");
    svg
}
