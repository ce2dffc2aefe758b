//! From a request to its reply: the objects behind a server, and the call of one of them.
//!
//! What it is not: concurrent. Calls are made one after the other.
//!
//! Invariants: what every object answers alike (`_is_a` and its like) is answered here; a reply has
//! no service contexts; a oneway has none.

use alloc::string::String;
use alloc::vec::Vec;

use quorba_giop::cdr::Reader;
use quorba_giop::{
    CodeSets, Completion, Endian, ExceptionKind, LocateRequest, LocateStatus, Message, ReplyStatus,
    Request, SystemException, Target, build, context,
};

use crate::codec::{Cdr, Coding, Decoder, Encoder};
use crate::exception::{UserException, marshal, raise_system};
use crate::object::Object;

/// The interface that every object has.
const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";
/// Minor code of INTF_REPOS: there is no interface repository (CORBA §4.12.4).
const NO_REPOSITORY: u32 = 0x4f4d_0001;

/// An interface of IDL: its repository ids, its own first and then those of what it inherits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface(pub &'static [&'static str]);

impl Interface {
    /// Its repository id.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.0.first().copied().unwrap_or(OBJECT_ID)
    }

    /// Whether it is, or inherits, the interface `id`.
    #[must_use]
    pub fn is_a(&self, id: &str) -> bool {
        id == OBJECT_ID || self.0.contains(&id)
    }
}

/// Objects, as many as there are keys: none of them needs to be registered, nor to exist
/// before it is called.
pub trait Objects {
    /// The most derived interface of the object with this key; none if there is none.
    fn interface(&self, key: &[u8]) -> Option<Interface>;

    /// Executes a call of that object. A skeleton does it.
    ///
    /// # Errors
    /// The system exception to raise.
    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException>;
}

/// A call that is being executed.
pub struct Call<'a> {
    request: &'a Request<'a>,
    operation: &'a str,
    arguments: Decoder<'a>,
    results: Encoder,
    raised: bool,
}

impl<'a> Call<'a> {
    /// Which operation.
    #[must_use]
    pub const fn operation(&self) -> &'a str {
        self.operation
    }

    /// The data of the request's service context of that id.
    #[must_use]
    pub fn context(&self, id: u32) -> Option<&[u8]> {
        self.request.contexts().find(|(found, _)| *found == id).map(|(_, data)| data)
    }

    /// The next argument.
    ///
    /// # Errors
    /// MARSHAL if it is not there.
    pub fn argument<T: Cdr>(&mut self) -> Result<T, SystemException> {
        self.arguments.read().map_err(|_| marshal(Completion::No))
    }

    /// Writes the next result: the return value, then what is `inout` and `out`.
    pub fn result<T: Cdr>(&mut self, value: &T) {
        self.results.write(value);
    }

    /// Raises a user exception instead of results.
    ///
    /// # Errors
    /// None; skeletons return what this does.
    pub fn raise<E: UserException>(&mut self, exception: &E) -> Result<(), SystemException> {
        self.results = Encoder::new(self.results.endian(), self.results.coding());
        self.raised = true;
        self.results.write(&String::from(E::ID));
        self.results.write(exception);
        Ok(())
    }

    /// The exception for an operation that the interface does not have.
    #[must_use]
    pub const fn unknown_operation(&self) -> SystemException {
        raise_system(ExceptionKind::BadOperation)
    }
}

/// Answers a request by calling the object that it names; nothing if no reply is wanted.
///
/// `coding` is the connection's: what a client said about code sets holds from its first request
/// with them on.
pub fn answer(
    message: &Message,
    request: &Request<'_>,
    objects: &mut dyn Objects,
    coding: &mut Option<CodeSets>,
) -> Option<Message> {
    let outcome = execute(message, request, objects, coding);
    if !request.response_expected() {
        return None;
    }
    let (version, endian, id) = (message.version(), message.endian(), request.request_id());
    Some(match outcome {
        Err(exception) => build::system_exception(version, endian, id, &exception),
        Ok((octets, status)) => {
            build::reply(version, endian, id, status, |out| out.write_raw(&octets))
        }
    })
}

/// Answers whether an object is here.
pub fn answer_locate(
    message: &Message,
    request: &LocateRequest<'_>,
    objects: &dyn Objects,
) -> Message {
    let status = match request.target() {
        Target::Key(key) if objects.interface(key).is_none() => LocateStatus::UnknownObject,
        // A target by profile or reference is believed: if the object is not here, the request
        // that follows says so.
        Target::Key(_) | Target::Profile { .. } | Target::Reference { .. } => {
            LocateStatus::ObjectHere
        }
    };
    build::locate_reply(message.version(), message.endian(), request.request_id(), status)
}

/// Takes to the code sets that a request tells, if it does. They hold for its connection.
///
/// # Errors
/// MARSHAL if it cannot be read.
pub fn hear_code_sets(
    request: &Request<'_>,
    code_sets: &mut Option<CodeSets>,
) -> Result<(), SystemException> {
    let data = request.contexts().find(|(id, _)| *id == context::CODE_SETS);
    if let Some((_, data)) = data {
        *code_sets = Some(CodeSets::decode(data).map_err(|_| marshal(Completion::No))?);
    }
    Ok(())
}

fn execute(
    message: &Message,
    request: &Request<'_>,
    objects: &mut dyn Objects,
    coding: &mut Option<CodeSets>,
) -> Result<(Vec<u8>, ReplyStatus), SystemException> {
    hear_code_sets(request, coding)?;
    let version = message.version();
    let coding = coding.map_or(Coding::plain(version), |sets| Coding::agreed(version, sets));
    let bad_operation = |_| raise_system(ExceptionKind::BadOperation);
    let operation = core::str::from_utf8(request.operation()).map_err(bad_operation)?;
    let endian: Endian = message.endian();
    let arguments = Reader::at(message.bytes(), request.body_offset(), endian);
    let mut call = Call {
        request,
        operation,
        arguments: Decoder::new(arguments, coding),
        results: Encoder::new(endian, coding),
        raised: false,
    };
    let key = request.object_key();
    match key.and_then(|key| Some((key, objects.interface(key)?))) {
        Some((key, interface)) => {
            if !of_every_object(&mut call, interface)? {
                objects.dispatch(key, &mut call)?;
            }
        }
        None if operation == "_non_existent" => call.result(&true),
        None => return Err(raise_system(ExceptionKind::ObjectNotExist)),
    }
    let status = if call.raised { ReplyStatus::UserException } else { ReplyStatus::NoException };
    Ok((call.results.finish(Completion::Yes)?, status))
}

/// Executes what every object does alike (CORBA §4.3); whether the call was that.
fn of_every_object(call: &mut Call<'_>, interface: Interface) -> Result<bool, SystemException> {
    match call.operation {
        "_is_a" => {
            let id: String = call.argument()?;
            call.result(&interface.is_a(&id));
        }
        "_non_existent" | "_not_existent" => call.result(&false),
        "_repository_id" => call.result(&String::from(interface.id())),
        // Objects here are no components.
        "_component" => call.result(&Object::nil()),
        "_interface" => {
            let kind = ExceptionKind::IntfRepos;
            let completed = Completion::No;
            return Err(SystemException { kind, minor: NO_REPOSITORY, completed });
        }
        _ => return Ok(false),
    }
    Ok(true)
}
