//! What is wrong before the first octet of a message's content, and messages of the wrong type.

use super::{
    CANCEL_REQUEST, CLOSE_CONNECTION, Cases, LOCATE_REPLY, MESSAGE_ERROR, Maker, REPLY, REQUEST,
    REQUEST_ID, Reactions,
};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::version::{Endian, Version};
use alloc::vec::Vec;

/// The start of a TLS ClientHello.
const TLS_HELLO: &[u8] = &[0x16, 3, 1, 0, 0xc4, 1, 0, 0, 0xc0, 3, 3, 0x5a, 0x5a, 0x5a, 0x5a];

pub(super) fn add(cases: &mut Cases) {
    use Reactions as May;
    let maker = cases.maker;
    let good = maker.request(|_| {});
    let patched = |offset: usize, octet: u8| {
        let mut bytes = good.clone();
        if let Some(field) = bytes.get_mut(offset) {
            *field = octet;
        }
        bytes
    };
    cases.add("magic-wrong-last-octet", May::REFUSES, patched(3, b'X'));
    cases.add(
        "magic-in-small-letters",
        May::REFUSES,
        [b"giop", good.get(4..).unwrap_or(&[])].concat(),
    );
    cases.add(
        "magic-of-zipped-giop",
        May::REFUSES,
        [b"ZIOP", good.get(4..).unwrap_or(&[])].concat(),
    );
    cases.add("not-giop-http", May::REFUSES, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    cases.add("not-giop-tls", May::REFUSES, TLS_HELLO);
    cases.add("not-giop-ssh", May::REFUSES, b"SSH-2.0-scanner\r\n");
    cases.add("not-giop-zeros", May::REFUSES, [0; 1024]);
    cases.add("not-giop-ones", May::REFUSES, [0xff; 4096]);
    cases.add("nothing-but-one-octet", May::WAITS, b"G");
    cases.add("header-cut-behind-magic", May::WAITS, b"GIOP");
    cases.add("header-cut-before-last-octet", May::WAITS, good.get(..11).unwrap_or(&[]));
    cases.add("version-0.0", May::REFUSES, [b"GIOP\0\0", good.get(6..).unwrap_or(&[])].concat());
    cases.add("version-2.0", May::REFUSES, [b"GIOP\x02\0", good.get(6..).unwrap_or(&[])].concat());
    cases.add("version-1.3", May::TOLERATES, patched(5, 3));
    cases.add("version-1.255", May::REFUSES, patched(5, 255));
    cases.add("flags-all-reserved-bits", May::TOLERATES, patched(6, 0xfc | maker.endian.bit()));
    cases.add("type-8", May::REFUSES, patched(7, 8));
    cases.add("type-255", May::REFUSES, patched(7, 255));
    add_sizes(cases, &good);
}

fn add_sizes(cases: &mut Cases, good: &[u8]) {
    use Reactions as May;
    let maker = cases.maker;
    let sized = |change: fn(u32) -> u32| maker.with_size(good.to_vec(), change);
    let waits_or_refuses = May::WAITS.or(May::MESSAGE_ERROR);
    cases.add("size-0-of-request", May::REFUSES, maker.header(REQUEST, 0, 0));
    cases.add("size-largest", waits_or_refuses, maker.header(REQUEST, 0, u32::MAX));
    cases.add("size-largest-signed", waits_or_refuses, maker.header(REQUEST, 0, 0x7fff_ffff));
    cases.add("size-negative", waits_or_refuses, maker.header(REQUEST, 0, 0x8000_0000));
    cases.add("size-wraps-with-header", waits_or_refuses, maker.header(REQUEST, 0, 0xffff_fff4));
    let over = u32::try_from(MESSAGE_BYTES_MAX).unwrap_or(u32::MAX);
    cases.add("size-just-over-limit", waits_or_refuses, maker.header(REQUEST, 0, over));
    cases.add("size-200-megabytes", waits_or_refuses, maker.header(REQUEST, 0, 200 << 20));
    cases.add("size-one-too-small", May::REFUSES, sized(|size| size - 1));
    cases.add("size-one-too-large", May::WAITS, sized(|size| size + 1));
    // A request that is far too large, but whose beginning can be understood.
    let too_large = waits_or_refuses.or(May::REPLIES);
    cases.add("size-in-other-byte-order", too_large, sized(u32::swap_bytes));
    // Two requests, the first of which claims half of the second's header as its own.
    let swallowing = [sized(|size| size + 6), good.to_vec()].concat();
    cases.add("size-swallows-next-header", May::ANY, swallowing);
    let other = match maker.endian {
        Endian::Big => Endian::Little,
        Endian::Little => Endian::Big,
    };
    let mut flag = good.to_vec();
    if let Some(flags) = flag.get_mut(6) {
        *flags = other.bit();
    }
    cases.add("byte-order-flag-wrong", too_large, flag);
    cases.add("garbage-behind-good-request", May::ANY, [good, &[0xee; 40]].concat());
    cases.add("good-request-64-times-same-id", May::TOLERATES, good.repeat(64));
}

pub(super) fn add_types(cases: &mut Cases) {
    use Reactions as May;
    let maker = cases.maker;
    let unasked = May::WAITS.or(May::MESSAGE_ERROR);
    let reply = |kind, status| maker.message(kind, 0, &reply_body(maker, kind, status));
    cases.add("reply-to-nothing", unasked, reply(REPLY, 0));
    cases.add("reply-status-unknown", unasked, reply(REPLY, 99));
    cases.add("locate-reply-to-nothing", unasked, reply(LOCATE_REPLY, 1));
    cases.add("locate-reply-status-unknown", unasked, reply(LOCATE_REPLY, 99));
    cases.add("reply-cut", unasked, maker.message(REPLY, 0, &[0; 3]));
    cases.add("cancel-of-nothing", unasked, maker.message(CANCEL_REQUEST, 0, &maker.number(7)));
    cases.add("cancel-without-id", unasked, maker.message(CANCEL_REQUEST, 0, &[]));
    cases.add("cancel-cut-in-id", unasked, maker.message(CANCEL_REQUEST, 0, &[1, 2]));
    cases.add("close-with-content", unasked, maker.message(CLOSE_CONNECTION, 0, &[9; 64]));
    let after_close = [maker.message(CLOSE_CONNECTION, 0, &[]), maker.request(|_| {})].concat();
    cases.add("request-behind-close", May::ANY, after_close);
    cases.add("message-error-unprovoked", unasked, maker.message(MESSAGE_ERROR, 0, &[]));
    cases.add("message-error-with-content", unasked, maker.message(MESSAGE_ERROR, 0, &[9; 64]));
}

fn reply_body(maker: Maker, kind: u8, status: u32) -> Vec<u8> {
    maker.part(|writer| {
        let contexts_first = kind == REPLY && maker.version < Version::V1_2;
        if contexts_first {
            writer.write_u32(0);
        }
        writer.write_u32(REQUEST_ID);
        writer.write_u32(status);
        if kind == REPLY && !contexts_first {
            writer.write_u32(0);
        }
    })
}
