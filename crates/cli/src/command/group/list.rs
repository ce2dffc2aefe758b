//! `quorba group list`: every group of a running domain on a line.
//!
//! What it is not: how they are; `quorba status` says that.

use std::collections::BTreeMap;

use quorba_admin::CatalogGroup;
use quorba_config::{Definition, Domain};
use serde_json::{Value, json};

use super::{DEADLINE, group_json};
use crate::ask::{self, Answer, nobody_here};
use crate::catalog;
use crate::command::status::members_text;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::health;
use crate::text::{grouped, table};

pub fn list(context: &Context, domain: &Domain) -> Result<Exit, Failure> {
    let answers = ask::everyone(domain, context.deadline(DEADLINE).left());
    let best = health::best(&answers).ok_or_else(|| nobody_here(domain))?;
    let catalog = catalog::glance(&answers).unwrap_or_default();
    let by_name: ByName<'_> =
        catalog.groups.iter().map(|group| (group.name.as_str(), group)).collect();
    let mut groups = best.groups.clone();
    for group in &mut groups {
        // Of a passive group only the leader's member has executed all.
        group.executed = executed(&answers, &group.name);
    }
    if context.is_json() {
        for group in &groups {
            let mut line = group_json(group);
            if let Value::Object(line) = &mut line {
                let reached = Reached::of(domain, &by_name, &group.name);
                line.insert("id".into(), json!(id(&by_name, &group.name)));
                line.insert("reached".into(), reached.map_or(Value::Null, Reached::json));
            }
            context.print_json(&line)?;
        }
        return Ok(Exit::Ok);
    }
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let rows = groups.iter().map(|group| {
        let reached = Reached::of(domain, &by_name, &group.name);
        vec![
            or_dash(id(&by_name, &group.name)),
            group.name.clone(),
            group.style.clone(),
            or_dash(group.leader.clone()),
            members_text(group),
            or_dash(reached.map(Reached::text)),
            grouped(group.executed),
        ]
    });
    let headings = ["ID", "GROUP", "STYLE", "LEADER", "MEMBERS", "REACHED", ">EXECUTED"];
    context.print(&table(&headings, rows.collect()))?;
    Ok(Exit::Ok)
}

/// What runs.
type ByName<'a> = BTreeMap<&'a str, &'a CatalogGroup>;

fn id(running: &ByName<'_>, name: &str) -> Option<String> {
    running.get(name).map(|group| group.id.clone())
}

/// The port for clients, before the nodes' offsets.
#[derive(Clone, Copy)]
enum Reached {
    /// The group's own.
    Own(u64),
    /// That of the domain, under the group's name.
    Shared(Option<u16>),
}

impl Reached {
    fn of(domain: &Domain, running: &ByName<'_>, name: &str) -> Option<Self> {
        let shared = || Self::Shared(domain.gateway.map(|gateway| gateway.listen));
        if let Some(running) = running.get(name) {
            let (name, text) = (running.name.clone(), running.definition.clone());
            let entries = Definition { name, text }.entries();
            let listen = entries.iter().find(|(key, _)| key == "listen");
            let own = listen.and_then(|(_, port)| port.parse().ok());
            return Some(own.map_or_else(shared, Self::Own));
        }
        let listen = domain.group(name)?.listen;
        Some(listen.map_or_else(shared, |port| Self::Own(port.into())))
    }

    fn text(self) -> String {
        match self {
            Self::Own(port) => format!("port {port}"),
            Self::Shared(Some(port)) => format!("gateway {port}"),
            Self::Shared(None) => "gateway".to_owned(),
        }
    }

    fn json(self) -> Value {
        match self {
            Self::Own(port) => json!({ "port": port, "shared": false }),
            Self::Shared(port) => json!({ "port": port, "shared": true }),
        }
    }
}

/// The most that any member has executed since its node was started.
fn executed(answers: &[Answer], name: &str) -> u64 {
    let said = answers.iter().filter_map(|answer| answer.status.as_ref().ok());
    let groups = said.flat_map(|status| &status.groups).filter(|group| group.name == name);
    groups.map(|group| group.executed).max().unwrap_or(0)
}
