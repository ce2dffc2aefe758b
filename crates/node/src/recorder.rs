//! Time stamps for whoever studies latency: kept in memory, written when the node ends (Zhao02,
//! §2.2).
//!
//! What it is not: tracing or metrics. It is off unless asked for, and then costs a reading of
//! the clock at each event.
//!
//! Invariants: while the node runs nothing is written and no memory is asked for; of more samples
//! than there is room for, the last ones are kept, and how many are missing is said.

use quorba_engine::ConnectionId;
use quorba_engine::order::{Progress, Ticket};
use quorba_engine::replica::{GroupId, GroupMap};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};

/// Room for visits of the token, of which there are far more than messages.
const VISITS_MAX: usize = 1 << 21;
/// Room in every other series.
const SAMPLES_MAX: usize = 1 << 18;
/// Messages of this node that wait for the token at once; more are not measured.
const WAITING_MAX: usize = 1 << 16;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesName {
    /// From one visit of the token at this node to the next.
    TokenRotation,
    /// From the moment at which a message of this node is submitted until it has its place in the
    /// order and is multicast.
    SendDelay,
    /// From the moment at which the local server is given a request until its reply comes.
    Server,
    /// From the moment at which a client is given a reply until it says something again.
    Client,
}

/// One series, as a line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The node's name.
    pub node: String,
    /// What is measured.
    pub series: SeriesName,
    /// Samples before the first one here that there was no room for.
    pub overwritten: u64,
    /// When each sample ended, on the machine's monotonic clock; ascending.
    pub at_ns: Vec<u64>,
    /// How long it took.
    pub took_ns: Vec<u64>,
}

/// See the module's text.
pub(crate) struct Recorder {
    rotations: Samples,
    send_delays: Samples,
    servers: Samples,
    clients: Samples,
    last_visit_ns: Option<u64>,
    seen: Option<Progress>,
    /// Messages that are not numbered yet, and when they were submitted.
    waiting: VecDeque<(Ticket, u64)>,
    /// Of each group, when its server was given the request that it has not answered.
    asked_ns: GroupMap<Option<u64>>,
    /// The client that was answered last, and when.
    answered: Option<(ConnectionId, u64)>,
}

impl Recorder {
    /// Makes room for all samples.
    pub(crate) fn new() -> Self {
        Self {
            rotations: Samples::with_room(VISITS_MAX),
            send_delays: Samples::with_room(SAMPLES_MAX),
            servers: Samples::with_room(SAMPLES_MAX),
            clients: Samples::with_room(SAMPLES_MAX),
            last_visit_ns: None,
            seen: None,
            waiting: VecDeque::with_capacity(WAITING_MAX),
            asked_ns: GroupMap::new(),
            answered: None,
        }
    }

    /// There is such a group from now on.
    pub(crate) fn open(&mut self, group: GroupId) {
        self.asked_ns.insert(group, None);
    }

    /// There is no such group any more.
    pub(crate) fn close(&mut self, group: GroupId) {
        self.asked_ns.remove(group);
    }

    /// The engine has handled something.
    pub(crate) fn progress(&mut self, now: Progress) {
        self.progress_at(now_ns(), now);
    }

    fn progress_at(&mut self, at_ns: u64, now: Progress) {
        let Some(before) = self.seen.replace(now) else { return };
        if now.token_visits != before.token_visits
            && let Some(last_ns) = self.last_visit_ns.replace(at_ns)
        {
            self.rotations.add(last_ns, at_ns);
        }
        for ticket in before.submitted.0 + 1..=now.submitted.0 {
            if self.waiting.len() < WAITING_MAX {
                self.waiting.push_back((Ticket(ticket), at_ns));
            }
        }
        while let Some((_, since_ns)) = self.waiting.pop_front_if(|(one, _)| *one <= now.numbered) {
            self.send_delays.add(since_ns, at_ns);
        }
    }

    /// The local server of `group` is about to be given a request.
    pub(crate) fn server_asked(&mut self, group: GroupId) {
        if let Some(asked_ns) = self.asked_ns.get_mut(group) {
            *asked_ns = Some(now_ns());
        }
    }

    /// The local server of `group` has said something.
    pub(crate) fn server_spoke(&mut self, group: GroupId) {
        if let Some(since_ns) = self.asked_ns.get_mut(group).and_then(Option::take) {
            self.servers.add(since_ns, now_ns());
        }
    }

    /// A client is about to be given a reply.
    pub(crate) fn client_answered(&mut self, client: ConnectionId) {
        self.answered = Some((client, now_ns()));
    }

    /// A client has said something.
    pub(crate) fn client_spoke(&mut self, client: ConnectionId) {
        if let Some((_, since_ns)) = self.answered.take_if(|(answered, _)| *answered == client) {
            self.clients.add(since_ns, now_ns());
        }
    }

