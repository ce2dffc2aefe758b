//! Channels in the domain's naming service, as `Events/NAME`, if it has one.
//!
//! Invariants: the member that leads binds; what was bound under a channel's name before is
//! replaced.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use quorba_idl::cos_naming::naming_context::BindNewContextError;
use quorba_idl::cos_naming::{NameComponent, NamingContextExtStub};
use quorba_idl::quorba::LeadersStub;
use quorba_orb::{Client, ClientOptions, Reference, Repeat};

use super::{Core, Surroundings};

/// How often is looked for channels that are new, or gone.
const LOOK: Duration = Duration::from_millis(500);
/// How long the node may take to say where the naming service is.
const ASK_WITHIN: Duration = Duration::from_secs(5);
/// The name of the naming service's group.
const NAMING: &str = quorba_config::Service::Naming.as_str();
/// The context.
const CONTEXT: &str = "Events";

fn component(id: &str) -> NameComponent {
    NameComponent { id: id.to_owned(), kind: String::new() }
}

pub(super) fn start(around: Surroundings, core: &Arc<Core>) {
    let core = Arc::clone(core);
    thread::spawn(move || {
        let mut bound = BTreeSet::new();
        let mut ask = around.ask(ASK_WITHIN);
        loop {
            thread::sleep(LOOK);
            let names: BTreeSet<String> = {
                let service = core.lock();
                if !service.leads() {
                    bound.clear();
                    continue;
                }
                service.names().map(str::to_owned).collect()
            };
            if names == bound {
                continue;
            }
            let gateway = LeadersStub(&mut ask).gateway(&NAMING.to_owned()).unwrap_or_default();
            if let Some(mut naming) = naming(&gateway) {
                register(&core, &mut naming, &names, &mut bound);
            }
        }
    });
}

fn naming(gateway: &str) -> Option<Client> {
    let reference = Reference::parse(&format!("corbaloc:iiop:1.2@{gateway}/NameService")).ok()?;
    let (call_timeout, repeat) = (Some(Duration::from_secs(10)), Some(Repeat::new("events", 0)));
    Some(Client::new(
        &reference,
        ClientOptions { call_timeout, repeat, ..ClientOptions::default() },
    ))
}

fn register(
    core: &Core,
    naming: &mut Client,
    names: &BTreeSet<String>,
    bound: &mut BTreeSet<String>,
) {
    let mut naming = NamingContextExtStub(naming);
    match naming.bind_new_context(&vec![component(CONTEXT)]) {
        Ok(_) | Err(BindNewContextError::AlreadyBound(_)) => {}
        Err(_) => return,
    }
    for name in bound.difference(names).cloned().collect::<Vec<_>>() {
        // Somebody else may have taken it away.
        let _ = naming.unbind(&vec![component(CONTEXT), component(&name)]);
        bound.remove(&name);
    }
    for name in names {
        let channel = core.lock().channel(name).map(quorba_events::Channel::cos_reference);
        let Some(channel) = channel.filter(|_| !bound.contains(name)) else { continue };
        if naming.rebind(&vec![component(CONTEXT), component(name)], &channel).is_ok() {
            bound.insert(name.clone());
        }
    }
}
