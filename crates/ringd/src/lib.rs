//! The Totem ring as a service of its own: process groups for programs on the same machine.
//!
//! [`driver::Driver`] runs a node of the ring inside of a program. What it is not: anything of
//! CORBA; that is `quorba-node`'s.

#![forbid(unsafe_code)]

pub mod driver;
