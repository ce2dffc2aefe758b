//! Groups that come, change and go while real nodes run: by commands, by files, and by nodes that
//! were away.
//!
//! A file per kind of claim.

#[path = "../stage/mod.rs"]
mod stage;

mod believed;
mod cluster;
mod documented;
mod files;
mod life;
mod members;
mod operators;
mod outside;
mod shared;
mod total;
mod versions;
