//! References, binary and as text.

use quorba_giop::corbaloc::{self, Corbaloc};
use quorba_giop::ior::{ComponentValue, IiopProfile, Ior};
use quorba_giop::{Endian, describe};

/// What is read is written so that it reads as the same, in both byte orders.
pub(super) fn binary(input: &[u8]) {
    let (partly, fault) = Ior::decode_partly(input);
    let whole = Ior::decode(input);
    assert_eq!(whole.is_err(), fault.is_some());
    for endian in [Endian::Big, Endian::Little] {
        assert_eq!(Ior::decode(&partly.encode(endian)).as_ref(), Ok(&partly));
        assert_eq!(Ior::parse(&partly.stringify(endian)).as_ref(), Ok(&partly));
        for profile in &partly.profiles {
            let Some(Ok(iiop)) = profile.iiop() else { continue };
            let again = iiop.encode(endian).iiop().expect("it is an IIOP profile");
            assert_eq!(again.as_ref(), Ok(&iiop));
            check_components(&iiop, endian);
        }
    }
    for endpoint in partly.endpoints() {
        assert!(endpoint.port != 0 && endpoint.version.is_known());
    }
    let _ = partly.ft_group();
    if let Some(corbaloc) = Corbaloc::from_ior(&partly) {
        assert_same_corbaloc(&corbaloc);
    }
    let text = describe::reference(&partly);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

fn check_components(profile: &IiopProfile, endian: Endian) {
    for component in &profile.components {
        let Some(Ok(value)) = component.value() else { continue };
        let again: Option<Result<ComponentValue, _>> = value.encode(endian).value();
        assert_eq!(again, Some(Ok(value)));
    }
}

fn assert_same_corbaloc(corbaloc: &Corbaloc) {
    // More addresses than a corbaloc takes can come out of an IOR.
    if corbaloc.addresses.len() <= quorba_giop::limits::ADDRESSES_MAX {
        assert_eq!(corbaloc::parse(&corbaloc.to_string()).as_ref(), Ok(corbaloc));
    }
}

pub(super) fn decode_binary(input: &[u8]) {
    let Ok(ior) = Ior::decode(input) else { return };
    let _ = (ior.endpoints().len(), ior.ft_group().is_some());
}

/// Text that reads as a reference is printed so that it reads as the same.
pub(super) fn text(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(ior) = Ior::parse(&text) {
        assert_eq!(Ior::parse(&ior.stringify(Endian::Big)), Ok(ior));
    }
    if let Ok(corbaloc) = corbaloc::parse(&text) {
        assert!(!corbaloc.addresses.is_empty());
        assert_same_corbaloc(&corbaloc);
        let _ = corbaloc.to_ior().endpoints();
    }
    let description = describe::reference_text(&text);
    assert!(description.chars().all(|c| c == '\n' || !c.is_control()), "{description:?}");
}

pub(super) fn decode_text(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let _ = (Ior::parse(text).is_ok(), corbaloc::parse(text).is_ok());
}
