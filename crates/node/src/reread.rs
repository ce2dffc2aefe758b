//! The domain file, read again while the node runs: what it says of groups is brought to the domain
//! as `quorba config apply` would, but for deletions.
//!
//! A thread of its own reads and compares, so that a long file keeps no call waiting; the data
//! plane gives it what runs, and has each change ordered. All nodes may be told to read their
//! files at once: what another node's file has done already is found to be so.
//!
//! After changes of the domain it is looked at, too, so that status compares what runs with the
//! file that is there now; nothing is changed by that.
//!
//! What it is not: the rest of the file, which a node reads when it starts. Invariants: nothing is
//! deleted; a change is asked for only if the group still is what it was compared with; what is not
//! done is named, with the command that does it.

use crate::NodeError;
use crate::admin::{DefineAsker, Refusal};
use quorba_admin::{CatalogChange, Defined};
use quorba_config::{Definition, Domain, Effect, GroupChange, KeyChange, Kind, Plan, plan};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// So long a change is tried again that cannot be ordered now.
const TRY_WITHIN: Duration = Duration::from_secs(60);
/// How long until then.
const AGAIN: Duration = Duration::from_millis(200);

/// What the thread asks of the data plane.
pub(crate) enum Ask {
    /// What runs.
    Running(oneshot::Sender<Vec<Definition>>),
    /// What the file says now; it asks for nothing.
    Says(Vec<Definition>),
    /// A change of a group that was this before; `None`: that was not there.
    Define { before: Option<String>, change: CatalogChange, asker: DefineAsker },
}

/// A look waits until the domain was not changed for so long: one is enough for many changes.
const QUIET: Duration = Duration::from_millis(300);

/// Why the file is to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wish {
    /// To know what it says.
    Look,
    /// To bring the domain to it.
    Apply,
}

/// Has the file read again.
pub(crate) struct Rereader(Sender<Wish>);

impl Rereader {
    /// `running` is what the nodes compare when they meet, as this one had it when it started.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub(crate) fn start(
        (domain, shared): (&Domain, &str),
        ask: impl Fn(Ask) -> bool + Send + 'static,
    ) -> Result<Self, NodeError> {
        let (told, inbox) = channel();
        let (file, id, shared) = (domain.file.clone(), domain.id.clone(), shared.to_owned());
        let worker = Worker { file, id, shared, ask: Box::new(ask) };
        let thread = std::thread::Builder::new().name("file".into());
        thread.spawn(move || worker.run(&inbox)).map_err(NodeError::Resources)?;
        Ok(Self(told))
    }

    /// The file is to be read; what is under way is done first.
    pub(crate) fn read(&self) {
        // The thread ends with its sender only.
        let _ = self.0.send(Wish::Apply);
    }

    /// The domain was changed, perhaps to what the file says now.
    pub(crate) fn look(&self) {
        let _ = self.0.send(Wish::Look);
    }
}

/// What is wanted of the file that is read next: all wishes that are there by then are about it,
/// and whoever wants it applied gets that. A look waits until no wish has come for so long.
fn gathered(first: Wish, inbox: &Receiver<Wish>, quiet: Duration) -> Wish {
    let mut wish = first;
    while wish == Wish::Look {
        match inbox.recv_timeout(quiet) {
            Ok(another) => wish = another,
            Err(_) => break,
        }
    }
    match inbox.try_iter().any(|another| another == Wish::Apply) {
        true => Wish::Apply,
        false => wish,
    }
}

struct Worker {
    file: PathBuf,
    id: String,
    shared: String,
    ask: Box<dyn Fn(Ask) -> bool + Send>,
}

/// The node is stopping.
struct Stopping;

impl Worker {
    fn run(self, inbox: &Receiver<Wish>) {
        while let Ok(first) = inbox.recv() {
            let read = match gathered(first, inbox, QUIET) {
                Wish::Look => self.look(),
                Wish::Apply => self.read(),
            };
            if read.is_err() {
                return;
            }
        }
    }