    /// Writes everything, as lines of [`Recorded`], for the node called `node`.
    pub(crate) fn write(self, node: &str, file: impl Write) -> io::Result<()> {
        let mut file = BufWriter::new(file);
        for (series, samples) in [
            (SeriesName::TokenRotation, self.rotations),
            (SeriesName::SendDelay, self.send_delays),
            (SeriesName::Server, self.servers),
            (SeriesName::Client, self.clients),
        ] {
            let (at_ns, took_ns) = samples.kept.into_iter().unzip();
            let overwritten = samples.overwritten;
            let line = Recorded { node: node.to_owned(), series, overwritten, at_ns, took_ns };
            serde_json::to_writer(&mut file, &line)?;
            file.write_all(b"\n")?;
        }
        file.flush()
    }
}

/// The last samples of a series: when each ended, and how long it took.
struct Samples {
    kept: VecDeque<(u64, u64)>,
    room: usize,
    overwritten: u64,
}

impl Samples {
    fn with_room(room: usize) -> Self {
        // Written once, so that the kernel has no page left to find while the node runs. Zeros
        // would be promised and not given.
        let mut kept = VecDeque::from(vec![(1, 1); room]);
        kept.clear();
        Self { kept, room, overwritten: 0 }
    }

    fn add(&mut self, since_ns: u64, at_ns: u64) {
        if self.kept.len() == self.room {
            self.kept.pop_front();
            self.overwritten += 1;
        }
        self.kept.push_back((at_ns, at_ns.saturating_sub(since_ns)));
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The clock starts at the boot of the machine: neither part is negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(token_visits: u64, submitted: u64, numbered: u64) -> Progress {
        let (submitted, numbered) = (Ticket(submitted), Ticket(numbered));
        Progress { token_visits, submitted, numbered, ..Progress::default() }
    }

    fn written(recorder: Recorder) -> Vec<Recorded> {
        let mut text = Vec::new();
        recorder.write("n1", &mut text).expect("written");
        let text = String::from_utf8(text).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("a series")).collect()
    }

    #[test]
    fn visits_and_messages_become_samples() {
        let mut recorder = Recorder::new();
        for (at_ns, seen) in [
            (100, progress(7, 3, 2)),
            // A message that was there before is not measured.
            (150, progress(8, 3, 3)),
            (160, progress(8, 5, 3)),
            (190, progress(9, 5, 4)),
            (195, progress(9, 6, 4)),
            (240, progress(10, 6, 6)),
            (300, progress(10, 7, 7)),
        ] {
            recorder.progress_at(at_ns, seen);
        }
        recorder.open(GroupId(7));
        recorder.server_spoke(GroupId(7));
        recorder.server_asked(GroupId(7));
        recorder.server_asked(GroupId(0));
        recorder.server_spoke(GroupId(0));
        recorder.server_spoke(GroupId(7));
        recorder.close(GroupId(7));
        recorder.server_asked(GroupId(7));
        recorder.server_spoke(GroupId(7));
        recorder.client_answered(ConnectionId(1));
        recorder.client_spoke(ConnectionId(2));
        recorder.client_spoke(ConnectionId(1));
        recorder.client_spoke(ConnectionId(1));
        let [rotations, delays, servers, clients] = &written(recorder)[..] else {
            panic!("four series");
        };
        assert_eq!((&*rotations.node, rotations.series), ("n1", SeriesName::TokenRotation));
        assert_eq!(
            (&rotations.at_ns[..], &rotations.took_ns[..]),
            (&[190, 240][..], &[40, 50][..])
        );
        assert_eq!(delays.at_ns, [190, 240, 240, 300]);
        assert_eq!(delays.took_ns, [30, 80, 45, 0]);
        assert_eq!((servers.at_ns.len(), clients.at_ns.len()), (1, 1));
    }

    #[test]
    fn what_another_client_says_is_no_end_of_this_ones_time() {
        let mut recorder = Recorder::new();
        recorder.client_answered(ConnectionId(1));
        recorder.client_spoke(ConnectionId(2));
        let [.., clients] = &written(recorder)[..] else { panic!("four series") };
        assert!(clients.at_ns.is_empty());
    }

    #[test]
    fn the_last_samples_are_kept() {
        let mut samples = Samples::with_room(3);
        let capacity = samples.kept.capacity();
        for at_ns in 1..=5 {
            samples.add(0, at_ns);
        }
        assert_eq!(samples.kept, [(3, 3), (4, 4), (5, 5)]);
        assert_eq!((samples.overwritten, samples.kept.capacity()), (2, capacity));
    }
}
