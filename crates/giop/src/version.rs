//! GIOP versions and byte orders.

use core::fmt;

/// Byte order of a message or encapsulation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Endian {
    /// Most significant octet first.
    Big,
    /// Least significant octet first.
    Little,
}

impl Endian {
    /// From the low bit of a flags or byte-order octet.
    #[must_use]
    pub const fn from_bit(octet: u8) -> Self {
        if octet & 1 == 0 { Self::Big } else { Self::Little }
    }

    /// The low bit of a flags or byte-order octet.
    #[must_use]
    pub const fn bit(self) -> u8 {
        match self {
            Self::Big => 0,
            Self::Little => 1,
        }
    }
}

/// A GIOP or IIOP version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version {
    /// Always 1 today.
    pub major: u8,
    /// 0, 1 or 2 today.
    pub minor: u8,
}

impl Version {
    /// GIOP 1.0.
    pub const V1_0: Self = Self { major: 1, minor: 0 };
    /// GIOP 1.1: fragments, alternate addresses.
    pub const V1_1: Self = Self { major: 1, minor: 1 };
    /// GIOP 1.2: fragments with request ids, target addresses.
    pub const V1_2: Self = Self { major: 1, minor: 2 };

    /// Whether this codec speaks it.
    #[must_use]
    pub fn is_known(self) -> bool {
        self.major == 1 && self.minor <= 2
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
