//! A group, the calls that were made of it, and what it owes to those who made them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use quorba_admin::status::GroupStatus;
use quorba_demo::accounting::{Replica, read};
use quorba_giop::{Completion, ExceptionKind, MinorCode};

use super::super::cluster::Ground;
use super::super::domain::{DomainFile, GroupText, NODES, Servers};
use super::super::fleet::{self, Fleet};
use super::super::{Context, STATELESS, load, milliseconds};
use super::client::{self, Answer, Arguments, Call};
use super::{Deed, Setting};
use crate::wait;

/// In what time every call is answered, the odd ones too.
pub(super) const ANSWER_TIME_MAX: Duration = Duration::from_secs(8);
/// How long replicas may take to be even.
const EVEN_TIME_MAX: Duration = Duration::from_secs(20);
/// How long status may take to say what happened.
const SAID_TIME_MAX: Duration = Duration::from_secs(5);
/// `server_reply_ms` of the groups whose servers sleep, and how long they do.
const SERVER_REPLY_MS: u32 = 1_000;
pub(super) const SLEEP: Duration = Duration::from_millis(2_500);
/// The reference of the call at which a server's process ends.
pub(super) const POISON: &str = "poison";
/// What the group is called.
const GROUP: &str = "bank";

pub(super) struct Story {
    pub(super) fleet: Fleet,
    /// Its members remember nothing, so status does not name their requests either.
    is_stateless: bool,
    is_cold: bool,
    /// References of the increments that were acknowledged.
    acknowledged: Vec<String>,
}

/// A server's process, as its node has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) node: String,
    pid: Option<u32>,
    pub(super) restarts: u64,
}

impl Story {
    /// With servers that the nodes start.
    pub(super) fn start(context: &Context, setting: Setting) -> Result<Self, String> {
        let servers = Servers::Started(server_command(context, setting)?);
        Self::with_servers(context, setting, servers)
    }

    pub(super) fn with_servers(
        context: &Context,
        setting: Setting,
        servers: Servers,
    ) -> Result<Self, String> {
        let Setting { deed, style, is_durable, is_staggered, .. } = setting;
        let mut more = String::new();
        if deed == Deed::LongCall {
            more = format!("server_reply_ms = {SERVER_REPLY_MS}\n");
        }
        if is_staggered {
            more.push_str("execution = \"staggered\"\n");
        }
        let more = format!(
            "{more}durable = {is_durable}\nstate_object = \"bank\"\nobject_key = \"bank\"\n\
             type_id = \"IDL:Bank/Ledger:1.0\"\n"
        );
        let group = GroupText { name: GROUP, style, servers, more: &more };
        let ground = Ground::default();
        let domain = DomainFile::write(&context.quorba, &context.folder, &group, &ground)?;
        let fleet = Fleet::start(&context.quorba, &context.folder, GROUP, domain)?;
        fleet.wait_whole()?;
        let (is_stateless, is_cold) = (style == STATELESS, style == "cold-passive");
        Ok(Self { fleet, is_stateless, is_cold, acknowledged: Vec::new() })
    }

    /// Any call, at the gateway of a node. With the time that it took, for people.
    pub(super) fn call(&self, gateway: usize, call: &Call<'_>) -> (Answer, Duration) {
        let began = Instant::now();
        let answer = client::call(&self.fleet.nodes()[gateway].gateway, call, ANSWER_TIME_MAX);
        (answer, began.elapsed())
    }

    /// An ordinary increment, which must be answered by its result.
    pub(super) fn increment(&mut self, gateway: usize, reference: String) -> Result<(), String> {
        let arguments = Arguments::Text(&reference);
        let call = Call { operation: "increment", contexts: &[], arguments };
        match self.call(gateway, &call) {
            (Answer::Results(_), _) => {
                self.acknowledged.push(reference);
                Ok(())
            }
            (answer, took) => {
                let took = milliseconds(took);
                Err(format!("increment {reference} got {answer} after {took}"))
            }
        }
    }

    /// One at each gateway.
    pub(super) fn increment_everywhere(&mut self, when: &str) -> Result<(), String> {
        (0..NODES).try_for_each(|gateway| self.increment(gateway, format!("{when}-{gateway}")))
    }

    /// Makes an odd call. What came of it, for people; an error if its caller was left alone.
    pub(super) fn odd(&self, gateway: usize, call: &Call<'_>) -> Result<String, String> {
        let (answer, took) = self.call(gateway, call);
        let took = milliseconds(took);
        let is_answer = match (&answer, answer.ours()) {
            (Answer::Results(_), _) | (Answer::Raised(_), None) => true,
            (Answer::Raised(exception), Some(code)) => {
                let is_of_a_call =
                    [ExceptionKind::CommFailure, ExceptionKind::Marshal].contains(&exception.kind);
                match code {
                    MinorCode::NoReply | MinorCode::Rejected | MinorCode::EndsServers => {
                        self.wait_said()?;
                        is_of_a_call && exception.completed == Completion::Maybe
                    }
                    MinorCode::ContextUnreadable => {
                        is_of_a_call && exception.completed == Completion::No
                    }
                    _ => false,
                }
            }
            (Answer::Other(_), _) => false,
        };
        let told = format!("{answer} in {took}");
        if is_answer { Ok(told) } else { Err(format!("the odd caller got {told}")) }
    }

