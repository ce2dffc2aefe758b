//! A group of JacORB servers that no node starts, each with an object key of its own, given by
//! their references: created on a running domain, used across kills of a server, which comes back
//! with another reference, and of nodes; a member is taken over by another node with a server whose
//! state is stale; and all of it is there when all nodes have ended.
//!
//! Invariant: whatever a server has that comes in, it is given the group's state first.

use std::time::Duration;

use quorba_demo::accounting::{Replica, account};
use quorba_demo::record::{CallRecord, Outcome, Recording};

use super::super::domain::{DomainFile, NODES};
use super::super::fleet::Fleet;
use super::super::load::Load;
use super::super::{Context, Orb, bank};
use super::GROUP;
use super::operator::Operator;
use super::outside::Server;
use crate::place::Place;
use crate::wait;

/// How long servers may take to be even.
const EVEN_TIME_MAX: Duration = Duration::from_secs(20);
/// Calls that a server has executed and no group.
const STALE_CALLS: usize = 3;

struct Life<'a> {
    context: &'a Context,
    fleet: Fleet,
    operator: Operator,
    recordings: Vec<Recording>,
}

pub(super) fn run(context: &Context) -> Result<String, String> {
    let domain = DomainFile::without_groups(&context.quorba, &context.folder)?;
    let fleet = Fleet::start(&context.quorba, &context.folder, GROUP, domain)?;
    let operator = Operator::of(context, &fleet);
    operator.wait_healthy()?;
    let mut life = Life { context, fleet, operator, recordings: Vec::new() };
    let east = Server::start(context, "east")?;
    let west = Server::start(context, "west")?;
    life.create(&east, &west)?;
    let mut west = life.kill_a_server(&east, west)?;
    life.take_over(&east, &west)?;
    life.kill_a_node(&east, &west)?;
    life.end_all_nodes(&east, &mut west)?;
    let told = life.judge(&[&east, &west])?;
    life.delete(&[&east, &west])?;
    drop((east, west));
    life.fleet.end()?;
    Ok(told)
}

/// The group's section with these members.
fn section(members: &[(&str, &Server)]) -> String {
    let names: Vec<&str> = members.iter().map(|(node, _)| *node).collect();
    let servers = members.iter().map(|(node, one)| format!("{node} = \"{}\"", one.reference));
    let servers: Vec<String> = servers.collect();
    format!(
        "[group.{GROUP}]\nmembers = {names:?}\nstate_object = \"bank\"\nconnect = {{ {} }}\n",
        servers.join(", ")
    )
}

/// An increment that was made before there was a group.
fn acknowledged(reference: String) -> Recording {
    let record = CallRecord {
        reference: reference.clone(),
        operation: "increment".into(),
        start_us: 0,
        end_us: 0,
        outcome: Outcome::Ok,
        exception: None,
        completed: None,
        minor: None,
    };
    Recording { name: reference, records: vec![record] }
}

