//! The Quorba daemon: sockets, clock, processes and admin API around the pure engine.