    /// Waits until every node's status names a request that ended without a reply.
    fn wait_said(&self) -> Result<(), String> {
        if self.is_stateless {
            return Ok(());
        }
        wait::until("status says what happened", SAID_TIME_MAX, || {
            (0..NODES).try_for_each(|index| {
                let says = self.of_group(index, |group| !group.ended.is_empty())?;
                if says { Ok(()) } else { Err(format!("{} does not", index + 1)) }
            })
        })
    }

    pub(super) fn of_group<T>(
        &self,
        index: usize,
        get: impl FnOnce(&GroupStatus) -> T,
    ) -> Result<T, String> {
        let status = self.fleet.status(index)?;
        fleet::group(&status, GROUP).map(get)
    }

    pub(super) fn processes(&self) -> Result<Vec<Process>, String> {
        let process = |index: usize| {
            let node = self.fleet.nodes()[index].name.clone();
            self.of_group(index, |group| {
                let server = group.server.as_ref();
                let restarts = server.map_or(0, |server| server.restarts);
                Process { node, pid: server.and_then(|server| server.pid), restarts }
            })
        };
        (0..NODES).map(process).collect()
    }

    /// Whether all is as it was: every member in, and no process another one.
    pub(super) fn nobody_was_restarted(&self, before: &[Process]) -> Result<(), String> {
        self.fleet.is_whole()?;
        let after = self.processes()?;
        // A backup of a cold-passive group may end one that it had before it was that.
        let same = |(before, after): (&Process, &Process)| {
            before == after || self.is_cold && after.pid.is_none() && after.restarts == 0
        };
        if before.iter().zip(&after).all(same) {
            Ok(())
        } else {
            Err(format!("restarted: {before:?}, now {after:?}"))
        }
    }

    /// Waits until all servers' own books are equal, and looks for every acknowledged increment in
    /// them; then ends the nodes.
    pub(super) fn finish(self, style: &str) -> Result<(), String> {
        if style.ends_with("passive") {
            // Members that have executed a part of it catch up.
            self.fleet.change_style("active")?;
        }
        self.fleet.wait_whole()?;
        if self.is_stateless {
            // Each server has what it has executed.
            return self.fleet.end();
        }
        // A member that had none before is in before its server is there.
        let ports = wait::until("every member has a server", ANSWER_TIME_MAX, || {
            (0..NODES).map(|index| Ok::<_, String>(self.fleet.server(index)?.port)).collect()
        });
        let ports: Vec<_> = ports?;
        self.compare(&ports)?;
        self.fleet.end()
    }

    /// The same, of servers that listen at these ports.
    pub(super) fn compare(&self, ports: &[u16]) -> Result<(), String> {
        let replica = wait::until("the servers' books are equal", EVEN_TIME_MAX, || even(ports))?;
        let mut times = BTreeMap::new();
        for entry in &replica.books.history {
            *times.entry(entry.reference.as_str()).or_insert(0) += 1;
        }
        let wrong = self.acknowledged.iter().find(|one| times.get(one.as_str()) != Some(&1));
        match wrong {
            None => Ok(()),
            Some(one) => Err(format!("acknowledged {one} is not there once: {times:?}")),
        }
    }

    pub(super) fn acknowledged(&self) -> usize {
        self.acknowledged.len()
    }
}

/// What one of them has, if all have the same.
fn even(ports: &[u16]) -> Result<Replica, String> {
    // Of the same name, so that they are equal if what they have is.
    let read = |port: &u16| read::replica("a server", *port).map_err(|error| error.to_string());
    let mut replicas: Vec<Replica> = ports.iter().map(read).collect::<Result<_, _>>()?;
    if replicas.windows(2).all(|pair| pair[0] == pair[1]) {
        return replicas.pop().ok_or_else(|| "there are none".into());
    }
    let lengths: Vec<_> = replicas.iter().map(|one| one.books.history.len()).collect();
    Err(format!("they have {lengths:?} entries"))
}

fn server_command(context: &Context, setting: Setting) -> Result<Vec<String>, String> {
    let program = load::program(&context.folder, setting.server, "server")?.display().to_string();
    let sleep_us = SLEEP.as_micros().to_string();
    let of_deed: &[&str] = match setting.deed {
        Deed::LongCall => &["--delay-us", &sleep_us],
        Deed::CrashAtCall => &["--crash-at", POISON],
        // It says what contexts it is sent.
        Deed::Bidirectional => &["-ORBacceptBiDirectionalGIOP", "1", "-ORBtraceLevel", "25"],
        Deed::NewerIdl | Deed::Malformed => &[],
        Deed::IdleEnds => &["-ORBinConScanPeriod", "1", "-ORBscanGranularity", "1"],
        // Somebody else starts them.
        Deed::Connect | Deed::ConnectActivated | Deed::ConnectKills { .. } => &[],
    };
    let address = load::server_address(setting.server);
    let arguments = address.iter().chain(of_deed).map(ToString::to_string);
    Ok(std::iter::once(program).chain(arguments).collect())
}
