//! A naming service as a client sees it: contexts by reference, names, bindings.
//!
//! What it is not: a service of our own only; omniNames, JacORB's and TAO's answer the same calls.
//!
//! Invariants: every call ends within the command's deadline; a call is repeated only where the
//! gateway knows that it is the same (FT_REQUEST); a name that goes on in another naming service is
//! followed a limited number of times.

use quorba_corba::giop::corbaloc;
use quorba_corba::{Object, raise_system};
use quorba_idl::cos_naming::naming_context::NotFoundReason;
use quorba_idl::cos_naming::{
    Binding, BindingIteratorStub, Name, NameComponent, NamingContextStub,
};
use quorba_orb::{Client, ClientOptions, Reference, Repeat};

use super::refusal::Refusal;
use crate::context::Deadline;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::reference;

/// So many bindings are asked for in one call.
const LISTED: u32 = 1000;
/// A name is followed through so many naming services.
const HOPS_MAX: usize = 16;
/// The key of a naming service's root where a corbaloc names none.
const ROOT_KEY: &[u8] = b"NameService";

/// A name for people.
pub(super) fn text(name: &Name) -> String {
    quorba_naming::to_string(name).unwrap_or_default()
}

/// A name as it was typed.
pub(super) fn parse(text: &str) -> Result<Name, Failure> {
    quorba_naming::to_name(text).map_err(|_| {
        let what = format!("{text:?} is no name");
        let next = "a name is a/b.kind: / between components, . before a kind, \\ before a / or . \
                    or \\ of its own";
        Failure::new(codes::USAGE, Exit::Usage, what, next)
    })
}

/// The root context that an argument names: a reference, a file with one, or host:port.
pub(super) fn root_of(argument: &str) -> Result<Object, Failure> {
    let is_place = !reference::is_reference(argument)
        && !argument.contains('/')
        && argument.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if is_place {
        return reference::parse(&format!("corbaloc:iiop:1.2@{argument}/NameService")).map(Object);
    }
    let text = reference::read_text(argument)?;
    if let Ok(mut place) = corbaloc::parse(&text)
        && place.object_key.is_empty()
    {
        place.object_key = ROOT_KEY.to_vec();
        return Ok(Object(place.to_ior()));
    }
    reference::read(&text).map(|read| Object(read.ior))
}

/// One server, through one connection.
struct Server {
    addresses: Vec<(String, u16)>,
    client: Client,
}

/// Naming services, beginning at the root context of one.
pub(super) struct Names {
    root: Object,
    /// How messages call it.
    place: String,
    deadline: Deadline,
    servers: Vec<Server>,
    /// The addresses of its contexts, as it says them itself.
    home: Option<Vec<(String, u16)>>,
    repeats: bool,
}

/// The addresses of a reference.
fn addresses(object: &Object) -> Vec<(String, u16)> {
    object.0.endpoints().into_iter().map(|one| (one.host, one.port)).collect()
}

impl Names {
    /// Those whose root is `root`. `repeats`: its gateways know a call again that is repeated.
    pub(super) fn new(root: Object, deadline: Deadline, repeats: bool) -> Result<Self, Failure> {
        let first = addresses(&root).into_iter().next();
        let place = first.map_or_else(String::new, |(host, port)| format!("{host}:{port}"));
        let servers = Vec::new();
        let mut names = Self { root: root.clone(), place, deadline, servers, home: None, repeats };
        names.add(&root, repeats).map_err(|error| names.failure(error, &Name::new()))?;
        Ok(names)
    }

