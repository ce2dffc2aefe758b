//! Channels in the domain's naming service, if it has one: in the context `Events`, under their
//! names, the standard's object without a kind and the others with the kinds of [`KINDS`]; and
//! beside them the object that knows all channels.
//!
//! Invariants: the member that leads binds; what was bound under a channel's name before is
//! replaced; who begins to lead takes away what was bound of channels that are no more, and nothing
//! that refers to something else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use quorba_corba::Object;
use quorba_corba::giop::SystemException;
use quorba_events::{Channel, EventService, channel_of};
use quorba_idl::cos_naming::naming_context::BindNewContextError;
use quorba_idl::cos_naming::{
    Binding, BindingIteratorStub, BindingType, NameComponent, NamingContextExtStub,
    NamingContextStub,
};
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

/// Names that are listed at a time.
const LISTED: u32 = 500;

/// One of a channel's objects.
type ObjectOf = fn(&Channel) -> Object;

/// The kind of a channel's name, and what is bound to it.
const KINDS: [(&str, ObjectOf); 4] = [
    ("", Channel::cos_reference),
    ("rtec", Channel::rtec_reference),
    ("ft", Channel::facade_reference),
    ("numbered", Channel::numbered_reference),
];

fn component(id: &str, kind: &str) -> NameComponent {
    NameComponent { id: id.to_owned(), kind: kind.to_owned() }
}

/// What the object that knows all channels is bound to, in the same context.
const SERVICE: (&str, &str) = ("EventService", "channels");

/// What this member has bound since it leads.
#[derive(Default)]
struct Bound {
    /// The object that knows all channels.
    has_service: bool,
    names: BTreeSet<String>,
    /// What others had bound was looked at.
    is_compared: bool,
}

pub(super) fn start(around: Surroundings, core: &Arc<Core>) {
    let core = Arc::clone(core);
    thread::spawn(move || {
        let mut bound = Bound::default();
        let mut ask = around.ask(ASK_WITHIN);
        loop {
            thread::sleep(LOOK);
            let names: BTreeSet<String> = {
                let service = core.lock();
                if !service.leads() {
                    bound = Bound::default();
                    continue;
                }
                if !service.is_configured() {
                    // Its channels are not there yet, but their names may be.
                    continue;
                }
                service.names().map(str::to_owned).collect()
            };
            if bound.is_compared && bound.has_service && names == bound.names {
                continue;
            }
            let gateway = LeadersStub(&mut ask).gateway(&NAMING.to_owned()).unwrap_or_default();
            if let Some(mut naming) = naming(&gateway) {
                register(&core, &mut naming, &names, &mut bound);
            }
        }
    });
}

fn options() -> ClientOptions {
    let (call_timeout, repeat) = (Some(Duration::from_secs(10)), Some(Repeat::new("events", 0)));
    ClientOptions { call_timeout, repeat, ..ClientOptions::default() }
}

fn naming(gateway: &str) -> Option<Client> {
    let reference = Reference::parse(&format!("corbaloc:iiop:1.2@{gateway}/NameService")).ok()?;
    Some(Client::new(&reference, options()))
}

fn register(core: &Core, naming: &mut Client, names: &BTreeSet<String>, bound: &mut Bound) {
    let mut root = NamingContextExtStub(naming);
    match root.bind_new_context(&vec![component(CONTEXT, "")]) {
        Ok(_) | Err(BindNewContextError::AlreadyBound(_)) => {}
        Err(_) => return,
    }
    if !bound.has_service {
        let object = core.lock().reference();
        let (id, kind) = SERVICE;
        let path = vec![component(CONTEXT, ""), component(id, kind)];
        bound.has_service = root.rebind(&path, &object).is_ok();
    }
    for name in bound.names.difference(names).cloned().collect::<Vec<_>>() {
        for (kind, _) in KINDS {
            // Somebody else may have taken it away.
            let _ = root.unbind(&vec![component(CONTEXT, ""), component(&name, kind)]);
        }
        bound.names.remove(&name);
    }
    for name in names.difference(&bound.names).cloned().collect::<Vec<_>>() {
        let objects = core.lock().channel(&name).map(|one| KINDS.map(|(kind, of)| (kind, of(one))));
        let Some(objects) = objects else { continue };
        let all = objects.iter().all(|(kind, object)| {
            let path = vec![component(CONTEXT, ""), component(&name, kind)];
            root.rebind(&path, object).is_ok()
        });
        if all {
            bound.names.insert(name);
        }
    }
    if !bound.is_compared {
        bound.is_compared = take_away(core, naming).is_some();
    }
}

/// Takes away what an earlier leader has bound of channels that are no more; none: not all of it.
fn take_away(core: &Core, naming: &mut Client) -> Option<()> {
    let mut root = NamingContextExtStub(naming);
    let context = root.resolve(&vec![component(CONTEXT, "")]).ok()?;
    let mut context = Client::new(&Reference::from_ior(&context.0).ok()?, options());
    for binding in list(&mut context).ok()? {
        let [name] = &binding.binding_name[..] else { continue };
        let is_ours = KINDS.iter().any(|(kind, _)| *kind == name.kind);
        let is_there = |service: &EventService| service.channel(&name.id).is_some();
        if binding.binding_type != BindingType::Nobject || !is_ours || is_there(&core.lock()) {
            continue;
        }
        let path = vec![name.clone()];
        let mut stub = NamingContextStub(&mut context);
        // What is gone meanwhile need not be taken away.
        let Ok(object) = stub.resolve(&path) else { continue };
        let key = core.lock().key_of(&object);
        if key.is_some_and(|key| channel_of(&key) == Some(name.id.as_str())) {
            let _ = stub.unbind(&path);
        }
    }
    Some(())
}

/// All that a context has.
fn list(context: &mut Client) -> Result<Vec<Binding>, SystemException> {
    let (mut all, iterator) = NamingContextStub(context).list(&LISTED)?;
    let Ok(reference) = Reference::from_ior(&iterator.0) else { return Ok(all) };
    let mut iterator = Client::new(&reference, options());
    let mut iterator = BindingIteratorStub(&mut iterator);
    loop {
        let (has_more, more) = iterator.next_n(&LISTED)?;
        all.extend(more);
        if !has_more {
            break;
        }
    }
    // One that is gone by itself need not be ended.
    let _ended = iterator.destroy();
    Ok(all)
}
