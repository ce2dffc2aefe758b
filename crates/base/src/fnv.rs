//! FNV-1a, 64 bits: a sum that is the same in every version of this program.
//!
//! What it is not: a protection; who wants to can find other octets with the same sum.

/// The sum of nothing.
pub const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Goes on with `sum` over these octets; begin with [`FNV_OFFSET`].
#[must_use]
pub fn fnv1a(sum: u64, octets: impl IntoIterator<Item = u8>) -> u64 {
    octets.into_iter().fold(sum, |sum, octet| (sum ^ u64::from(octet)).wrapping_mul(FNV_PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors are those of the algorithm's authors.
    #[test]
    fn sums_are_those_of_the_algorithm() {
        assert_eq!(fnv1a(FNV_OFFSET, *b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(FNV_OFFSET, *b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(FNV_OFFSET, *b"foobar"), 0x8594_4171_f739_67e8);
    }
}
