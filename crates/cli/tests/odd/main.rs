//! Servers that do something odd with a request, in real groups of every style: what all members
//! do alike is no crash, and takes no group down; what one member does alone is its own fault.
//!
//! The servers are those of `examples/scripted`. A file per kind of claim.

#[path = "../stage/mod.rs"]
mod stage;

mod alike;
mod alone;
mod behind;
mod connect;
mod idle;
mod never;
mod poison;
mod reaction;
