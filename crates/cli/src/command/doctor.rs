//! `quorba group doctor`: runs a group's server twice on recorded requests, and compares.
//!
//! What it is not: a proof that a server is deterministic. What two runs on one machine, one after
//! the other, do alike may still depend on threads, on load or on the machine.
//!
//! Invariants: it needs no running domain and touches none; both servers begin fresh, in folders of
//! their own, and get the same octets in the same order.

mod causes;
mod compare;
pub mod recording;
mod replay;
mod report;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use quorba_admin::requests::Messages;
use quorba_config::{Domain, Group, KnownGroups, Node, read_group};
use quorba_node::trial::{Trial, TrialError};
use serde_json::json;
use tempfile::TempDir;

use self::causes::Scene;
use self::recording::Recording;
use self::replay::{Answer, Asked};
use self::report::{Differing, Report};
use crate::args::DomainFile;
use crate::ask;
use crate::catalog;
use crate::command::group::from_file;
use crate::context::{Context, Deadline};
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::health;
use crate::text::grouped;

const DEADLINE: Duration = Duration::from_secs(600);
/// The domain need not run; if it does, it is asked what it has seen.
const ASK_WITHIN: Duration = Duration::from_millis(500);
/// Between the starts of both runs, so that clocks of whole seconds differ.
const APART: Duration = Duration::from_millis(1_100);
/// How often it is told how far a run is.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// See [`crate::command::group`].
#[derive(Debug, Args)]
pub struct Doctor {
    /// The group
    group: String,

    /// The recording; `quorba group record` makes one
    #[arg(long, value_name = "FILE")]
    log: PathBuf,

    /// A file with the group's section, or a whole domain file that has it, instead of what runs:
    /// to try another server, or the same with other arguments
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// The node whose name and addresses the server is started with; else the first member's
    #[arg(long)]
    node: Option<String>,

    #[command(flatten)]
    domain: DomainFile,
}

/// What one of the two servers did.
struct Run {
    port: u16,
    answers: Vec<Answer>,
    state: Option<Vec<u8>>,
}

impl Doctor {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let deadline = context.deadline(DEADLINE);
        let domain = context.load(&self.domain.config)?;
        let group = &self.group(context, &domain)?;
        let node = self.member(&domain, group)?;
        let recording = recording::read(&self.log)?;
        self.check(context, &recording)?;
        let mut folder = make_folder()?;
        let mut runs = Vec::new();
        let began = Instant::now();
        for number in 1..=2 {
            let place = folder.path().join(format!("run-{number}"));
            let stage = Stage { context, group, node, deadline, place: &place, number };
            // What a server printed is needed if it did not start.
            let run = stage.run(&recording.requests);
            runs.push(
                run.inspect_err(|failure| folder.disable_cleanup(failure.code == codes::PROCESS))?,
            );
            thread::sleep(APART.saturating_sub(began.elapsed()));
        }
        let report = judge(group, &recording, &runs[0], &runs[1]);
        let seen = seen_in_domain(&domain, &self.group);
        if context.is_json() {
            let mut said = report.json();
            said["domain_saw"] = json!(seen);
            context.print_json(&said)?;
        } else {
            context.print(&report.text())?;
            if let Some(seen) = &seen {
                context.print(&format!(
                    "But the running domain has seen members differ: {seen}\nWhat differs there \
                     may not be in the recording, or may come from threads, load, time or the \
                     machine.\n"
                ))?;
            }
        }
        Ok(if report.is_alike() && seen.is_none() { Exit::Ok } else { Exit::Failed })
    }

    fn group(&self, context: &Context, domain: &Domain) -> Result<Group, Failure> {
        let Some(file) = &self.from else {
            return catalog::find_group(context, domain, &self.group);
        };
        let definition = from_file(context, &self.group, file)?;
        let known: KnownGroups = domain.definitions().iter().collect();
        read_group(domain, &definition.text, &known)
            .map_err(|report| catalog::wrong(context, &self.group, &report))
    }

    fn member<'d>(&self, domain: &'d Domain, group: &Group) -> Result<&'d Node, Failure> {
        let id = match &self.node {
            Some(name) => domain.node_id(name).filter(|node| group.members.contains(*node)),
            None => group.members.lowest(),
        };
        id.and_then(|id| domain.node(id)).ok_or_else(|| {
            let named = self.node.as_deref().unwrap_or_default();
            let what = format!("group {} has no member on a node {named:?}", group.name);
            let members = group.members.iter().filter_map(|node| domain.node(node));
            let names: Vec<&str> = members.map(|node| node.name.as_str()).collect();
            let next = format!("members: {}", names.join(", "));
            Failure::new(codes::NOT_IN_DOMAIN, Exit::Usage, what, next)
        })
    }

    fn check(&self, context: &Context, recording: &Recording) -> Result<(), Failure> {
        let file = self.log.display();
        if recording.head.group != self.group {
            let what = format!("{file} is a recording of group {}", recording.head.group);
            let next = format!("quorba group record {} --to FILE", self.group);
            return Err(Failure::new(codes::FILE, Exit::Usage, what, next));
        }
        if recording.requests.is_empty() {
            let what = format!("{file} has no request");
            let next = "record while clients call";
            return Err(Failure::new(codes::FILE, Exit::Failed, what, next));
        }
        match recording.foot {
            None => context.tell(format!("{file} was cut off; what is there is used")),
            Some(foot) if foot.missing > 0 => {
                let missing = grouped(foot.missing);
                context.tell(format!("{file} lacks {missing} requests in between"));
            }
            Some(_) => {}
        }
        Ok(())
    }
}

