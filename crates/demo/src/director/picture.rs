//! The live picture: the ring with its members, the rate, the latency, and what happened.
//!
//! What it is not: the terminal. Drawing is a function of the [`Model`] and the area alone, so a
//! test can look at it; [`super::screen`] owns the terminal.
//!
//! Invariant: no size of terminal makes it fail; what does not fit is left out.

use std::f64::consts::TAU;
use std::time::Duration;

use quorba_admin::status::MemberState;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::canvas::{Canvas, Circle, Context};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Sparkline, Table};

use super::model::{Event, EventKind, Model, NodeModel, Process};

#[cfg(test)]
mod tests;

/// Columns of the ring's picture, and where there are few in all.
const RING_COLUMNS: u16 = 34;
const RING_COLUMNS_FEW: u16 = 27;
/// From so many columns on, all of the table fits beside the ring.
const COLUMNS_MANY: u16 = 104;
/// Rows of the upper half.
const UPPER_ROWS: u16 = 14;

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let [title, upper, curves, events, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(UPPER_ROWS),
        Constraint::Length(4),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let is_wide = frame.area().width >= COLUMNS_MANY;
    let ring_columns = if is_wide { RING_COLUMNS } else { RING_COLUMNS_FEW };
    let [ring, table] =
        Layout::horizontal([Constraint::Length(ring_columns), Constraint::Min(20)]).areas(upper);
    frame.render_widget(title_line(model), title);
    draw_ring(frame, ring, model);
    let [nodes, figures] =
        Layout::vertical([Constraint::Min(3), Constraint::Length(5)]).areas(table);
    draw_nodes(frame, nodes, model, is_wide);
    draw_figures(frame, figures, model);
    draw_curves(frame, curves, model);
    draw_events(frame, events, model);
    frame.render_widget(keys_line(model), keys);
    if model.shows_help {
        draw_help(frame, model);
    }
}

/// What keys and columns mean, in front of everything else.
fn draw_help(frame: &mut Frame<'_>, model: &Model) {
    let all = if model.durable { "d  kill all nodes at once\n" } else { "" };
    let text = format!(
        "1-{}  choose the node that keys act on (again: none, they take turns)\n\
         k  kill a bank server; its node starts another one\n\
         n  kill a node; it is started again after 3 s, or by r\n\
         {all}\
         p  pause a node for 2 s (SIGSTOP)\n\
         r  start whatever is down now\n\
         c  kill by itself, or no longer\n\
         s  say how the ring stands\n\
         q  end the load and count what became of every call\n\n\
         process   the node's, as the demo started it\n\
         replica   in: it executes; joining: it is given the state\n\
         executed  requests since the group began; equal at rest\n\
         clients   connections at the node's gateway\n\
         restarts  of the node's bank server\n\
         unknown   calls cut off before the reply: executed once or not at all",
        model.nodes.len()
    );
    let area = frame.area();
    let rows = text.lines().count() as u16 + 2;
    let width = 88.min(area.width);
    let height = rows.min(area.height);
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let block = Block::bordered().title(" keys and columns; ? closes this ");
    frame.render_widget(Paragraph::new(text).block(block), place);
}

fn title_line(model: &Model) -> Line<'_> {
    let time = match model.run_for {
        Some(whole) => format!("{} of {}", seconds(model.elapsed), seconds(whole)),
        None => seconds(model.elapsed),
    };
    let state = if model.whole {
        Span::styled(" all members in ", Style::new().black().on_green())
    } else {
        Span::styled(" a member is out ", Style::new().black().on_yellow())
    };
    Line::from(vec![
        Span::styled("quorba demo", Modifier::BOLD),
        Span::raw(format!("  bank × {}  view {}  ", model.nodes.len(), model.view)),
        state,
        Span::raw(format!("  {} kills  {time}", model.kills)),
    ])
}

fn draw_ring(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    // A terminal's cell is twice as high as it is wide.
    let (width, height) = (f64::from(area.width), f64::from(area.height) * 2.0);
    let radius = (width / 2.0 - 8.0).min(height / 2.0 - 5.0).max(1.0);
    let canvas = Canvas::default()
        .block(Block::bordered().title(" the ring ").dim())
        .marker(Marker::Braille)
        .x_bounds([-width / 2.0, width / 2.0])
        .y_bounds([-height / 2.0, height / 2.0])
        .paint(|context| {
            context.draw(&Circle { x: 0.0, y: 0.0, radius, color: Color::DarkGray });
            for (index, node) in model.nodes.iter().enumerate() {
                let turn = index as f64 / model.nodes.len() as f64 * TAU;
                let (x, y) = (radius * turn.sin(), radius * turn.cos());
                print_node(context, x, y, node, model.selected == Some(index));
            }
        });
    frame.render_widget(canvas, area);
}

