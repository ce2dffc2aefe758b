//! What the paper says in numbers, each with its place. Nothing here was measured by us.

use super::Scenario;

/// Token rotation without load (§2.3).
pub(crate) const ROTATION_US: f64 = 205.0;
/// From one node to the next (§2.3).
pub(crate) const PASSING_US: f64 = 51.0;
/// How long the reply waits for the token at node 1 in scenario (a) (§2.4, step i).
pub(crate) const REPLY_WAIT_AT_1_US: f64 = 180.0;
/// Within this a replica or the client has its message ready (§2.5).
pub(crate) const PROCESSING_MOST_US: f64 = 100.0;
/// Spread of the latency with think time (§2.3).
pub(crate) const THINKING_SPREAD_US: f64 = 250.0;
/// Rotation peaks in scenario (a) at the nodes that do not run the primary (§2.4).
pub(crate) const ROTATIONS_OTHERS_US: [f64; 2] = [450.0, 500.0];
/// Rotation peaks in scenario (a) at node 1 (§2.4).
pub(crate) const ROTATIONS_PRIMARY_US: [f64; 2] = [205.0, 740.0];
/// Rotation peak in scenario (d) (§2.4).
pub(crate) const ROTATION_ACTIVE_US: f64 = 1_230.0;

/// Latency of the highest density (§2.3, figure 2); for (e) where its spread begins.
pub(crate) const fn latency_us(scenario: Scenario) -> f64 {
    match scenario {
        Scenario::A => 953.0,
        Scenario::B => 741.0,
        Scenario::C => 979.0,
        Scenario::D => 1_227.0,
        Scenario::E => 740.0,
    }
}

/// Token rotations per call: those of a run by its 10,000 calls (§2.3).
pub(crate) const fn rotations_per_call(scenario: Scenario) -> Option<f64> {
    match scenario {
        Scenario::A | Scenario::C => Some(2.1),
        Scenario::B => Some(1.25),
        Scenario::D => Some(1.1),
        Scenario::E => None,
    }
}

/// Ordered messages per call: request and reply, or request and all replies, since virtually all
/// duplicates are sent (§2.3, §2.5).
pub(crate) const fn messages_per_call(scenario: Scenario) -> f64 {
    match scenario {
        Scenario::A | Scenario::B | Scenario::C => 2.0,
        Scenario::D | Scenario::E => 4.0,
    }
}
