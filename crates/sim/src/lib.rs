//! Deterministic simulator of many Quorba nodes, clients and servers.
