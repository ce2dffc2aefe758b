//! `[outside.NAME]`: servers that are not in the domain, which groups call.
//!
//! What it is not: it looks no host up; the nodes do, when they start.

use std::time::Duration;

use quorba_giop::corbaloc;
use quorba_giop::ior::{Endpoint, Ior};

use super::group::GroupDraft;
use crate::codes::Code;
use crate::domain::{DOMAIN_OBJECT, DOMAIN_OBJECT_KEY, Engine, Outside};
use crate::problem::Problem;
use crate::walk::{At, Section, Span};
use quorba_base::policy::OnDoubt;

/// The most servers outside.
const OUTSIDE_MAX: usize = 256;
/// What the node's own object may reply, in bytes.
const DOMAIN_REPLY_BYTES: usize = 256 << 10;
/// What a reply may have, in bytes: of all that are kept, 4 MiB, this is a part.
const REPLY_BYTES: std::ops::RangeInclusive<u64> = 1_024..=1 << 20;

/// Every server outside, in the order of the file, and where it stands.
pub(super) fn read_all(root: &Section<'_>, engine: Engine) -> Vec<(Outside, Span)> {
    let mut servers = Vec::new();
    for (name, section) in root.named("outside") {
        if servers.len() == OUTSIDE_MAX {
            let message = format!("the domain has more than {OUTSIDE_MAX} servers outside");
            root.problems.add(Problem::at(Code::TooMany, name.span.clone(), message));
        }
        if engine == Engine::Corosync {
            let message = format!("{} does not go with the engine \"corosync\"", section.title);
            let problem = Problem::at(Code::NotInThisVersion, name.span.clone(), message);
            let help = "what is known of calls to the outside has to fit into one message, and \
                        Corosync carries too little; use `engine = \"totem\"`";
            root.problems.add(problem.help(help));
        }
        servers.push((read_one(name.value, &section), name.span));
        section.finish();
    }
    servers
}

/// The node's own object for services. Where it is, each node knows when it has begun.
pub(super) fn domain_object() -> Outside {
    let at = Endpoint {
        host: "127.0.0.1".to_owned(),
        port: 1,
        object_key: DOMAIN_OBJECT_KEY.into(),
        version: quorba_giop::Version::V1_2,
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

/// Reports servers that no group calls.
pub(super) fn check(root: &Section<'_>, servers: &[(Outside, Span)], groups: &[GroupDraft]) {
    for (server, span) in servers {
        if groups.iter().any(|draft| draft.group.outside.contains(&server.name)) {
            continue;
        }
        let name = &server.name;
        let message = format!("[outside.{name}] has no effect: no group calls it");
        let problem = Problem::at(Code::SilentSetting, span.clone(), message);
        root.problems.add(problem.help(format!("a group that calls it: calls = [\"{name}\"]")));
    }
}

fn read_one(name: &str, section: &Section<'_>) -> Outside {
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
