//! What the nodes say of the ring before and after a block, and what that makes per call.

use quorba_admin::status::{GroupStatus, Status};

use crate::record::RingShare;

/// What happened on the ring in so many calls; `None` without nodes.
pub(crate) fn ring_share(before: &[Status], after: &[Status], calls: f64) -> Option<RingShare> {
    let first = after.first()?;
    let grown = |figure: fn(&Status) -> u64| {
        let sum = |statuses: &[Status]| statuses.iter().map(figure).sum::<u64>();
        sum(after).saturating_sub(sum(before))
    };
    Some(RingShare {
        rotation_us: first.ring.rotation_us,
        retransmits: grown(|status| status.ring.retransmits),
        view_changes: grown(|status| status.ring.view_changes),
        replies_sent: to_f64(grown(|status| group(status).replies_sent)) / calls,
        replies_suppressed: to_f64(grown(|status| group(status).replies_suppressed)) / calls,
        replies_dropped: to_f64(grown(|status| group(status).replies_dropped)) / calls,
    })
}

/// A domain of the lab has one group.
fn group(status: &Status) -> &GroupStatus {
    status.groups.first().expect("the domain file has one")
}

#[expect(clippy::cast_precision_loss, reason = "no run has 2^52 of anything")]
pub(crate) fn to_f64(number: u64) -> f64 {
    number as f64
}
