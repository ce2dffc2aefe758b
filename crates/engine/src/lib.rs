//! One pure Quorba node: gateway, replica and order joined.
