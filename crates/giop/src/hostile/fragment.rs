//! What is wrong with fragments. GIOP 1.0 has none, so that all of it is wrong there.

use super::{
    CANCEL_REQUEST, CLOSE_CONNECTION, Cases, FLAG_MORE_FRAGMENTS as MORE, FRAGMENT, Maker, REQUEST,
    REQUEST_ID, Reactions,
};
use crate::limits::FRAGMENTED_REQUESTS_MAX;
use crate::version::{Endian, Version};
use alloc::vec::Vec;

/// A fragment of the request with this id; GIOP 1.1 has no ids.
fn fragment(maker: Maker, request_id: u32, more: u8, rest: &[u8]) -> Vec<u8> {
    let id = if maker.version >= Version::V1_2 { maker.number(request_id) } else { Vec::new() };
    maker.message(FRAGMENT, more, &[id.as_slice(), rest].concat())
}

/// The first `bytes` of a right request's body under an id, and what is left of it.
fn halves(maker: Maker, request_id: u32, bytes: usize) -> (Vec<u8>, Vec<u8>) {
    let mut parts = maker.parts();
    parts.request_id = request_id;
    let body = maker.body(&parts);
    let (first, rest) = body.split_at(bytes.min(body.len()));
    (maker.message(REQUEST, MORE, first), rest.to_vec())
}

pub(super) fn add(cases: &mut Cases) {
    use Reactions as May;
    let maker = cases.maker;
    let old = maker.version < Version::V1_1;
    // Of which the version decides whether it is wrong at all.
    let waits = if old { May::REFUSES } else { May::ANY };
    let (first, rest) = halves(maker, REQUEST_ID, 36);
    cases.add("fragment-of-nothing", waits, fragment(maker, 77, 0, b"nothing."));
    cases.add("fragment-of-nothing-and-more", waits, fragment(maker, 77, MORE, b"nothing."));
    let unheard = if maker.version >= Version::V1_2 { May::REFUSES } else { waits };
    cases.add("fragment-without-id", unheard, maker.message(FRAGMENT, 0, &[]));
    cases.add("fragment-cut-in-id", unheard, maker.message(FRAGMENT, 0, &[1, 2]));
    cases.add("first-fragment-empty", waits, maker.message(REQUEST, MORE, &[]));
    cases.add("first-fragment-shorter-than-id", waits, maker.message(REQUEST, MORE, &[1, 2, 3]));
    cases.add("first-fragment-alone", waits, first.clone());
    let other_id = [first.clone(), fragment(maker, REQUEST_ID + 1, 0, &rest)].concat();
    cases.add("fragment-of-another-request", waits, other_id);
    let twice = [first.clone(), first.clone()].concat();
    cases.add("first-fragment-twice", waits, twice);
    let (id_only, after_id) = halves(maker, REQUEST_ID, 4);
    let tiny = [id_only, fragment(maker, REQUEST_ID, 0, &after_id)].concat();
    cases.add("first-fragment-has-only-a-number", waits, tiny);
    let (odd, after_odd) = halves(maker, REQUEST_ID, 33);
    let odd = [odd, fragment(maker, REQUEST_ID, 0, &after_odd)].concat();
    cases.add("first-fragment-of-odd-length", waits, odd);
    let octets = rest.chunks(1).enumerate().flat_map(|(index, octet)| {
        let more = if index + 1 < rest.len() { MORE } else { 0 };
        fragment(maker, REQUEST_ID, more, octet)
    });
    let octets: Vec<u8> = first.iter().copied().chain(octets).collect();
    cases.add("fragments-of-one-octet", waits, octets);
    let endless = fragment(maker, REQUEST_ID, MORE, &[]).repeat(1000);
    cases.add("fragments-empty-and-endless", waits, [first.clone(), endless].concat());
    let short = [first.clone(), fragment(maker, REQUEST_ID, 0, &[])].concat();
    let incomplete = if old { May::REFUSES } else { May::REFUSES.or(May::IGNORES) };
    cases.add("fragments-joined-too-short", incomplete, short);
}

pub(super) fn add_mixed(cases: &mut Cases) {
    use Reactions as May;
    let maker = cases.maker;
    let old = maker.version < Version::V1_1;
    let waits = if old { May::REFUSES } else { May::ANY };
    let (first, rest) = halves(maker, REQUEST_ID, 36);
    let next = if maker.version == Version::V1_1 { Version::V1_2 } else { Version::V1_1 };
    let other = Maker { version: next, ..maker };
    let mixed = [first.clone(), fragment(other, REQUEST_ID, 0, &rest)].concat();
    cases.add("fragment-of-another-version", waits, mixed);
    let endian = match maker.endian {
        Endian::Big => Endian::Little,
        Endian::Little => Endian::Big,
    };
    let other = Maker { endian, ..maker };
    let mixed = [first.clone(), fragment(other, REQUEST_ID, 0, &rest)].concat();
    cases.add("fragment-of-another-byte-order", waits, mixed);
    let count = u32::try_from(FRAGMENTED_REQUESTS_MAX).unwrap_or(u32::MAX).saturating_add(1);
    let many = (0..count).flat_map(|index| halves(maker, 1000 + 2 * index, 36).0);
    cases.add("more-requests-in-fragments-than-allowed", waits, many.collect::<Vec<u8>>());
    let id = maker.number(REQUEST_ID);
    let refuses = if old { May::REFUSES } else { May::ANY };
    let cancel = maker.message(CANCEL_REQUEST, MORE, &id);
    cases.add("cancel-in-fragments", refuses, cancel);
    let close = maker.message(CLOSE_CONNECTION, MORE, &[]);
    cases.add("close-in-fragments", refuses, close);
    let cancelled = [
        first.clone(),
        maker.message(CANCEL_REQUEST, 0, &id),
        fragment(maker, REQUEST_ID, 0, &rest),
    ];
    cases.add("fragment-behind-cancel", waits, cancelled.concat());
    let between =
        [first, maker.request(|parts| parts.request_id = 4), fragment(maker, REQUEST_ID, 0, &rest)];
    cases.add("whole-request-between-fragments", waits, between.concat());
}
