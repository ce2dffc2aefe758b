//! A small blocking Rust ORB for servants, clients and tests.
