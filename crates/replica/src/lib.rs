//! What an ordered request means for an object group.
