//! The latency laboratory.
