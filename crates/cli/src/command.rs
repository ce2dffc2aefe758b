//! One module per command: its arguments, and what it does with them.

mod advise;
pub mod backup;
pub mod completions;
pub mod config;
pub mod demo;
mod doctor;
pub mod events;
pub mod explain;
pub mod faults;
pub mod group;
pub mod ior;
pub mod key;
pub mod lab;
mod log;
pub mod man;
pub mod naming;
pub mod node;
pub mod outside;
pub mod ping;
pub mod record;
pub mod restore;
pub mod serve;
pub mod sim;
pub mod status;
pub mod up;