/// What a domain that runs here has seen of the group's members.
fn seen_in_domain(domain: &Domain, group: &str) -> Option<String> {
    let answers = ask::everyone(domain, ASK_WITHIN);
    let found = health::judge(&answers, Some(group)).findings;
    let differ = found.into_iter().find(|one| one.fact == "differ" || one.fact == "may-differ");
    differ.map(|one| one.what)
}

/// One of the two runs.
struct Stage<'a> {
    context: &'a Context,
    group: &'a Group,
    node: &'a Node,
    deadline: Deadline,
    place: &'a Path,
    number: u32,
}

impl Stage<'_> {
    fn run(&self, requests: &[Messages]) -> Result<Run, Failure> {
        let trial = Trial::start(self.group, self.node, self.place, self.group.start_timeout);
        let trial = trial.map_err(|error| cannot_try(&error))?;
        let mut asked = Asked::new(trial.address(), self.group.server_reply);
        let mut answers = Vec::new();
        let mut told = Instant::now();
        for request in requests {
            if self.deadline.has_passed() {
                return Err(self.too_late(answers.len(), requests.len()));
            }
            if told.elapsed() >= TELL_EVERY {
                told = Instant::now();
                let (done, all) = (grouped(answers.len() as u64), grouped(requests.len() as u64));
                self.context.tell(format!("run {}: {done} of {all} requests", self.number));
            }
            trial.publish(Some(quorba_node::recent::moment(request)));
            let answer = asked.execute(request).ok_or_else(|| {
                let number = request.number;
                let what = format!("request {number} of the recording is not a valid GIOP request");
                Failure::new(codes::FILE, Exit::Failed, what, "record anew")
            })?;
            trial.publish(None);
            let is_end = !matches!(answer, Answer::Reply(_));
            answers.push(answer);
            if is_end {
                break;
            }
        }
        let state = self.group.state_object.as_deref().and_then(|key| asked.state(key));
        Ok(Run { port: trial.address().port(), answers, state })
    }

    fn too_late(&self, done: usize, all: usize) -> Failure {
        let (done, all) = (grouped(done as u64), grouped(all as u64));
        let what = format!("run {} had done {done} of {all} requests", self.number);
        let next = "give more time with --timeout, or a shorter recording";
        Failure::new(codes::TIMED_OUT, Exit::TimedOut, what, next)
    }
}

fn cannot_try(error: &TrialError) -> Failure {
    let next = match error {
        TrialError::NotOurs(_) => {
            "name a file with --from in which the group has a `server` command"
        }
        TrialError::NoPort(_) => "name a file with --from in which the command has {port}",
        TrialError::Calls(_) => "try a version of the server that does without its calls",
        TrialError::Folder { .. } => "make room in the folder for temporary files (TMPDIR)",
        TrialError::Server { .. } => "see that the command in `server` runs on this machine",
    };
    Failure::new(codes::PROCESS, Exit::Failed, error.to_string(), next)
}

fn judge(group: &Group, recording: &Recording, a: &Run, b: &Run) -> Report {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let scene = Scene { ports: [a.port, b.port], now_s: now.as_secs() };
    let mut report = Report::new(&group.name, recording.requests.len());
    let pairs = a.answers.iter().zip(&b.answers);
    for (request, (one, other)) in recording.requests.iter().zip(pairs) {
        report.compared += 1;
        if let Some(difference) = compare::compare(one, other, &scene) {
            report.add(Differing::new(request, [one, other], difference));
        }
    }
    report.states = match (&a.state, &b.state) {
        (Some(one), Some(other)) => {
            let difference = compare::compare_states(one, other, &scene);
            Some(difference.map(|difference| (difference, one.len(), other.len())))
        }
        _ => None,
    };
    report.recorded = compare_with_recorded(recording, &a.answers);
    report
}

/// How many of the recorded replies were as the first run's. A group that had executed requests
/// before the recording began answers otherwise, so this is no finding.
fn compare_with_recorded(recording: &Recording, answers: &[Answer]) -> usize {
    let body = |octets: &[u8]| {
        let message = quorba_giop::Message::from_bytes(octets.to_vec().into()).ok()?;
        match message.parse() {
            Ok(quorba_giop::Body::Reply(reply)) => Some((reply.status(), reply.body().to_vec())),
            _ => None,
        }
    };
    let pairs = recording.requests.iter().zip(answers);
    pairs
        .filter(|(request, answer)| {
            let recorded = request.reply.as_ref().and_then(|reply| body(reply));
            recorded.is_some() && recorded == body(answer.octets())
        })
        .count()
}

/// Where the servers live: a folder of this user's alone, under a name that nobody can guess.
fn make_folder() -> Result<TempDir, Failure> {
    let mut folder = tempfile::Builder::new();
    folder.prefix("quorba-doctor-").rand_bytes(14).tempdir().map_err(|error| {
        let what = format!("{}: {error}", std::env::temp_dir().display());
        let next = "make room in the folder for temporary files (TMPDIR)";
        Failure::new(codes::FILE, Exit::Failed, what, next)
    })
}
