//! The picture shows what the model holds, at any size.

use super::*;
use crate::load::{Counts, Latency, Slot};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn model() -> Model {
    let node = |name: &str, process, member| NodeModel {
        name: name.to_owned(),
        process,
        member,
        executed: 1234,
        connections: 3,
        server_restarts: 1,
        gateway: "127.0.0.1:15572".to_owned(),
    };
    let mut model = Model {
        elapsed: Duration::from_millis(5_200),
        run_for: Some(Duration::from_secs(10)),
        nodes: vec![
            node("n1", Process::Up, Some(MemberState::In)),
            node("n2", Process::Up, Some(MemberState::Joining)),
            node("n3", Process::Down, Some(MemberState::Down)),
        ],
        view: 8,
        kills: 2,
        counts: Counts { requests: 2503, acknowledged: 2500, maybe: 2, refused: 1 },
        latency: Latency { p50_us: 412, p99_us: 2040, longest_us: 17_000 },
        longest_gap: Duration::from_micros(14_200),
        ..Model::default()
    };
    for number in 0..500_u32 {
        let latency = Latency { longest_us: 1 << (number % 16), ..Latency::default() };
        model.slot(Slot { answers_per_s: f64::from(number), latency });
        model.event(EventKind::Fault, format!("event {number}"));
    }
    model
}

fn drawn(model: &Model, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a test terminal");
    terminal.draw(|frame| draw(frame, model)).expect("drawn");
    terminal.backend().to_string()
}

#[test]
fn everything_that_is_known_is_shown() {
    let text = drawn(&model(), 110, 34);
    for shown in [
        "quorba demo",
        "view 8",
        "a member is out",
        "2 kills",
        "5.2 s of 10.0 s",
        "● n1",
        "◐ n2",
        "✗ n3",
        "joining",
        "killed",
        "1234",
        "127.0.0.1:15572",
        "499 answers/s",
        "p50 0.41 ms",
        "p99 2.04 ms",
        "acknowledged 2500   unknown 2   refused 1",
        "longest gap 14.2 ms",
        "event 499",
        "k kill server",
        "? help",
    ] {
        assert!(text.contains(shown), "{shown:?} is not in\n{text}");
    }
}

#[test]
fn a_terminal_of_80_by_24_has_room_for_all_that_matters() {
    let mut model = model();
    model.durable = true;
    let text = drawn(&model, 80, 24);
    for shown in [
        "restarts",
        "joining",
        "1234",
        "p99 2.04 ms",
        "longest gap 14.2 ms",
        "q quit",
        "event 499",
        "acknowledged 2500   unknown 2   refused 1",
    ] {
        assert!(text.contains(shown), "{shown:?} is not in\n{text}");
    }
    model.shows_help = true;
    let text = drawn(&model, 80, 24);
    for shown in ["kill all nodes at once", "executed once or not at all", "? closes this"] {
        assert!(text.contains(shown), "{shown:?} is not in\n{text}");
    }
}

#[test]
fn what_a_replica_that_is_not_in_has_executed_looks_like_no_loss() {
    let mut model = model();
    (model.nodes[1].executed, model.nodes[2].executed) = (0, 0);
    let text = drawn(&model, 110, 34);
    let line = text.lines().find(|line| line.contains("joining") && line.contains("127.0.0.1"));
    assert!(line.is_some_and(|line| line.contains(" -  ")), "{text}");
}

#[test]
fn no_size_of_terminal_is_too_small() {
    for width in (1..120).step_by(7) {
        for height in 1..40 {
            drawn(&model(), width, height);
        }
    }
    drawn(&Model::default(), 80, 24);
}