fn print_node(context: &mut Context<'_>, x: f64, y: f64, node: &NodeModel, selected: bool) {
    let style = node_style(node);
    let symbol = match (node.process, node.member) {
        (Process::Up, Some(MemberState::In)) => "●",
        (Process::Up, Some(MemberState::Joining)) => "◐",
        (Process::Paused, _) => "‖",
        (Process::Down, _) => "✗",
        _ => "○",
    };
    let name_style = if selected { style.reversed() } else { style };
    let label = Line::from(vec![
        Span::styled(format!("{symbol} "), style),
        Span::styled(node.name.clone(), name_style.add_modifier(Modifier::BOLD)),
    ]);
    context.print(x - 2.0, y, label);
    let word = if node.process == Process::Up { node.replica() } else { node.process.as_str() };
    context.print(x - word.len() as f64 / 2.0, y - 2.0, Line::styled(word, style));
}

fn node_style(node: &NodeModel) -> Style {
    match (node.process, node.member) {
        (Process::Up, Some(MemberState::In)) => Style::new().green(),
        (Process::Down, _) | (Process::Up, Some(MemberState::Down)) => Style::new().red(),
        _ => Style::new().yellow(),
    }
}

fn draw_nodes(frame: &mut Frame<'_>, area: Rect, model: &Model, is_wide: bool) {
    let rows = model.nodes.iter().map(|node| {
        Row::new([
            node.name.clone(),
            node.process.as_str().to_owned(),
            node.replica().to_owned(),
            node.executed(),
            node.connections.to_string(),
            node.server_restarts.to_string(),
            node.gateway.clone(),
        ])
        .style(node_style(node))
    });
    // What does not fit is left out whole, the gateway first.
    let columns = [4, 8, 8, 9, 7, 8, 16];
    let columns = if is_wide { &columns[..] } else { &columns[..6] };
    let head = ["node", "process", "replica", "executed", "clients", "restarts", "gateway"];
    let head = head.into_iter().take(columns.len());
    let table = Table::new(rows, columns.iter().copied().map(Constraint::Length))
        .header(Row::new(head).dim())
        .block(Block::bordered().title(" nodes and their servers ").dim());
    frame.render_widget(table, area);
}

fn draw_figures(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let rate = model.slots.back().map_or(0.0, |slot| slot.answers_per_s);
    let counts = model.counts;
    let lines = vec![
        Line::from(vec![
            Span::styled(format!("{rate:.0} answers/s"), Modifier::BOLD),
            Span::raw(format!("   p50 {}", ms(model.latency.p50_us))),
            Span::raw(format!("   p99 {}", ms(model.latency.p99_us))),
        ]),
        Line::raw(format!(
            "acknowledged {}   unknown {}   refused {}",
            counts.acknowledged, counts.maybe, counts.refused
        )),
        Line::raw(format!("longest gap {:.1} ms", model.longest_gap.as_secs_f64() * 1e3)),
    ];
    let block = Block::bordered().title(" what the clients see ").dim();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_curves(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(area);
    let columns = usize::from(left.width.saturating_sub(2));
    let newest = model.slots.iter().skip(model.slots.len().saturating_sub(columns));
    let rates: Vec<u64> = newest.clone().map(|slot| slot.answers_per_s as u64).collect();
    // Latencies span decades: a linear curve would show the outage and nothing else.
    let latencies: Vec<u64> =
        newest.map(|slot| (slot.latency.longest_us as f64 + 1.0).log2() as u64).collect();
    let curve = |data: Vec<u64>, title: &'static str, style: Style| {
        let block = Block::bordered().title(title).dim();
        Sparkline::default().data(data).style(style).block(block)
    };
    frame.render_widget(curve(rates, " answers/s ", Style::new().cyan()), left);
    let title = " slowest answer (logarithmic) ";
    frame.render_widget(curve(latencies, title, Style::new().magenta()), right);
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let rows = usize::from(area.height.saturating_sub(2));
    let lines: Vec<Line<'_>> = model.events.iter().rev().take(rows).map(event_line).collect();
    let block = Block::bordered().title(" what happened, newest first ").dim();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn event_line(event: &Event) -> Line<'_> {
    let style = match event.kind {
        EventKind::Fault => Style::new().red(),
        EventKind::Repair => Style::new().green(),
        EventKind::Alarm => Style::new().black().on_red(),
        EventKind::Note => Style::new(),
    };
    Line::from(vec![
        Span::raw(format!("{:>8}  ", seconds(event.at))).dim(),
        Span::styled(event.text.as_str(), style),
    ])
}

fn keys_line(model: &Model) -> Line<'_> {
    let chaos = if model.chaos { "c chaos off" } else { "c chaos" };
    let all = if model.durable { "d kill all  " } else { "" };
    let keys = format!(
        "? help  q quit  k kill server  n kill node  {all}p pause  r restart  {chaos}  1-{} choose",
        model.nodes.len()
    );
    Line::from(keys).dim()
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn ms(us: u64) -> String {
    format!("{:.2} ms", us as f64 / 1e3)
}
