//! Object references as arguments: `IOR:...`, `corbaloc:...`, `corbaname:...`, a file that holds
//! one, or `-`.
//!
//! What it is not: a naming service. One is asked for a `corbaname:` only, and only where the
//! object itself is wanted ([`resolve`]); what a definition says is kept as it stands there
//! ([`parse`]).

use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

use quorba_giop::CodeSets;
use quorba_giop::corbaloc::{self, Corbaloc, EscapedKey, HostPort};
use quorba_giop::ior::{ComponentValue, Endpoint, Ior, Profile};
use quorba_orb::{CallError, ClientOptions, ResolveError};
use serde_json::json;

use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::probe::Place;
use crate::text::system_reason;

/// How long a naming service may take.
const NAMED_WITHIN: Duration = Duration::from_secs(5);
/// More than this is no reference, whatever it is.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// A reference in its one form, whatever it was written as.
#[derive(Clone, Debug)]
pub struct Reference {
    pub ior: Ior,
}

impl Reference {
    /// Every address, each once, in the order in which a client should try them.
    pub fn places(&self) -> Vec<Place> {
        let place = |endpoint: quorba_giop::ior::Endpoint| Place {
            host: endpoint.host,
            port: endpoint.port,
            version: endpoint.version,
            object_key: endpoint.object_key.to_vec(),
        };
        self.ior.endpoints().into_iter().map(place).collect()
    }

    /// The repository id; empty if it has none.
    pub fn type_id(&self) -> String {
        String::from_utf8_lossy(&self.ior.type_id).into_owned()
    }
}

/// The text of the reference that the argument names.
pub fn read_text(argument: &str) -> Result<String, Failure> {
    let unreadable = |error: &io::Error| {
        let what = format!("{argument} cannot be read: {}", system_reason(error));
        Failure::new(codes::FILE, Exit::Failed, what, "give the path of a file with a reference")
    };
    let mut text = String::new();
    if argument == "-" {
        let read = io::stdin().lock().take(TEXT_BYTES_MAX).read_to_string(&mut text);
        read.map_err(|error| unreadable(&error))?;
        return Ok(text.trim().to_owned());
    }
    if is_reference(argument) {
        return Ok(argument.trim().to_owned());
    }
    let file = File::open(argument).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let what = format!("{:?} is neither a reference nor a file", shortened(argument));
            let next = "a reference is IOR:... or corbaloc:iiop:1.2@host:port/key";
            Failure::new(codes::REFERENCE, Exit::Usage, what, next)
        }
        _ => unreadable(&error),
    })?;
    file.take(TEXT_BYTES_MAX).read_to_string(&mut text).map_err(|error| unreadable(&error))?;
    Ok(text.trim().to_owned())
}

/// The reference that the argument names, for commands that need its addresses.
pub fn read(argument: &str) -> Result<Reference, Failure> {
    let text = read_text(argument)?;
    let reference = Reference { ior: resolve(&text)? };
    if reference.ior.endpoints().is_empty() {
        let what = "the reference has no address".to_owned();
        let next = "a nil reference, or one for other protocols than IIOP, cannot be asked";
        return Err(Failure::new(codes::REFERENCE, Exit::Failed, what, next));
    }
    Ok(reference)
}

/// A reference as people read it: the first address and the object key of an IOR; anything else as
/// it stands there.
pub fn readable(value: &str) -> String {
    let text = value.trim_matches('"');
    let ior = Ior::parse(text).ok().filter(|_| text.starts_with("IOR:"));
    let endpoints = ior.as_ref().map(Ior::endpoints).unwrap_or_default();
    match endpoints.first() {
        Some(Endpoint { host, port, object_key, .. }) => {
            format!("{}/{}", HostPort(host, *port), EscapedKey(object_key))
        }
        None => value.to_owned(),
    }
}

/// The object that a reference stands for: a naming service is asked for that of a corbaname.
pub fn resolve(text: &str) -> Result<Ior, Failure> {
    if !is_name(text) {
        return parse(text);
    }
    let options = ClientOptions {
        connect_timeout: NAMED_WITHIN,
        call_timeout: Some(NAMED_WITHIN),
        code_sets: Some(CodeSets::UTF),
        ..ClientOptions::default()
    };
    quorba_orb::resolve(text, options).map_err(|error| {
        let next = match &error {
            ResolveError::Service(CallError::System(_)) => {
                "see whether a naming service runs there: corbaname::host:port#a/b.kind"
            }
            ResolveError::NotFound { .. } => "see what is bound: quorba naming --at HOST:PORT tree",
            _ => "such as corbaname::10.0.0.1:2809,:10.0.0.2:2809#a/b.kind",
        };
        Failure::new(codes::REFERENCE, Exit::Failed, error.to_string(), next)
            .data(json!({ "reference": shortened(text) }))
    })
}

/// Reads a reference; the failure says where it is wrong.
pub fn parse(text: &str) -> Result<Ior, Failure> {
    let malformed = |what: String| {
        let next = "get it again from where it came; perhaps its end was cut off";
        Failure::new(codes::REFERENCE, Exit::Failed, what, next)
            .data(json!({ "reference": shortened(text) }))
    };
    if has_scheme(text, "ior:") {
        return Ior::parse(text).map_err(|error| malformed(error.to_string()));
    }
    if is_reference(text) {
        return parse_corbaloc(text).map(|corbaloc| corbaloc.to_ior());
    }
    Err(malformed(format!("{:?} begins neither with IOR: nor with corbaloc:", shortened(text))))
}

fn parse_corbaloc(text: &str) -> Result<Corbaloc, Failure> {
    corbaloc::parse(text).map_err(|error| {
        let next = "such as corbaloc:iiop:1.2@10.0.0.1:5000,iiop:1.2@10.0.0.2:5000/key";
        Failure::new(codes::REFERENCE, Exit::Failed, error.to_string(), next)
    })
}

/// An object key as people write it: `%41` stands for the octet 0x41.
pub fn parse_key(text: &str) -> Result<Vec<u8>, Failure> {
    // A corbaloc is the notation's home; its address does not matter here.
    let parsed = corbaloc::parse(&format!("corbaloc:rir:/{text}"));
    parsed.map(|corbaloc| corbaloc.object_key).map_err(|error| {
        let what = format!("{text:?} is no object key: {error}");
        let next = "write octets that are no letters or digits as %XX";
        Failure::new(codes::REFERENCE, Exit::Usage, what, next)
    })
}

/// Whether it is meant to be one, right or wrong.
pub fn is_reference(text: &str) -> bool {
    ["ior:", "corbaloc:", "corbaname:"].iter().any(|scheme| has_scheme(text, scheme))
}

/// Whether it is the name of an object in a naming service.
pub fn is_name(text: &str) -> bool {
    has_scheme(text, "corbaname:")
}

fn has_scheme(text: &str, scheme: &str) -> bool {
    let start = text.trim_start().get(..scheme.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

fn shortened(text: &str) -> String {
    const CHARS: usize = 60;
    match text.char_indices().nth(CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// UTF-8 if the server says that it reads code sets; a corbaloc says nothing.
pub fn code_sets(ior: &Ior) -> Option<CodeSets> {
    let of_profile = |profile: &Profile| {
        let Some(Ok(iiop)) = profile.iiop() else { return false };
        let mut values = iiop.components.iter().filter_map(|component| component.value());
        values.any(|value| matches!(value, Ok(ComponentValue::CodeSets(_))))
    };
    ior.profiles.iter().any(of_profile).then_some(CodeSets::UTF)
}
