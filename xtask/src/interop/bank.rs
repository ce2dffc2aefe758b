//! One case with the bank: three servers of one ORB, clients of another, one kind of fault.
//!
//! What it is not: the accounting; that is [`quorba_demo::accounting`], which has tests of its
//! own that show that it finds what is wrong.

use std::fs;
use std::time::Duration;

use quorba_demo::accounting::{Account, Replica, account, account_stateless, read};

use super::cluster::{self, Cluster, Ground};
use super::domain::{self, DomainFile, GroupText, Servers};
use super::fault::{self, Fault};
use super::fleet::Fleet;
use super::load::{self, Figures, Load};
use super::{Context, Network, Orb, STATELESS, Verdict, milliseconds};
use crate::namespaces::Namespaces;
use crate::place::Place;
use crate::wait;

/// How long replicas may take to catch up once the load has ended and all are in.
const QUIET_TIME_MAX: Duration = Duration::from_secs(20);
/// Changing calls after which a server crashes that is told to.
const CRASH_AFTER_CALLS: u32 = 150;
/// How long a stateless group is called after all faults: these calls are held against what the
/// servers have.
const HELD_SECONDS: f64 = 2.0;
/// How many differences a failure shows.
const DIFFERENCES_SHOWN: usize = 5;

/// What a case is made of.
#[derive(Clone, Copy)]
pub(super) struct Setting {
    /// The ORBs of the client processes.
    pub(super) clients: [Orb; load::PROCESSES],
    pub(super) server: Orb,
    pub(super) style: &'static str,
    pub(super) is_durable: bool,
    pub(super) fault: Fault,
    pub(super) network: Network,
    /// The clients are omniORB's, with the adapter: they make calls of unknown outcome again.
    pub(super) is_adapted: bool,
}

impl Setting {
    /// The style that is the default, with one ORB in front and one behind.
    pub(super) const fn active(client: Orb, server: Orb, fault: Fault) -> Self {
        let clients = [client; load::PROCESSES];
        let network = Network::Loopback;
        let style = "active";
        Self { clients, server, style, is_durable: false, fault, network, is_adapted: false }
    }
}

pub(super) fn run(context: &Context, setting: &Setting) -> Verdict {
    let network = setting.network;
    let namespaces = match network {
        Network::Loopback => None,
        Network::Namespaces | Network::Corosync => match Namespaces::make(domain::NODES) {
            Ok(namespaces) => Some(namespaces),
            Err(reason) => return Verdict::Skipped(format!("no network namespaces: {reason}")),
        },
    };
    let mut corosync = None;
    if let (Network::Corosync, Some(namespaces)) = (network, &namespaces) {
        if let Some(reason) = cluster::missing() {
            return Verdict::Skipped(reason);
        }
        corosync = match Cluster::start(namespaces) {
            Ok(started) => Some(started),
            Err(reason) => return Verdict::Failed(reason),
        };
    }
    let mut ground = Ground { namespaces: namespaces.as_ref(), corosync };
    match run_in(context, setting, &mut ground) {
        Ok(Report { faults, account, figures }) if account.is_clean() => {
            Verdict::Passed(told(faults, &account, &figures))
        }
        Ok(Report { faults, account, figures }) => {
            let mut reason = told(faults, &account, &figures);
            if account.replicas_compared && !account.replicas_equal {
                reason.push_str(", replicas differ");
            }
            for difference in account.differences.iter().take(DIFFERENCES_SHOWN) {
                reason.push_str(&format!("\n         {difference}"));
            }
            Verdict::Failed(reason)
        }
        Err(reason) => Verdict::Failed(reason),
    }
}

struct Report {
    faults: usize,
    account: Account,
    figures: Figures,
}

