//! `quorba config apply`: brings the groups and servers outside of a running domain to what a file
//! says.
//!
//! What it is not: the rest of the file, which nodes read when they start. Invariants: the whole
//! difference is shown before anything is done; what was not done is named, and is no success.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use quorba_admin::CatalogChange;
use quorba_config::{Domain, GroupChange, KeyChange, Plan, plan};
use serde_json::{Value, json};

use crate::catalog::{self, Running};
use crate::context::{Context, Deadline};
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::reference;
use crate::text::table;

const DEADLINE: Duration = Duration::from_secs(60);
/// More is not said of one that did not change either.
const VALUE_CHARS_MAX: usize = 48;

/// Bring the groups of the running domain, and the servers outside, to what a file says
///
/// The difference is shown first: what is created, changed with its keys, and deleted. Then it is
/// done, one by one; what was done before an error stays, and the same command goes
/// on from there. What takes a restart of nodes, or a group to be deleted and created, is named and
/// not done.
#[derive(Debug, Args)]
pub struct Apply {
    /// The domain file
    file: PathBuf,

    /// Show the difference, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Delete what the file does not have; what a deleted group had acknowledged is lost
    #[arg(long)]
    yes: bool,
}

impl Apply {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let domain = context.load(&self.file)?;
        let deadline = context.deadline(DEADLINE);
        let running = Running::ask(&domain, &deadline)?;
        let plan = plan(&running.definitions, &domain, &running.shared(&deadline)?);
        if context.is_json() {
            let node = &running.node;
            context.print_json(&json!({ "asked": node, "plan": plan_json(&plan) }))?;
        } else {
            context.print(&plan_text(&plan))?;
        }
        if self.dry_run {
            return Ok(Exit::Ok);
        }
        self.apply(context, &domain, &plan, &deadline)?;
        let left = left_undone(&plan, self.yes);
        if left.is_empty() {
            return Ok(Exit::Ok);
        }
        let what =
            format!("not everything is as {} says: {}", self.file.display(), left.join("; "));
        let next = match !self.yes && !plan.deletes.is_empty() {
            true => "the same with --yes deletes them; the rest is for you to do",
            false => "quorba config apply --dry-run shows what each of them takes",
        };
        let failure = Failure::new(codes::NOT_APPLIED, Exit::Failed, what, next);
        Err(failure.data(json!({ "not_applied": left })))
    }

    fn apply(
        &self,
        context: &Context,
        domain: &Domain,
        plan: &Plan,
        deadline: &Deadline,
    ) -> Result<(), Failure> {
        let creates = plan.creates.iter().cloned().map(CatalogChange::Create);
        let changes = plan.changes.iter().filter(|change| change.is_possible());
        let creates = creates.zip(&plan.creates);
        let changes = changes
            .map(|change| (CatalogChange::Change(change.definition.clone()), &change.definition));
        let deletes = plan.deletes.iter().filter(|_| self.yes);
        let deletes = deletes.map(|one| (CatalogChange::Delete(one.name.clone()), one));
        for (change, definition) in creates.chain(changes).chain(deletes) {
            let operation = catalog::new_operation();
            let defined = catalog::define(domain, &operation, &change, deadline)?;
            let (done, id) = (catalog::done_text(&change), defined.id);
            if context.is_json() {
                let (kind, name) = (definition.kind().table(), change.name());
                let line = json!({ kind: name, "done": done, "id": id, "operation": operation });
                context.print_json(&line)?;
            } else {
                context.print(&format!("{} is {done}; id {id}\n", definition.title()))?;
            }
        }
        Ok(())
    }
}

/// What the command cannot do, or was not told to.
fn left_undone(plan: &Plan, deletes: bool) -> Vec<String> {
    let changes = plan.changes.iter().filter(|change| !change.is_possible());
    let changes = changes.map(|change| {
        let is_cause = |key: &&KeyChange| key.effect >= quorba_config::Effect::Recreate;
        let keys: Vec<&str> =
            change.keys.iter().filter(is_cause).map(|key| key.key.as_str()).collect();
        let title = change.definition.title();
        format!("{title} must be deleted and created ({})", keys.join(", "))
    });
    let deletes = plan.deletes.iter().filter(|_| !deletes);
    let deletes = deletes.map(|one| format!("{} is not deleted", one.title()));
    let restarts = plan.restarts.iter().map(|key| format!("{} takes a restart", key.key));
    changes.chain(deletes).chain(restarts).collect()
}

