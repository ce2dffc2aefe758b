//! The interfaces of Quorba's services, generated from the IDL in `idl/`.
//!
//! For each interface of IDL there is a trait that an implementation has, a `dispatch_` function
//! that executes a [`quorba_corba::Call`] by it, a stub that calls such an object, and a constant
//! with its repository ids.
//!
//! What it is not: written by hand. `cargo xtask idl --write` makes it; what generated code is made
//! of is the crate `corba`.

#![no_std]
#![forbid(unsafe_code)]

mod generated {
    //! One module for each file of IDL.
    pub(crate) mod checkpointable;
    pub(crate) mod naming;
}

pub use generated::checkpointable::ft;
pub use generated::naming::cos_naming;