    pub(super) fn root(&self) -> Object {
        self.root.clone()
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn failure(&self, refusal: Refusal, name: &Name) -> Failure {
        refusal.failure(name, &self.place)
    }

    /// Whether a context is one of the naming service that the root is of. That one may be called
    /// at another address than it says itself, such as localhost; a new context, which goes again
    /// at once, shows what it says.
    pub(super) fn is_own(&mut self, context: &Object) -> bool {
        let home = match self.home.take() {
            Some(home) => home,
            None => self.find_home(),
        };
        let is_own = addresses(context).iter().any(|address| home.contains(address));
        self.home = Some(home);
        is_own
    }

    fn find_home(&mut self) -> Vec<(String, u16)> {
        let root = self.root();
        let mut home = addresses(&root);
        // Ours says what the domain file says.
        if self.repeats {
            return home;
        }
        let made = self
            .client(&root)
            .and_then(|client| NamingContextStub(client).new_context().map_err(Refusal::from));
        if let Ok(made) = made {
            home.extend(addresses(&made));
            if let Ok(client) = self.client(&made) {
                // One that stays is bound nowhere.
                let _gone = NamingContextStub(client).destroy();
            }
        }
        home
    }

    /// Whether a name is bound to a context. Nobody but the naming service is asked.
    pub(super) fn is_context(&mut self, context: &Object, name: &Name) -> Result<bool, Refusal> {
        let mut below = name.clone();
        // Whether it is there does not matter.
        below.push(NameComponent { id: "?".to_owned(), kind: "?".to_owned() });
        match self.call(context, &below, |stub, name| stub.resolve(name)) {
            Err(Refusal::NotFound(NotFoundReason::NotContext, _)) => Ok(false),
            Err(Refusal::NotFound(NotFoundReason::MissingNode, rest)) if rest.len() <= 1 => {
                Ok(true)
            }
            Err(refusal) => Err(refusal),
            Ok(_) => Ok(true),
        }
    }

    fn add(&mut self, object: &Object, repeats: bool) -> Result<usize, Refusal> {
        let unusable = |_| {
            let kind = quorba_giop::ExceptionKind::InvObjref;
            Refusal::System(raise_system(kind))
        };
        let reference = Reference::from_ior(&object.0).map_err(unusable)?;
        let options = ClientOptions {
            repeat: repeats.then(|| Repeat::new("naming", 0)),
            code_sets: reference::code_sets(&object.0),
            ..ClientOptions::default()
        };
        let client = Client::new(&reference, options);
        self.servers.push(Server { addresses: addresses(object), client });
        Ok(self.servers.len() - 1)
    }

    /// A client that calls the object.
    fn client(&mut self, object: &Object) -> Result<&mut Client, Refusal> {
        let wanted = addresses(object);
        let known = |server: &Server| server.addresses.iter().any(|one| wanted.contains(one));
        let at = match self.servers.iter().position(known) {
            Some(at) => at,
            None => self.add(object, false)?,
        };
        let client = &mut self.servers[at].client;
        if let Ok(reference) = Reference::from_ior(&object.0) {
            client.retarget(&reference);
        }
        client.limit(Some(self.deadline.left()));
        Ok(client)
    }

    /// Calls a context, and goes on in another naming service where the name does.
    pub(super) fn call<R, E: Into<Refusal>>(
        &mut self,
        context: &Object,
        name: &Name,
        call: impl Fn(&mut NamingContextStub<'_>, &Name) -> Result<R, E>,
    ) -> Result<R, Refusal> {
        let (mut context, mut name) = (context.clone(), name.clone());
        let mut hops = 0;
        loop {
            let client = self.client(&context)?;
            match call(&mut NamingContextStub(client), &name).map_err(Into::into) {
                Err(Refusal::CannotProceed(next, rest)) if hops < HOPS_MAX && !next.is_nil() => {
                    hops += 1;
                    (context, name) = (next, rest);
                }
                Ok(result) => return Ok(result),
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// What a name is bound to; the context itself for the name of no components.
    pub(super) fn resolve(&mut self, context: &Object, name: &Name) -> Result<Object, Refusal> {
        if name.is_empty() {
            return Ok(context.clone());
        }
        self.call(context, name, |stub, name| stub.resolve(name))
    }

    /// Every binding of a context, in the order in which the service gives them.
    pub(super) fn list(&mut self, context: &Object) -> Result<Vec<Binding>, Refusal> {
        let (mut all, iterator) = NamingContextStub(self.client(context)?).list(&LISTED)?;
        if iterator.is_nil() {
            return Ok(all);
        }
        loop {
            let (has_more, more) = BindingIteratorStub(self.client(&iterator)?).next_n(&LISTED)?;
            all.extend(more);
            if !has_more {
                break;
            }
        }
        // One that is gone by itself need not be ended.
        let _ended = BindingIteratorStub(self.client(&iterator)?).destroy();
        Ok(all)
    }
}
