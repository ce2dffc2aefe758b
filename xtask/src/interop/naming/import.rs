//! A site that has another ORB's name server moves to the domain's: all that is bound there is
//! imported, and the old server, bound as a context, goes on to be reached by names through the new
//! one.
//!
//! Invariant: an import that is done again changes nothing.

use super::other::{Maker, NameServer};
use super::{CONTEXTS, Life, OBJECTS, target};
use crate::interop::Context;

/// What the old server is called in the new one.
const LINK: &str = "old";

/// The tree of `life` is filled from that name server.
pub(super) fn run(mut life: Life, context: &Context, maker: Maker) -> Result<String, String> {
    let server = NameServer::start(context, maker)?;
    let old = server.reference().to_owned();
    for name in CONTEXTS {
        life.operator.ok(&["naming", "mkctx", name, "--at", &old])?;
        life.expected.insert(format!("context {name}"));
    }
    for name in OBJECTS {
        life.operator.ok(&["naming", "bind", name, &target(name), "--at", &old])?;
        life.expected.insert(format!("object {name}"));
    }
    let import = ["-o", "json", "naming", "import", "--from", &old];
    let counts = |text: &str| -> Result<[u64; 3], String> {
        let told: serde_json::Value =
            serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))?;
        let count = |key: &str| told[key].as_u64().unwrap_or(u64::MAX);
        Ok([count("objects"), count("contexts"), count("conflicts")])
    };
    let (objects, contexts) = (OBJECTS.len() as u64, CONTEXTS.len() as u64);
    let first = counts(&life.operator.ok(&import)?)?;
    if first != [objects, contexts, 0] {
        return Err(format!("objects, contexts and conflicts of the first import: {first:?}"));
    }
    let again = counts(&life.operator.ok(&import)?)?;
    if again != [0; 3] {
        return Err(format!("objects, contexts and conflicts of the second import: {again:?}"));
    }
    life.check()?;

    life.operator.ok(&["naming", "bind", LINK, &old, "--context"])?;
    let name = format!("{LINK}/{}", OBJECTS[OBJECTS.len() - 1]);
    let here = life.operator.ok(&["naming", "resolve", OBJECTS[OBJECTS.len() - 1]])?;
    let there = life.operator.ok(&["naming", "resolve", &name])?;
    if here != there {
        return Err(format!("{name} is {there}, and was imported as {here}"));
    }
    let (names, looks) = (life.expected.len(), life.looks);
    drop(server);
    life.fleet.end()?;
    Ok(format!("{names} bindings imported, {looks} times listed by {:?}", life.clients))
}
