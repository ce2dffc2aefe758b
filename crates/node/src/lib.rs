//! The Quorba daemon: the pure engine, driven by real sockets, a real clock and real processes.

pub mod status;