fn run_in(context: &Context, setting: &Setting, ground: &mut Ground<'_>) -> Result<Report, String> {
    let Setting { clients, server, style, is_durable, fault, .. } = *setting;
    let namespaces = ground.namespaces;
    let group = GroupText {
        name: "bank",
        style,
        servers: Servers::Started(server_command(context, server, fault)?),
        more: &format!(
            "durable = {is_durable}\nstate_object = \"bank\"\nobject_key = \"bank\"\n\
             type_id = \"IDL:Bank/Ledger:1.0\"\n"
        ),
    };
    let domain = DomainFile::write(&context.quorba, &context.folder, &group, ground)?;
    let mut fleet = Fleet::start(&context.quorba, &context.folder, "bank", domain)?;
    fleet.wait_whole()?;
    let clients_place = namespaces.map_or(Place::Here, Namespaces::clients);
    let reference = fleet.reference()?;
    let load = if setting.is_adapted {
        Load::adapted(context, &reference)?
    } else {
        Load::start(context, clients, &reference, &clients_place)?
    };
    let is_stateless = style == STATELESS;
    let faults = fault::disturb(fault, context.kill_every, &mut fleet, &load, ground)?;
    let (mut recordings, figures) = load.finish()?;
    fleet.wait_whole()?;
    // Servers that have ended took what they had executed with them.
    let mut since = vec![u64::MAX; recordings.len()];
    if is_stateless {
        let context = context.for_seconds(HELD_SECONDS);
        let load = Load::named("h", &context, clients, &reference, &clients_place)?;
        recordings.extend(load.finish()?.0);
        since.resize(recordings.len(), 0);
    }
    if style.ends_with("passive") {
        // Members that have executed a part of it, or have no server, catch up.
        fleet.change_style("active")?;
        fleet.wait_whole()?;
    }
    let replicas = quiet(&fleet, is_stateless)?;
    save(context, &replicas)?;
    fleet.end()?;
    let account = match is_stateless {
        true => account_stateless(&recordings, &replicas, &since),
        false => account(&recordings, &replicas),
    };
    if is_stateless && account.held == 0 {
        return Err("no call after the last fault was acknowledged".into());
    }
    if setting.is_adapted && account.maybe() + account.refused > 0 {
        let raised = told(faults, &account, &figures);
        return Err(format!("exceptions reached clients with the adapter: {raised}"));
    }
    Ok(Report { faults, account, figures })
}

fn server_command(context: &Context, server: Orb, fault: Fault) -> Result<Vec<String>, String> {
    let program = load::program(&context.folder, server, "server")?.display().to_string();
    let arguments = load::server_address(server);
    if fault != Fault::CrashInCall {
        let arguments = arguments.iter().map(ToString::to_string);
        return Ok(std::iter::once(program).chain(arguments).collect());
    }
    // One and the same line for all nodes, of which one makes something else.
    let script = format!(
        "case {{node}} in n{crashing}) more='--crash-after {CRASH_AFTER_CALLS}' ;; esac\n\
         exec '{program}' {arguments} $more",
        crashing = fault::CRASHING_NODE + 1,
        arguments = arguments.join(" "),
    );
    Ok(["/bin/sh", "-c", &script].map(String::from).to_vec())
}

/// The replicas, once all have executed equally much and nothing changes any more; or as they are
/// if that does not come about, because then the accounting says what the difference is.
///
/// Members of a stateless group have nothing to be even in.
pub(super) fn quiet(fleet: &Fleet, is_stateless: bool) -> Result<Vec<Replica>, String> {
    let read_all = || -> Result<Vec<Replica>, String> {
        (0..fleet.nodes().len()).map(|index| replica(fleet, index)).collect()
    };
    let mut last = Vec::new();
    let even = wait::until("the replicas are even", QUIET_TIME_MAX, || {
        let replicas = read_all()?;
        let first = replicas[0].books.history.len();
        let are_even = is_stateless || replicas.iter().all(|one| one.books.history.len() == first);
        // A replica is read by several calls, between which it may still catch up.
        if are_even && replicas == last {
            return Ok(replicas);
        }
        last = replicas;
        Err("they are not".into())
    });
    even.or_else(|_| read_all())
}

/// Puts the replicas' states beside the logs, for whoever looks into a failure.
pub(super) fn save(context: &Context, replicas: &[Replica]) -> Result<(), String> {
    replicas.iter().try_for_each(|replica| {
        let path = context.folder.join(format!("{}.final-state", replica.name));
        let state = replica.state.as_deref().unwrap_or_default();
        fs::write(&path, state).map_err(|error| format!("{}: {error}", path.display()))
    })
}

/// Reads a replica from its own server's port, past every gateway.
fn replica(fleet: &Fleet, index: usize) -> Result<Replica, String> {
    let node = &fleet.nodes()[index];
    let port = fleet.server(index)?.port;
    node.place
        .run(|| read::replica(&node.name, port).map_err(|error| format!("{}: {error}", node.name)))
}

/// For people.
pub(super) fn told(faults: usize, account: &Account, figures: &Figures) -> String {
    let Account { requests, acknowledged, lost, doubled, refused, maybe_executed, .. } = account;
    let held = if account.replicas_compared {
        String::new()
    } else {
        format!(", {} held, {} executed again", account.held, account.executed_again)
    };
    format!(
        "{faults} faults, {requests} calls, {acknowledged} acknowledged, {lost} lost, \
         {doubled} doubled, {maybe} unknown ({maybe_executed} executed), {refused} refused, \
         gap {gap}, p50 {p50:.1} ms, p99 {p99}{held}",
        maybe = account.maybe(),
        gap = milliseconds(figures.longest_gap),
        p50 = figures.p50.as_secs_f64() * 1e3,
        p99 = milliseconds(figures.p99),
    )
}
