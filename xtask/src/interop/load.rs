//! The load clients of a case: unmodified example programs, and what they wrote down.
//!
//! What it is not: a judge. The clients' records are one half of the accounting.
//!
//! Invariant: dropped, no client is left.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use quorba_demo::record::{self, Outcome, Recording};
use serde::Deserialize;

use super::{Context, Orb};
use crate::examples::Example;
use crate::place::Place;
use crate::wait;

/// Client processes per case.
pub(super) const PROCESSES: usize = 2;
/// Calling threads in each of them.
pub(super) const CLIENTS: u32 = 3;
/// Longer than the longest time that a single call waits (60 s) after the end of the load.
const END_TIME_MAX: Duration = Duration::from_secs(75);
/// Acknowledged calls after which the load is taken to be under way.
const UNDER_WAY_CALLS: usize = 50;
/// How long that may take: every account is opened first, and JVMs start slowly.
const UNDER_WAY_TIME_MAX: Duration = Duration::from_secs(30);

pub(super) struct Load {
    clients: Vec<Client>,
    ends: Instant,
}

struct Client {
    process: Child,
    record: PathBuf,
    figures: PathBuf,
}

/// What the clients report of a run.
pub(super) struct Figures {
    /// The longest time in which a client process had no answer at all.
    pub(super) longest_gap: Duration,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
}

#[derive(Deserialize)]
struct ClientFigures {
    longest_gap_ms: f64,
}

impl Load {
    pub(super) fn start(
        context: &Context,
        orbs: [Orb; PROCESSES],
        reference: &str,
        place: &Place,
    ) -> Result<Self, String> {
        Self::named("p", context, orbs, reference, place)
    }

    /// One of several of a case, whose calls are told apart by what their names begin with.
    pub(super) fn named(
        prefix: &str,
        context: &Context,
        orbs: [Orb; PROCESSES],
        reference: &str,
        place: &Place,
    ) -> Result<Self, String> {
        let [first, second] = orbs;
        let program = |orb| program(&context.folder, orb, "client").map(|it| place.command(&it));
        let commands = [program(first)?, program(second)?];
        Self::of(prefix, context, commands, reference)
    }

    /// Clients with the adapter for omniORB. That they call a group, the reference alone says.
    pub(super) fn adapted(context: &Context, reference: &str) -> Result<Self, String> {
        let link = context.folder.join("adapter");
        let failed = |error| format!("{}: {error}", link.display());
        symlink(Example::OmniorbAdapter.built(), &link).map_err(failed)?;
        let program = link.join("bank_client_ft");
        let commands = [(); PROCESSES].map(|()| Place::Here.command(&program));
        Self::of("p", context, commands, reference)
    }

    fn of(
        prefix: &str,
        context: &Context,
        commands: [Command; PROCESSES],
        reference: &str,
    ) -> Result<Self, String> {
        let mut load = Self {
            clients: Vec::new(),
            ends: Instant::now() + Duration::from_secs_f64(context.seconds),
        };
        for (number, mut command) in commands.into_iter().enumerate() {
            let name = format!("{prefix}{number}");
            let record = context.folder.join(format!("{name}.ndjson"));
            let figures = context.folder.join(format!("{name}.json"));
            let log = context.folder.join(format!("{name}.log"));
            let create = |path: &Path| {
                File::create(path).map_err(|error| format!("{}: {error}", path.display()))
            };
            command.args(["--ref", reference, "--name", &name]);
            command.args(["--clients", &CLIENTS.to_string(), "--accounts", "8"]);
            command.args(["--seconds", &context.seconds.to_string()]);
            command.args(["--rate", &(context.rate / PROCESSES as u32).to_string()]);
            command.args(["--seed", &number.to_string(), "--oneway-share", "5"]);
            command.arg("--record").arg(&record);
            command.stdin(Stdio::null()).stdout(create(&figures)?).stderr(create(&log)?);
            let process = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
            load.clients.push(Client { process, record, figures });
        }
        Ok(load)
    }

    /// Waits until calls are being answered.
    pub(super) fn wait_under_way(&self) -> Result<(), String> {
        wait::until("the load is under way", UNDER_WAY_TIME_MAX, || {
            self.clients.iter().try_for_each(|client| {
                // Not there yet, or in the middle of a line: then there are fewer.
                let text = fs::read_to_string(&client.record).unwrap_or_default();
                let answered = text.matches("\"outcome\":\"ok\"").count();
                if answered >= UNDER_WAY_CALLS {
                    return Ok(());
                }
                Err(format!("{answered} calls answered in {}", client.record.display()))
            })
        })
    }

    /// How long the clients will go on making calls.
    pub(super) fn time_left(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    /// Waits until every client has ended, and reads what they wrote down.
    pub(super) fn finish(mut self) -> Result<(Vec<Recording>, Figures), String> {
        let time_max = self.time_left() + END_TIME_MAX;
        let mut recordings = Vec::new();
        let mut longest_gap = Duration::ZERO;
        for client in &mut self.clients {
            let status = wait::until("a client has ended", time_max, || {
                let status = client.process.try_wait().map_err(|error| error.to_string())?;
                status.ok_or_else(|| format!("{} goes on", client.record.display()))
            })?;
            let text = fs::read_to_string(&client.figures).unwrap_or_default();
            let figures: ClientFigures = serde_json::from_str(text.trim())
                .map_err(|error| format!("a client ended with {status}, figures: {error}"))?;
            longest_gap = longest_gap.max(Duration::from_secs_f64(figures.longest_gap_ms / 1e3));
            recordings.push(record::read(&client.record).map_err(|error| error.to_string())?);
        }
        let mut took_us: Vec<u64> = recordings
            .iter()
            .flat_map(|recording| &recording.records)
            .filter(|call| call.outcome == Outcome::Ok && call.operation != "note")
            .map(|call| call.end_us.saturating_sub(call.start_us))
            .collect();
        took_us.sort_unstable();
        let share = |percent: usize| {
            let at = took_us.len().saturating_sub(1) * percent / 100;
            Duration::from_micros(took_us.get(at).copied().unwrap_or_default())
        };
        let figures = Figures { longest_gap, p50: share(50), p99: share(99) };
        Ok((recordings, figures))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for client in &mut self.clients {
            // A client that has ended needs no killing.
            let _killed = client.process.kill();
            let _status = client.process.wait();
        }
    }
}

/// Where a server of a bank listens, and what its references say, as its node fills that in.
pub(super) fn server_address(orb: Orb) -> &'static [&'static str] {
    match orb {
        Orb::Omniorb => &[
            "-ORBendPoint",
            "giop:tcp:127.0.0.1:{port}",
            "-ORBendPointPublish",
            "{gateways.omniorb}",
        ],
        Orb::Jacorb => &["--listen", "127.0.0.1:{port}", "--publish", "{host}:{listen}"],
    }
}

/// The example program, under a path inside of the case's folder, so that every process of the
/// case can be told by its command line.
pub(super) fn program(folder: &Path, orb: Orb, role: &str) -> Result<PathBuf, String> {
    let example = orb.example();
    let link = folder.join(example.folder());
    if !link.exists() {
        symlink(example.built(), &link).map_err(|error| format!("{}: {error}", link.display()))?;
    }
    Ok(match orb {
        Orb::Omniorb => link.join(format!("bank_{role}")),
        Orb::Jacorb => link.join(format!("bin/bank-{role}")),
    })
}