impl Life<'_> {
    /// Both servers have worked alone before. The state of the one with which the group is created
    /// is the group's; who comes later is given it.
    fn create(&mut self, east: &Server, west: &Server) -> Result<(), String> {
        let begin = |name: &'static str| (0..STALE_CALLS).map(move |at| format!("{name}-{at}"));
        begin("own").try_for_each(|reference| west.call_past_the_order(&reference))?;
        for reference in begin("before") {
            east.call_past_the_order(&reference)?;
            self.recordings.push(acknowledged(reference));
        }
        // As the server wrote it.
        let first = format!("n1={}", east.file);
        let words = ["group", "create", GROUP, "--members", "n1", "--state-object", "bank"];
        self.operator.ok(&[&words[..], &["--connect", &first]].concat())?;
        self.operator.wait_members(GROUP, &["n1"], &["n1", "n2", "n3"])?;
        self.apply("both.toml", &[("n1", east), ("n2", west)])?;
        self.operator.wait_members(GROUP, &["n1", "n2"], &["n1", "n2", "n3"])?;
        self.must_be_brought_by_state("n2")?;
        self.wait_even(&[east, west])
    }

    /// Clients of the group, as the reference of now says.
    fn load(&self, name: &str) -> Result<Load, String> {
        let reference = self.operator.reference(GROUP)?;
        Load::named(name, self.context, [Orb::Jacorb; 2], &reference, &Place::Here)
    }

    fn finish(&mut self, load: Load) -> Result<(), String> {
        self.recordings.extend(load.finish()?.0);
        Ok(())
    }

    /// Brings the domain to a file with these members.
    fn apply(&self, file: &str, members: &[(&str, &Server)]) -> Result<(), String> {
        let file = self.operator.write_file(file, &section(members))?;
        let plan = self.operator.ok(&["config", "apply", &file, "--dry-run"])?;
        if !plan.contains(&format!("change group {GROUP}")) || !plan.contains("connect.") {
            return Err(format!("the difference is not shown: {plan}"));
        }
        // A node may be away.
        self.operator.ok(&["config", "apply", &file]).map(drop)
    }

    /// What the member of a node was given to come in.
    fn must_be_brought_by_state(&self, node: &str) -> Result<(), String> {
        let group = self.operator.group(node, GROUP)?;
        let is_it = group["last_catch_up"]["what"] == "state";
        if is_it { Ok(()) } else { Err(format!("{node} was given {}", group["last_catch_up"])) }
    }

    /// One is killed under load; somebody starts it again, as another one, and says so.
    fn kill_a_server(&mut self, east: &Server, mut west: Server) -> Result<Server, String> {
        let load = self.load("a")?;
        load.wait_under_way()?;
        west.kill();
        let again = Server::start(self.context, "west-2")?;
        if again.executed()? != 0 {
            return Err("a new server has a past".into());
        }
        self.apply("again.toml", &[("n1", east), ("n2", &again)])?;
        self.operator.wait_members(GROUP, &["n1", "n2"], &["n1", "n2", "n3"])?;
        self.must_be_brought_by_state("n2")?;
        self.finish(load)?;
        self.wait_even(&[east, &again])?;
        Ok(again)
    }

    /// The node of a member ends, and another one takes its server over, which lives and has missed
    /// what was called meanwhile.
    fn take_over(&mut self, east: &Server, west: &Server) -> Result<(), String> {
        self.fleet.kill_node(1);
        let load = self.load("b")?;
        self.finish(load)?;
        let (newest, stale) = (east.executed()?, west.executed()?);
        if stale == 0 || stale >= newest {
            return Err(format!("it is not stale: {stale} of {newest} requests"));
        }
        self.apply("over.toml", &[("n1", east), ("n3", west)])?;
        self.operator.wait_members(GROUP, &["n1", "n3"], &["n1", "n3"])?;
        self.must_be_brought_by_state("n3")?;
        self.fleet.start_node(1)?;
        self.operator.wait_healthy()?;
        self.operator.wait_members(GROUP, &["n1", "n3"], &["n1", "n2", "n3"])
    }

    /// A node ends under load; its server lives on, and has perhaps executed what nobody else has.
    fn kill_a_node(&mut self, east: &Server, west: &Server) -> Result<(), String> {
        let load = self.load("c")?;
        load.wait_under_way()?;
        self.fleet.kill_node(0);
        self.fleet.start_node(0)?;
        self.finish(load)?;
        self.operator.wait_healthy()?;
        self.operator.wait_members(GROUP, &["n1", "n3"], &["n1", "n2", "n3"])?;
        self.wait_even(&[east, west])
    }

    /// All nodes end, and the servers live on. Who can know whose state it is says so; the other
    /// one, which was used past the order meanwhile, is given that.
    fn end_all_nodes(&mut self, east: &Server, west: &mut Server) -> Result<(), String> {
        (0..NODES).for_each(|node| self.fleet.kill_node(node));
        (0..STALE_CALLS)
            .try_for_each(|number| west.call_past_the_order(&format!("odd-{number}")))?;
        (0..NODES).try_for_each(|node| self.fleet.start_node(node))?;
        let next = format!("quorba group adopt {GROUP}");
        wait::until("its server is there, and status says what helps", EVEN_TIME_MAX, || {
            let seen = self.operator.group("n1", GROUP)?;
            let status = self.operator.shown(&["status", GROUP])?;
            let is_out = seen["members"][0]["state"] == "out";
            if is_out && status.contains(&next) { Ok(()) } else { Err(status) }
        })?;
        self.operator.ok(&["group", "adopt", GROUP, "n1"])?;
        self.operator.wait_healthy()?;
        self.operator.wait_members(GROUP, &["n1", "n3"], &["n1", "n2", "n3"])?;
        self.must_be_brought_by_state("n3")?;
        self.wait_even(&[east, west])?;
        let load = self.load("d")?;
        self.finish(load)
    }

    /// The servers, when they are even.
    fn wait_even(&self, servers: &[&Server]) -> Result<(), String> {
        self.even(servers).map(drop)
    }

    fn even(&self, servers: &[&Server]) -> Result<Vec<Replica>, String> {
        wait::until("the servers are even", EVEN_TIME_MAX, || {
            let replicas: Result<Vec<_>, _> = servers.iter().map(|one| one.replica()).collect();
            let replicas = replicas?;
            let are_even = replicas.windows(2).all(|pair| pair[0].books == pair[1].books);
            if are_even { Ok(replicas) } else { Err("they differ".into()) }
        })
    }

    /// Every call of every client, held against what the servers have.
    fn judge(&self, servers: &[&Server]) -> Result<String, String> {
        let replicas = self.even(servers)?;
        bank::save(self.context, &replicas)?;
        let account = account(&self.recordings, &replicas);
        let told = format!(
            "a server came back as another, one was taken over, 5 nodes were killed: {} calls, {} \
             acknowledged, {} lost, {} doubled, {} unknown, {} refused",
            account.requests,
            account.acknowledged,
            account.lost,
            account.doubled,
            account.maybe(),
            account.refused
        );
        if account.is_clean() {
            Ok(told)
        } else {
            Err(format!("{told}\n{:?}", account.differences))
        }
    }

    /// Servers that no node has started go on.
    fn delete(&self, servers: &[&Server]) -> Result<(), String> {
        self.operator.ok(&["group", "delete", GROUP, "--yes"])?;
        servers.iter().try_for_each(|server| server.executed().map(drop))
    }
}
