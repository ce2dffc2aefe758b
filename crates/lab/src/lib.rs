//! The latency laboratory.
#![forbid(unsafe_code)]
mod bare;
mod domain;
mod error;
mod histogram;
mod peer;
mod placement;
mod plan;
mod ports;
mod stats;
mod usage;
pub use bare::peer_main;
pub use error::LabError;
