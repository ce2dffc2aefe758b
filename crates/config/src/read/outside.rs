//! `[outside.NAME]`: servers that are not in the domain, which groups call.
//!
//! What it is not: it looks no host up; the nodes do. Invariant: what one node reads, all read: it
//! depends on the text alone.

use std::time::Duration;

use quorba_giop::corbaloc;
use quorba_giop::ior::{Endpoint, Ior};

use super::group::GroupDraft;
use super::scope::Known;
use crate::codes::Code;
use crate::definition::{Definition, Kind};
use crate::domain::{DOMAIN_OBJECT, DOMAIN_OBJECT_KEY, Engine, Outside};
use crate::problem::Problem;
use crate::walk::{At, Problems, Section, Span};
use quorba_base::policy::OnDoubt;

/// The most servers outside.
const OUTSIDE_MAX: usize = 256;
/// What the node's own object may reply, in bytes.
const DOMAIN_REPLY_BYTES: usize = 256 << 10;
/// What a reply may have, in bytes: of all that are kept, 4 MiB, this is a part.
const REPLY_BYTES: std::ops::RangeInclusive<u64> = 1_024..=1 << 20;

/// One, as far as it can be read by itself.
pub(super) struct OutsideDraft {
    pub(super) server: Outside,
    pub(super) definition: Definition,
    span: Span,
}

/// Every server outside, in the order of the file.
pub(super) fn read_all(root: &Section<'_>, engine: Engine) -> Vec<OutsideDraft> {
    let mut servers = Vec::new();
    for (name, section) in root.named("outside") {
        if servers.len() == OUTSIDE_MAX {
            root.problems.add(too_many(name.span.clone()));
        }
        servers.push(read_one(&name, &section, engine));
        section.finish();
    }
    servers
}

/// There are too many.
pub(super) fn too_many(span: Span) -> Problem {
    let message = format!("the domain has more than {OUTSIDE_MAX} servers outside");
    Problem::at(Code::TooMany, span, message)
}

/// A name stands for one thing.
pub(super) fn is_both(name: &str, span: Span) -> Problem {
    let message = format!("{name:?} is a group and a server outside");
    Problem::at(Code::Conflict, span, message).help("give one of them another name")
}

/// What one and the others that there are cannot have both.
pub(super) fn check_one(problems: &Problems, name: &At<&str>, known: &dyn Known) {
    if known.is_stateless(name.value).is_some() {
        problems.add(is_both(name.value, name.span.clone()));
    }
    if !known.is_outside(name.value) && known.outside_count() >= OUTSIDE_MAX {
        problems.add(too_many(name.span.clone()));
    }
}

/// The node's own object for services. Where it is, each node knows when it has begun.
pub(super) fn domain_object() -> Outside {
    let at = Endpoint {
        host: "127.0.0.1".to_owned(),
        port: 1,
        object_key: DOMAIN_OBJECT_KEY.into(),
        version: quorba_giop::Version::V1_2,
        heartbeat_enabled: false,
    };
    Outside {
        name: DOMAIN_OBJECT.to_owned(),
        endpoints: vec![at],
        connect: Duration::from_secs(2),
        reply: Duration::from_secs(60),
        reply_bytes: DOMAIN_REPLY_BYTES,
        // It does nothing twice under one identity.
        on_doubt: OnDoubt::Repeat,
    }
}

/// Reports servers that no group calls, or that are called as a group is.
pub(super) fn check(root: &Section<'_>, servers: &[OutsideDraft], groups: &[GroupDraft]) {
    for OutsideDraft { server: Outside { name, .. }, span, .. } in servers {
        if groups.iter().any(|draft| draft.group.name == *name) {
            root.problems.add(is_both(name, span.clone()));
        }
        if groups.iter().any(|draft| draft.group.calls.contains(name)) {
            continue;
        }
        let message = format!("[outside.{name}] has no effect: no group calls it");
        let problem = Problem::at(Code::SilentSetting, span.clone(), message);
        root.problems.add(problem.help(format!("a group that calls it: calls = [\"{name}\"]")));
    }
}

/// One table, by itself.
pub(super) fn read_one(name: &At<&str>, section: &Section<'_>, engine: Engine) -> OutsideDraft {
    if engine == Engine::Corosync {
        let message = format!("{} does not go with the engine \"corosync\"", section.title);
        let problem = Problem::at(Code::NotInThisVersion, name.span.clone(), message);
        let help = "what is known of calls to the outside has to fit into one message, and \
                    Corosync carries too little; use `engine = \"totem\"`";
        section.problems.add(problem.help(help));
    }
    OutsideDraft {
        server: read_server(name.value, section),
        definition: Definition::of(Kind::Outside, name.value, section.table()),
        span: name.span.clone(),
    }
}

fn read_server(name: &str, section: &Section<'_>) -> Outside {
    let hint = "where the server is, such as reference = \"corbaloc::10.0.0.9:5000/bank\"";
    let text = section.required_text("reference", hint);
    let reference = text.and_then(|at| read_reference(section, &at));
    Outside {
        name: name.to_owned(),
        endpoints: reference.unwrap_or_default(),
        connect: section.millis_or("connect_ms", 10..=600_000, 2_000),
        reply: section.millis_or("reply_ms", 10..=86_400_000, 30_000),
        reply_bytes: section.number_or("reply_bytes", "bytes", REPLY_BYTES, 65_536),
        on_doubt: section.word_or("on_doubt", OnDoubt::WORDS, &[], OnDoubt::Fail),
    }
}

fn read_reference(section: &Section<'_>, text: &At<&str>) -> Option<Vec<Endpoint>> {
    let is_ior = text.value.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("IOR:"));
    let read = if is_ior {
        Ior::parse(text.value).map(|ior| ior.endpoints()).map_err(|error| error.to_string())
    } else {
        let error = |error: corbaloc::CorbalocError| error.to_string();
        corbaloc::parse(text.value).map(|url| url.to_ior().endpoints()).map_err(error)
    };
    let why = match read {
        Ok(endpoints) if !endpoints.is_empty() => return Some(endpoints),
        Ok(_) => "it names no address that is reached over plain IIOP".to_owned(),
        Err(error) => error,
    };
    let message = format!("{}: `reference` cannot be used: {why}", section.title);
    let problem = Problem::at(Code::BadReference, text.span.clone(), message);
    let help = "a corbaloc URL with host, port and object key, or the server's IOR";
    section.problems.add(problem.help(help));
    None
}
