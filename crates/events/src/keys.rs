//! Which object a key names.
//!
//! Invariant: behind what a channel's keys begin with an object has one name only. (Proxies and
//! facades of channels that are not reliable have keys that begin in two ways; see the service.)

use alloc::format;
use alloc::string::String;

use quorba_corba::key_number;

/// An object of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Channel,
    Consumers,
    Suppliers,
    Rtec,
    RtecConsumers,
    RtecSuppliers,
    Facade,
    Numbered,
    State,
    /// The proxy that a consumer has.
    Consumer(u64),
    /// The proxy that a supplier has.
    Supplier(u64),
}

/// What follows the name of a channel in keys, behind a slash.
const FIXED: &[(&str, Place)] = &[
    ("consumers", Place::Consumers),
    ("suppliers", Place::Suppliers),
    ("rtec", Place::Rtec),
    ("rtec/consumers", Place::RtecConsumers),
    ("rtec/suppliers", Place::RtecSuppliers),
    ("ft", Place::Facade),
    ("numbered", Place::Numbered),
    ("state", Place::State),
];

/// The object with a key, if it is of the channel whose keys begin with `base`.
pub(crate) fn place(base: &str, key: &[u8]) -> Option<Place> {
    place_behind(core::str::from_utf8(key).ok()?.strip_prefix(base)?)
}

/// The object of a channel by what stands behind the channel's name in its key.
pub(crate) fn place_behind(rest: &str) -> Option<Place> {
    if rest.is_empty() {
        return Some(Place::Channel);
    }
    let rest = rest.strip_prefix('/')?;
    match (rest.strip_prefix("c-"), rest.strip_prefix("s-")) {
        (Some(text), _) => key_number(text).map(Place::Consumer),
        (_, Some(text)) => key_number(text).map(Place::Supplier),
        _ => FIXED.iter().find(|(known, _)| *known == rest).map(|(_, place)| *place),
    }
}

/// The key of an object.
pub(crate) fn key(base: &str, place: Place) -> String {
    match place {
        Place::Channel => String::from(base),
        Place::Consumer(number) => format!("{base}/c-{number}"),
        Place::Supplier(number) => format!("{base}/s-{number}"),
        _ => {
            let fixed = FIXED.iter().find(|(_, known)| *known == place);
            format!("{base}/{}", fixed.map_or("", |(rest, _)| rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_has_one_name_behind_the_base() {
        let fixed = FIXED.iter().map(|(_, place)| *place);
        let others = [Place::Channel, Place::Consumer(1), Place::Supplier(u64::MAX)];
        for place in fixed.chain(others) {
            assert_eq!(super::place("Events/a", key("Events/a", place).as_bytes()), Some(place));
        }
        for none in ["Events/ab", "Events/a/", "Events/a/c-", "Events/a/c-01", "Events/a/s-0", "x"]
        {
            assert_eq!(super::place("Events/a", none.as_bytes()), None, "{none}");
        }
    }
}
