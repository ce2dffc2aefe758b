//! What only shows with a hand on the inside.

use super::*;
use crate::seal::COUNTER_MAX;

#[test]
fn a_boot_that_runs_out_of_nonces_leaves_instead_of_using_one_twice() {
    let me = NodeId::new(0).expect("in range");
    let config = crate::fuzzing::config(me, NodeSet::first(2));
    let boot = Boot { incarnation: 1, salt: [3; 16], ring_seq_min: 0 };
    let mut ring = Ring::new(config, boot, Instant::ZERO);
    while ring.poll().is_some() {}
    ring.core.sealer.skip_to(COUNTER_MAX - 1100);
    let mut sent = 0;
    while let Some((at, _)) = ring.poll_timeout() {
        ring.handle_timeout(at);
        while let Some(output) = ring.poll() {
            sent += usize::from(matches!(output, Output::Transmit { .. }));
        }
    }
    assert!(ring.departed);
    assert!((FAREWELLS..1100).contains(&sent), "{sent} datagrams, the last two a farewell");
}