fn plan_text(plan: &Plan) -> String {
    if plan.is_empty() {
        return "the running domain is as the file says\n".to_owned();
    }
    let mut text = String::new();
    for definition in &plan.creates {
        text.push_str(&format!("create {}\n", definition.title()));
    }
    for change in &plan.changes {
        let title = change.definition.title();
        text.push_str(&match change.is_possible() {
            true => format!("change {title}\n"),
            false => format!("{title} would have to be deleted and created\n"),
        });
        text.push_str(&keys_text(&change.keys));
    }
    for definition in &plan.deletes {
        text.push_str(&format!("delete {}, with --yes\n", definition.title()));
    }
    if !plan.restarts.is_empty() {
        text.push_str("nodes would have to be restarted\n");
        text.push_str(&keys_text(&plan.restarts));
    }
    text
}

fn keys_text(keys: &[KeyChange]) -> String {
    let rows = keys.iter().map(|key| {
        let (old, new) = values(key.old.as_deref(), key.new.as_deref());
        vec![format!("  {}", key.key), old, new, key.effect.as_str().to_owned()]
    });
    table(&["  KEY", "IS", "TO BE", "TAKES EFFECT"], rows.collect())
}

/// Two values, short, and such that it is seen in what they differ.
fn values(old: Option<&str>, new: Option<&str>) -> (String, String) {
    let [old, new] =
        [old, new].map(|value| value.map_or_else(|| "-".to_owned(), reference::readable));
    let alike = old.chars().zip(new.chars()).take_while(|(one, other)| one == other).count();
    // What is left out in front is alike.
    let from = if alike >= VALUE_CHARS_MAX { alike - VALUE_CHARS_MAX / 4 } else { 0 };
    (part(&old, from), part(&new, from))
}

fn part(text: &str, from: usize) -> String {
    let before = if from > 0 { "..." } else { "" };
    let shown: String = text.chars().skip(from).take(VALUE_CHARS_MAX).collect();
    let is_all = text.chars().nth(from + VALUE_CHARS_MAX).is_none();
    format!("{before}{shown}{}", if is_all { "" } else { "..." })
}

fn plan_json(plan: &Plan) -> Value {
    let change = |change: &GroupChange| {
        json!({
            "kind": change.definition.kind().table(),
            "group": change.definition.name,
            "possible": change.is_possible(),
            "keys": change.keys.iter().map(key_json).collect::<Vec<_>>(),
        })
    };
    json!({
        "creates": plan.creates.iter().map(|one| &one.name).collect::<Vec<_>>(),
        "changes": plan.changes.iter().map(change).collect::<Vec<_>>(),
        "deletes": plan.deletes.iter().map(|one| &one.name).collect::<Vec<_>>(),
        "restarts": plan.restarts.iter().map(key_json).collect::<Vec<_>>(),
    })
}

fn key_json(key: &KeyChange) -> Value {
    json!({ "key": key.key, "old": key.old, "new": key.new, "effect": key.effect.word() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_shown_by_address_and_key() {
        let at = |port: u16| {
            let text = format!("corbaloc:iiop:1.2@10.0.0.1:{port}/east/bank");
            let url = quorba_giop::corbaloc::parse(&text).expect("it is one");
            format!("\"{}\"", url.to_ior())
        };
        let shown = values(Some(&at(6000)), Some(&at(6001)));
        assert_eq!(shown, ("10.0.0.1:6000/east/bank".into(), "10.0.0.1:6001/east/bank".into()));
        assert_eq!(values(None, Some("\"IOR:00\"")), ("-".into(), "\"IOR:00\"".into()));
    }

    #[test]
    fn long_values_are_shown_from_where_they_differ() {
        let long = |end: &str| format!("{}{end}", "x".repeat(VALUE_CHARS_MAX + 10));
        let (old, new) = values(Some(&long("old")), Some(&long("new")));
        assert_eq!((old.as_str(), new.as_str()), ("...xxxxxxxxxxxxold", "...xxxxxxxxxxxxnew"));
        let (old, new) = values(Some(&long("")), Some("y"));
        assert_eq!(old, format!("{}...", "x".repeat(VALUE_CHARS_MAX)));
        assert_eq!(new, "y");
    }
}
