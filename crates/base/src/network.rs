//! Addresses that belong together.

use core::net::IpAddr;

/// Addresses that begin alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// One of them.
    pub address: IpAddr,
    /// So many leading bits are those of all.
    pub prefix_bits: u8,
}

impl Network {
    /// Whether an address is one of them. An IPv4 address that came in the form of IPv6 is the IPv4
    /// address.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        let differs = match (self.address.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                u128::from(u32::from(own) ^ u32::from(other)) << 96
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => u128::from(own) ^ u128::from(other),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
        };
        differs.leading_zeros() >= u32::from(self.prefix_bits)
    }
}