    /// A file that cannot be read says what it said before.
    fn look(&self) -> Result<(), Stopping> {
        match Domain::load(&self.file) {
            Ok(domain) if domain.id == self.id => {
                self.ask(Ask::Says(domain.definitions().to_vec()))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn read(&self) -> Result<(), Stopping> {
        let file = self.file.display();
        let domain = match Domain::load(&self.file) {
            Ok(domain) if domain.id == self.id => domain,
            Ok(domain) => {
                let what = "it is of another domain: the groups stay as they are";
                tracing::error!(%file, domain = domain.id, "{what}");
                return Ok(());
            }
            Err(report) => {
                let problems = report.problems().iter().map(ToString::to_string);
                let problems = problems.collect::<Vec<_>>().join("; ");
                let what = "the domain file has errors: the groups stay as they are; `quorba \
                            config check` shows where";
                tracing::error!(%file, problems, "{what}");
                return Ok(());
            }
        };
        let (asker, answer) = oneshot::channel();
        self.ask(Ask::Running(asker))?;
        let running = answer.blocking_recv().map_err(|_| Stopping)?;
        let plan = plan(&running, &domain, &self.shared);
        self.ask(Ask::Says(domain.definitions().to_vec()))?;
        let (mut done, mut failed) = (0, 0);
        for (before, change) in changes(&plan, &running) {
            match self.carry_out(before, change)? {
                true => done += 1,
                false => failed += 1,
            }
        }
        tell_what_is_left(&plan);
        tracing::info!(%file, done, failed, "the domain file was read again");
        Ok(())
    }

    /// Whether the domain is as the file says in this.
    fn carry_out(&self, before: Option<String>, change: CatalogChange) -> Result<bool, Stopping> {
        let group = change.name().to_owned();
        let until = Instant::now() + TRY_WITHIN;
        let (mut is_refused, mut waits) = (false, false);
        loop {
            match self.define(before.clone(), change.clone())? {
                Ok(Defined { existed: false, .. }) => return Ok(true),
                Ok(Defined { .. }) => {
                    tracing::info!(
                        group,
                        "another node has carried out this change of the domain file"
                    );
                    return Ok(true);
                }
                Err(Refusal { is_passing: true, text }) if Instant::now() < until => {
                    if !waits {
                        let seconds = TRY_WITHIN.as_secs();
                        let what = "what the domain file says cannot be ordered now, and is tried \
                                    again; quorba status shows which nodes are missing";
                        tracing::warn!(group, reason = text, seconds, "{what}");
                        waits = true;
                    }
                    std::thread::sleep(AGAIN);
                }
                // Another node may have done it in front of this in the order.
                Err(_) if !is_refused => is_refused = true,
                Err(Refusal { text, .. }) => {
                    let what = "the group is not as the domain file says: repair what hinders it, \
                                then send SIGHUP again, or use `quorba config apply`";
                    tracing::error!(group, reason = text, "{what}");
                    return Ok(false);
                }
            }
        }
    }

    fn define(
        &self,
        before: Option<String>,
        change: CatalogChange,
    ) -> Result<Result<Defined, Refusal>, Stopping> {
        let (asker, answer) = oneshot::channel();
        self.ask(Ask::Define { before, change, asker })?;
        answer.blocking_recv().map_err(|_| Stopping)
    }

    fn ask(&self, what: Ask) -> Result<(), Stopping> {
        if (self.ask)(what) { Ok(()) } else { Err(Stopping) }
    }
}

/// What is done, in an order in which it can be, with what each group was before.
fn changes(plan: &Plan, running: &[Definition]) -> Vec<(Option<String>, CatalogChange)> {
    let creates = plan.creates.iter().map(|one| (None, CatalogChange::Create(one.clone())));
    let possible = plan.changes.iter().filter(|change| change.is_possible());
    let changes = possible.map(|GroupChange { definition, .. }| {
        let before = running.iter().find(|one| one.name == definition.name);
        (before.map(|one| one.text.clone()), CatalogChange::Change(definition.clone()))
    });
    creates.chain(changes).collect()
}

/// What needs more than to be read.
fn tell_what_is_left(plan: &Plan) {
    let named = |keys: &[KeyChange], is_it: &dyn Fn(Effect) -> bool| {
        let keys = keys.iter().filter(|key| is_it(key.effect)).map(|key| key.key.as_str());
        keys.collect::<Vec<_>>().join(", ")
    };
    for GroupChange { definition, keys } in &plan.changes {
        let group = &definition.name;
        let fixed = named(keys, &|effect| effect >= Effect::Recreate);
        if !fixed.is_empty() {
            let what = format!(
                "a group that runs keeps these keys, so nothing of it was changed; `quorba group \
                 delete {group} --yes`, then SIGHUP again, makes it anew, without its state"
            );
            tracing::warn!(group, keys = fixed, "{what}");
            continue;
        }
        let later = named(keys, &|effect| effect == Effect::NextStart);
        if !later.is_empty() {
            tracing::info!(
                group,
                keys = later,
                "these keys take effect when a server is next started"
            );
        }
        let begins = named(keys, &|effect| effect == Effect::Begins);
        if !begins.is_empty() {
            let what = "the group keeps what it has; `quorba group style` and `quorba group \
                        promote` change it";
            tracing::warn!(group, keys = begins, "{what}");
        }
    }
    for one in &plan.deletes {
        let name = &one.name;
        let what = match one.kind() {
            Kind::Group => format!(
                "the domain file does not have this group, which runs; `quorba group delete \
                 {name} --yes` deletes it"
            ),
            Kind::Outside => format!(
                "the domain file does not have this server outside, which the domain knows; \
                 `quorba outside delete {name}` deletes it"
            ),
        };
        tracing::warn!(name, "{what}");
    }
    if !plan.restarts.is_empty() {
        let keys = named(&plan.restarts, &|_| true);
        tracing::warn!(
            keys,
            "these keys take effect when all nodes were stopped and are started again"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_wants_the_file_applied_gets_that_however_many_looks_are_there() {
        use Wish::{Apply, Look};
        let cases = [
            (vec![Look], Look),
            (vec![Look, Look], Look),
            (vec![Look, Apply, Look], Apply),
            (vec![Apply, Look], Apply),
        ];
        for (wishes, wanted) in cases {
            // Those that come while it waits, and those that are there already.
            for quiet in [Duration::ZERO, Duration::from_millis(20)] {
                let (told, inbox) = channel();
                wishes.iter().for_each(|wish| told.send(*wish).expect("the inbox is there"));
                let first = inbox.recv().expect("one is there");
                assert_eq!(gathered(first, &inbox, quiet), wanted, "{wishes:?}");
            }
        }
    }
}
