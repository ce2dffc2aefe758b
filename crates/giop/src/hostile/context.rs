//! What is wrong in the service contexts of a Request.

use super::{Cases, Reactions};
use crate::context::{CODE_SETS, FT_GROUP_VERSION, FT_REQUEST, FtRequest};
use crate::limits::CONTEXTS_MAX;
use alloc::vec;
use alloc::vec::Vec;

/// An id that nobody has registered.
const UNKNOWN: u32 = 0x5151_0000;

pub(super) fn add(cases: &mut Cases) {
    use Reactions as May;
    let maker = cases.maker;
    let mut add = |name, may, contexts: Vec<u8>| {
        cases.add(name, may, maker.request(|parts| parts.contexts = contexts));
    };
    let numbers = |numbers: &[u32]| {
        maker.part(|writer| numbers.iter().for_each(|number| writer.write_u32(*number)))
    };
    add("contexts-count-largest", May::REFUSES, numbers(&[u32::MAX]));
    add("contexts-count-negative", May::REFUSES, numbers(&[0x8000_0000]));
    add("contexts-count-beyond-end", May::REFUSES, numbers(&[200, UNKNOWN, 0]));
    add("context-length-largest", May::REFUSES, numbers(&[1, UNKNOWN, u32::MAX]));
    add("context-length-wraps", May::REFUSES, numbers(&[1, UNKNOWN, 0xffff_fffc]));
    add("context-length-beyond-end", May::REFUSES, numbers(&[1, UNKNOWN, 5000]));
    let many = vec![(UNKNOWN, [].as_slice()); CONTEXTS_MAX + 1];
    add("contexts-over-limit", May::TOLERATES, maker.contexts(&many));
    let same = vec![(UNKNOWN, [1, 2, 3, 4].as_slice()); 200];
    add("context-200-times-the-same", May::TOLERATES, maker.contexts(&same));
    let large = vec![0xab; 32 << 10];
    add("context-of-32-kilobytes", May::TOLERATES, maker.contexts(&[(UNKNOWN, &large)]));
}

/// Contexts that servers and gateways read. A wrong one is refused, or taken for absent.
pub(super) fn add_known(cases: &mut Cases) {
    use Reactions as May;
    let maker = cases.maker;
    let endian = maker.endian;
    let mut add = |name, contexts: &[(u32, &[u8])]| {
        let contexts = maker.contexts(contexts);
        cases.add(name, May::TOLERATES, maker.request(|parts| parts.contexts = contexts));
    };
    let bit = endian.bit();
    let ft_request = |client_id: &[u8], retention_id, expiration_time| {
        FtRequest { client_id: client_id.to_vec(), retention_id, expiration_time }.encode(endian)
    };
    add("code-sets-empty", &[(CODE_SETS, &[])]);
    add("code-sets-cut", &[(CODE_SETS, &[bit, 0, 0])]);
    add("code-sets-byte-order-7", &[(CODE_SETS, &[7, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1])]);
    add("code-sets-unknown", &[(CODE_SETS, &[bit, 0, 0, 0, 9, 9, 9, 9, 8, 8, 8, 8])]);
    add("ft-request-empty", &[(FT_REQUEST, &[])]);
    add("ft-request-only-byte-order", &[(FT_REQUEST, &[bit])]);
    let endless = [bit, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, b'a', 0];
    add("ft-request-endless-client-id", &[(FT_REQUEST, &endless)]);
    let good = ft_request(b"client", 1, u64::MAX);
    let cut = good.get(..good.len().saturating_sub(4)).unwrap_or(&[]);
    add("ft-request-cut-in-expiration", &[(FT_REQUEST, cut)]);
    let other = ft_request(b"other", 2, u64::MAX);
    add("ft-request-twice", &[(FT_REQUEST, &good), (FT_REQUEST, &other)]);
    add("ft-request-expired", &[(FT_REQUEST, &ft_request(b"client", 3, 0))]);
    add("ft-request-retention-negative", &[(FT_REQUEST, &ft_request(b"client", -1, u64::MAX))]);
    add("ft-request-without-client-id", &[(FT_REQUEST, &ft_request(b"", 4, u64::MAX))]);
    let long = ft_request(&[b'c'; 2000], 5, u64::MAX);
    add("ft-request-client-id-2000", &[(FT_REQUEST, &long)]);
    add("ft-group-version-empty", &[(FT_GROUP_VERSION, &[])]);
    add("ft-group-version-cut", &[(FT_GROUP_VERSION, &[bit, 0, 0, 0, 1])]);
    let tao = [bit, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    add("ft-group-version-long-form-endless", &[(FT_GROUP_VERSION, &tao)]);
}
