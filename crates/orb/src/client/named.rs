//! References as people write them, and the objects that they stand for: a `corbaname:` is asked
//! for at its naming service.
//!
//! What it is not: a client of naming services; it makes the one call `resolve_str` of
//! `CosNaming::NamingContextExt`. Invariant: what is no `corbaname:` needs no call.

use std::fmt;

use quorba_giop::corbaloc::{self, Address, Corbaname};
use quorba_giop::ior::Ior;

use super::{CallError, Client, ClientOptions, Reference, ReferenceError};

/// The exception of a name that is not bound.
const NOT_FOUND: &str = "IDL:omg.org/CosNaming/NamingContext/NotFound:1.0";
/// The exception of a name that is none.
const INVALID_NAME: &str = "IDL:omg.org/CosNaming/NamingContext/InvalidName:1.0";

/// Why a text stands for no object.
#[derive(Clone, Debug)]
pub enum ResolveError {
    /// It is no reference: the fault of whoever wrote it.
    Text(ReferenceError),
    /// It begins with `rir:`, which this ORB does not know.
    InitialReference,
    /// The naming service has no such name.
    NotFound {
        /// The name.
        name: String,
    },
    /// The naming service says that this is no name.
    InvalidName {
        /// The text.
        name: String,
    },
    /// The naming service could not be asked, or has answered something else: another try may help
    /// if the exception is TRANSIENT or COMM_FAILURE.
    Service(CallError),
    /// What is bound there is no reference.
    Bound(ReferenceError),
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(error) => write!(f, "{error}"),
            Self::InitialReference => f.write_str("rir: has no address; name the naming service"),
            Self::NotFound { name } => write!(f, "the naming service has no {name:?}"),
            Self::InvalidName { name } => {
                write!(f, "the naming service takes {name:?} for no name")
            }
            Self::Service(error) => write!(f, "the naming service cannot be asked: {error}"),
            Self::Bound(error) => write!(f, "what is bound to the name is no reference: {error}"),
        }
    }
}

impl std::error::Error for ResolveError {}

impl From<ReferenceError> for ResolveError {
    fn from(error: ReferenceError) -> Self {
        Self::Text(error)
    }
}

/// The object that `text` stands for: `IOR:`, `corbaloc:`, or `corbaname:`, whose naming service is
/// called with these options. It may be nil.
///
/// # Errors
/// [`ResolveError`].
pub fn resolve(text: &str, options: ClientOptions) -> Result<Ior, ResolveError> {
    let text = text.trim();
    let begins =
        |with: &str| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    if begins("IOR:") {
        return Ok(Ior::parse(text).map_err(ReferenceError::Ior)?);
    }
    if begins("corbaloc:") {
        return Ok(corbaloc::parse(text).map_err(ReferenceError::Corbaloc)?.to_ior());
    }
    if !begins("corbaname:") {
        return Err(ReferenceError::Unknown.into());
    }
    let Corbaname { context, name } =
        corbaloc::parse_name(text).map_err(ReferenceError::Corbaloc)?;
    if context.addresses.contains(&Address::InitialReferences) {
        return Err(ResolveError::InitialReference);
    }
    if name.is_empty() {
        return Ok(context.to_ior());
    }
    let mut client = Client::new(&Reference::from_ior(&context.to_ior())?, options);
    match client.call("resolve_str", |out| out.write_string(name.as_bytes())) {
        Ok(answer) => {
            let bound = Ior::read(&mut answer.results());
            bound.map_err(|error| ResolveError::Bound(ReferenceError::Message(error)))
        }
        Err(CallError::User(raised)) if raised.repository_id() == NOT_FOUND => {
            Err(ResolveError::NotFound { name })
        }
        Err(CallError::User(raised)) if raised.repository_id() == INVALID_NAME => {
            Err(ResolveError::InvalidName { name })
        }
        Err(error) => Err(ResolveError::Service(error)),
    }
}

impl Reference {
    /// The object that `text` stands for, if it can be called; see [`resolve`].
    ///
    /// # Errors
    /// [`ResolveError`].
    pub fn resolve(text: &str, options: ClientOptions) -> Result<Self, ResolveError> {
        Ok(Self::from_ior(&resolve(text, options)?)?)
    }
}
