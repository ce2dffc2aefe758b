//! Words that every part of the crate uses: ids, histories, places, clocks, how octets are read.
//!
//! What it is not: anything that decides. Invariant: it names no other folder of the crate.

pub(crate) mod binding;
pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod group_map;
pub(crate) mod history;
pub(crate) mod holders;
pub(crate) mod ids;
pub(crate) mod node_map;
pub(crate) mod place;
pub(crate) mod released;
pub(crate) mod reply_summary;
pub(crate) mod rules;
pub(crate) mod short;
pub(crate) mod style;
pub(crate) mod submitted;
pub(crate) mod wire;
