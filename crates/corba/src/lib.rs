//! What code that is generated from IDL is made of: values in CDR, TypeCodes and `any`, references,
//! user exceptions, and what stands between a skeleton or a stub and GIOP messages.
//!
//! [`Cdr`] reads and writes a value; [`Objects`] is a set of objects behind one server, and
//! [`answer`] turns a request into its reply by calling one of them; [`Transport`] is what a stub
//! calls through. `cargo xtask idl` makes traits, skeletons and stubs of IDL on top of these.
//!
//! What it is not: an ORB. It opens no connection, and knows no POA; valuetypes are not read, only
//! their TypeCodes are.
//!
//! Invariants: no input makes it panic, nest deeper than [`limits`] allow, or take time or memory
//! out of proportion to its octets; the reply is a function of the request, of what the connection
//! has agreed on, and of the objects: nothing in it is random or depends on an address.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::string_slice)
)]

extern crate alloc;

mod any;
mod basic;
mod codec;
mod exception;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;

mod invoke;
pub mod limits;
mod local;
mod object;
mod objects;
mod text;
mod typecode;

pub use any::{Any, Value};
pub use basic::{Bounded, Char, LongDouble, Octets, WChar};
pub use codec::{Cdr, CharSet, Coding, Decoder, Encoder};
pub use exception::{Raises, UserException, invalid, raise_system};
pub use invoke::{Answer, Arguments, Transport, call, send};
pub use local::Local;
pub use object::{Home, Object, key_number};
pub use objects::{Call, Interface, Objects, answer, answer_locate, hear_code_sets};
/// The wire format below.
pub use quorba_giop as giop;
pub use text::{BoundedString, WString};
pub use typecode::{Kind, TypeCode, Typed};

/// Names that generated code uses without a path of its own.
pub mod prelude {
    pub use alloc::boxed::Box;
    pub use alloc::string::String;
    pub use alloc::vec::Vec;
}
