//! Exceptions that operations raise.
//!
//! Invariant: what an operation's IDL does not name arrives as UNKNOWN (CORBA §4.12.3.1).

use alloc::string::String;

use quorba_giop::{Completion, ExceptionKind, MessageError, SystemException};

use crate::codec::{Cdr, Decoder};
use crate::objects::Call;

/// An exception of IDL.
pub trait UserException: Cdr {
    /// Its repository id.
    const ID: &'static str;
}

/// What one operation may raise: an enum that is made of its IDL, or a system exception alone.
pub trait Raises: Sized + From<SystemException> {
    /// Raises it.
    ///
    /// # Errors
    /// A system exception, if it is one.
    fn raise(self, call: &mut Call<'_>) -> Result<(), SystemException>;

    /// Reads the user exception of an id; nothing if the operation has no such.
    ///
    /// # Errors
    /// If its members are not there.
    fn read(id: &str, members: &mut Decoder<'_>) -> Result<Option<Self>, MessageError>;
}

impl Raises for SystemException {
    fn raise(self, _: &mut Call<'_>) -> Result<(), SystemException> {
        Err(self)
    }

    fn read(_: &str, _: &mut Decoder<'_>) -> Result<Option<Self>, MessageError> {
        Ok(None)
    }
}

/// A system exception of a kind, for what was not executed.
#[must_use]
pub const fn raise_system(kind: ExceptionKind) -> SystemException {
    SystemException { kind, minor: 0, completed: Completion::No }
}

/// MARSHAL for what could not be read.
pub(crate) const fn marshal(completed: Completion) -> SystemException {
    SystemException { kind: ExceptionKind::Marshal, minor: 0, completed }
}

/// The user exception in a reply, as one of those that `E` has; what is none becomes UNKNOWN.
pub(crate) fn read_raised<E: Raises>(from: &mut Decoder<'_>) -> E {
    let completed = Completion::Maybe;
    let read = from.read::<String>().and_then(|id| E::read(&id, from));
    match read {
        Ok(Some(exception)) => exception,
        Ok(None) => SystemException { kind: ExceptionKind::Unknown, minor: 0, completed }.into(),
        Err(_) => marshal(completed).into(),
    }
}

/// The fault of a number that no member of an enum, or no arm of a union, has.
#[must_use]
pub fn invalid(what: &'static str, from: &mut Decoder<'_>) -> MessageError {
    let offset = from.reader().position();
    MessageError { what, offset, fault: quorba_giop::Fault::Value }
}

/// Makes the enum of what an operation raises: its user exceptions, and any system exception.
#[macro_export]
macro_rules! raises {
    ($(#[$doc:meta])* pub enum $name:ident { $($variant:ident($exception:ty)),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $(
                #[doc = concat!("`", stringify!($variant), "`.")]
                $variant($exception),
            )+
            /// A system exception.
            System($crate::giop::SystemException),
        }

        impl From<$crate::giop::SystemException> for $name {
            fn from(exception: $crate::giop::SystemException) -> Self {
                Self::System(exception)
            }
        }

        $(
            impl From<$exception> for $name {
                fn from(exception: $exception) -> Self {
                    Self::$variant(exception)
                }
            }
        )+

        impl $crate::Raises for $name {
            fn raise(
                self,
                call: &mut $crate::Call<'_>,
            ) -> Result<(), $crate::giop::SystemException> {
                match self {
                    $(Self::$variant(exception) => call.raise(&exception),)+
                    Self::System(exception) => Err(exception),
                }
            }

            fn read(
                id: &str,
                members: &mut $crate::Decoder<'_>,
            ) -> Result<Option<Self>, $crate::giop::MessageError> {
                match id {
                    $(
                        <$exception as $crate::UserException>::ID => {
                            Ok(Some(Self::$variant(members.read()?)))
                        }
                    )+
                    _ => Ok(None),
                }
            }
        }
    };
}
