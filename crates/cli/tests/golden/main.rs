//! Golden transcripts: what every command prints, on which stream, and how it exits.
//!
//! The transcripts are reviewed as prose. After a change: `INSTA_UPDATE=always cargo test`.

mod bench;
mod catalog;
mod config;
mod help;
mod ior;
mod local;
mod newcomer;
mod ping;
mod status;
