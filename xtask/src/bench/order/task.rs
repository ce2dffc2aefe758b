//! What a participant is told, and what it answers: the contract of `bench/peers/README.md`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the messages of a task are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One message after the other, each timed until its delivery at the sender.
    Latency,
    /// As many as the window lets through, for a time.
    Stream,
    /// One each pause, until told to stop.
    Steady,
}

/// One thing to do for all participants of a cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) kind: Kind,
    pub(super) size_bytes: usize,
    /// The only node that sends; all of them if none.
    pub(super) sender: Option<usize>,
    /// Messages (`Latency`) or milliseconds (`Stream`).
    pub(super) amount: u64,
    /// Own messages that a sender may have undelivered; no limit if 0.
    pub(super) window: u64,
    pub(super) pause_us: u64,
    pub(super) is_safe: bool,
}

impl Task {
    pub(super) const fn latency(sender: usize, amount: u64) -> Self {
        Self {
            kind: Kind::Latency,
            size_bytes: 1024,
            sender: Some(sender),
            amount,
            window: 1,
            pause_us: 0,
            is_safe: false,
        }
    }

    pub(super) const fn stream(size_bytes: usize, amount_ms: u64, window: u64) -> Self {
        Self {
            kind: Kind::Stream,
            size_bytes,
            sender: None,
            amount: amount_ms,
            window,
            pause_us: 0,
            is_safe: false,
        }
    }

    pub(super) const fn steady(sender: usize, pause_us: u64) -> Self {
        Self {
            kind: Kind::Steady,
            size_bytes: 1024,
            sender: Some(sender),
            amount: 0,
            window: 0,
            pause_us,
            is_safe: false,
        }
    }

    /// The line that makes participants ready for it.
    pub(super) const fn line(&self, id: u32) -> Line<'_> {
        Line { task: self, id }
    }
}

/// A task as participants read it.
pub(super) struct Line<'a> {
    task: &'a Task,
    id: u32,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, id } = self;
        let kind = match task.kind {
            Kind::Latency => "latency",
            Kind::Stream => "stream",
            Kind::Steady => "steady",
        };
        let sender = task.sender.unwrap_or(0);
        let guarantee = if task.is_safe { "safe" } else { "agreed" };
        let Task { size_bytes, amount, window, pause_us, .. } = task;
        write!(
            out,
            "prepare id={id} kind={kind} size={size_bytes} sender={sender} amount={amount} \
             window={window} pause_us={pause_us} guarantee={guarantee}"
        )
    }
}

/// A line from a participant or a daemon.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum WorkerReply {
    /// A daemon lets clients connect.
    Listening,
    /// A participant is in a view, be it alone.
    Joined,
    /// A participant is in a view of all nodes.
    Ready,
    Prepared {
        id: u32,
    },
    /// This peer has no such thing.
    Unsupported {
        id: u32,
        reason: String,
    },
    Done(Done),
    Failed {
        reason: String,
    },
    #[serde(other)]
    Other,
}

/// What became of a task at one node. Times are those of the machine's monotonic clock.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Done {
    pub(super) id: u32,
    pub(super) go_ns: u64,
    pub(super) end_ns: u64,
    pub(super) delivered: u64,
    /// Of the order of deliveries.
    pub(super) hash: String,
    #[serde(default)]
    pub(super) samples_ns: Vec<u64>,
    #[serde(default)]
    pub(super) rotation_us: Option<Rotation>,
    /// The longest silence between two deliveries, of a task that goes on for a time.
    #[serde(default)]
    pub(super) gap_begin_ns: u64,
    #[serde(default)]
    pub(super) gap_end_ns: u64,
    #[serde(default)]
    pub(super) views: Vec<View>,
}

/// How long a token took around the ring during a task.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Rotation {
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) count: u64,
}

/// A view that was delivered during a task.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct View {
    pub(super) at_ns: u64,
    pub(super) members: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_told_in_one_line() {
        let task = Task { is_safe: true, pause_us: 50_000, ..Task::latency(1, 500) };
        assert_eq!(
            task.line(7).to_string(),
            "prepare id=7 kind=latency size=1024 sender=1 amount=500 window=1 pause_us=50000 \
             guarantee=safe"
        );
        let task = Task::stream(64, 2000, 200);
        assert!(task.line(8).to_string().contains("kind=stream size=64 sender=0 amount=2000 "));
    }

    #[test]
    fn answers_are_read_and_other_events_are_let_pass() {
        let said =
            |text| serde_json::from_str::<WorkerReply>(text).expect("a line of the contract");
        assert!(matches!(said(r#"{"event":"ready","members":3}"#), WorkerReply::Ready));
        assert!(matches!(said(r#"{"event":"news","x":[1]}"#), WorkerReply::Other));
        let WorkerReply::Done(done) = said(
            r#"{"event":"done","id":7,"go_ns":1,"end_ns":9,"delivered":2,"hash":"00",
                "gap_begin_ns":3,"gap_end_ns":4,"views":[{"at_ns":5,"members":[2,3]}]}"#,
        ) else {
            panic!("not done");
        };
        assert_eq!((done.id, done.views[0].members.as_slice()), (7, &[2, 3][..]));
    }
}
