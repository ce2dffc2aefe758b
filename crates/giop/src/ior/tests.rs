//! References are passed on byte for byte, read as far as they go, and made as ORBs expect them.

use super::*;
use crate::error::Fault;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;

const ENDIANS: [Endian; 2] = [Endian::Big, Endian::Little];

fn sample(endian: Endian) -> Ior {
    let values = [
        ComponentValue::OrbType(0x4154_5400),
        ComponentValue::CodeSets(CodeSetInfo::usual()),
        ComponentValue::AlternateAddress { host: "b".to_string(), port: 2 },
        ComponentValue::FtGroup(FtGroup {
            domain_id: b"plant".to_vec(),
            group_id: 0x0102_0304_0506_0708,
            reference_version: 9,
        }),
        ComponentValue::SslTransport(SslTransport { supports: 0x7e, requires: 0x1e, port: 5443 }),
        ComponentValue::FtPrimary(true),
        ComponentValue::FtHeartbeatEnabled(false),
    ];
    let mut components: Vec<_> = values.iter().map(|value| value.encode(endian)).collect();
    components.push(Component { tag: 0x4154_5402, data: vec![7; 5] });
    for (component, value) in components.iter().zip(&values) {
        assert_eq!(component.value(), Some(Ok(value.clone())));
    }
    let iiop = IiopProfile {
        version: Version::V1_2,
        host: "a.example".to_string(),
        port: 2809,
        object_key: b"bank".to_vec(),
        components,
    };
    let profile = iiop.encode(endian);
    assert_eq!(profile.iiop(), Some(Ok(iiop)));
    let strange = Profile { tag: 77, data: vec![1, 2, 3] };
    Ior { type_id: b"IDL:Bank/Ledger:1.0".to_vec(), profiles: vec![profile, strange] }
}

#[test]
fn a_reference_is_read_as_it_was_written() {
    for endian in ENDIANS {
        let ior = sample(endian);
        for frame in ENDIANS {
            let text = ior.stringify(frame);
            assert_eq!(Ior::parse(&text), Ok(ior.clone()));
            assert_eq!(Ior::parse(&format!(" {}\n", text.to_uppercase())), Ok(ior.clone()));
        }
        assert_eq!(ior.to_string().parse(), Ok(ior));
    }
}

#[test]
fn unknown_profiles_and_components_are_kept() {
    let ior = Ior::parse(&sample(Endian::Little).to_string()).unwrap();
    assert_eq!(ior.profiles[1], Profile { tag: 77, data: vec![1, 2, 3] });
    let iiop = ior.profiles[0].iiop().unwrap().unwrap();
    assert_eq!(iiop.components[7], Component { tag: 0x4154_5402, data: vec![7; 5] });
    assert_eq!(iiop.components[7].value(), None);
    assert_eq!(ior.profiles[1].iiop(), None);
}

#[test]
fn the_group_component_of_tao_is_read_whatever_its_padding_holds() {
    // The layout as TAO writes it: padding is what was in memory.
    let mut data = vec![1, 1, 0, 0xcd, 9, 0, 0, 0];
    data.extend_from_slice(b"Domain_1\0");
    data.extend_from_slice(&[0xcd; 7]);
    data.extend_from_slice(&1u64.to_le_bytes());
    data.extend_from_slice(&2u32.to_le_bytes());
    assert_eq!(data.len(), 36);
    let group = FtGroup { domain_id: b"Domain_1".to_vec(), group_id: 1, reference_version: 2 };
    let component = Component { tag: TAG_FT_GROUP, data };
    assert_eq!(component.value(), Some(Ok(ComponentValue::FtGroup(group.clone()))));
    let ours = ComponentValue::FtGroup(group).encode(Endian::Little);
    assert_eq!(ours.data.len(), component.data.len());
    assert_ne!(ours, component);
    let primary = Component { tag: TAG_FT_PRIMARY, data: vec![1, 1] };
    assert_eq!(primary.value(), Some(Ok(ComponentValue::FtPrimary(true))));
}

#[test]
fn a_little_endian_reference_of_iiop_1_0_is_read() {
    // Written out by hand: type id, one profile of IIOP 1.0 without components.
    let text = "IOR:010000000d00000049444c3a4563686f3a312e3000000000\
                01000000000000001c000000010100000a0000003132372e302e302e3100f90a040000006563686f";
    let ior = Ior::parse(text).unwrap();
    assert_eq!(ior.type_id, b"IDL:Echo:1.0");
    let endpoint = Endpoint {
        version: Version::V1_0,
        host: "127.0.0.1".to_string(),
        port: 2809,
        object_key: b"echo".to_vec().into(),
        heartbeat_enabled: false,
    };
    assert_eq!(ior.endpoints(), [endpoint]);
    assert_eq!(ior.stringify(Endian::Little), text);
}

#[test]
fn texts_that_are_no_references_say_where() {
    assert_eq!(Ior::parse("corbaloc::h/k"), Err(IorError::Prefix));
    assert_eq!(Ior::parse("IO"), Err(IorError::Prefix));
    assert_eq!(Ior::parse("IOR:00x0"), Err(IorError::Digit { offset: 6 }));
    assert_eq!(Ior::parse("  IOR:0\u{e4}"), Err(IorError::Digit { offset: 7 }));
    assert_eq!(Ior::parse("IOR:000"), Err(IorError::OddDigits { digits: 3 }));
    let content = |text| match Ior::parse(text) {
        Err(IorError::Content(error)) => (error.what, error.offset, error.fault),
        other => panic!("{other:?}"),
    };
    assert_eq!(content("IOR:"), ("byte order", 0, Fault::Short));
    assert_eq!(content("IOR:02"), ("byte order", 0, Fault::Value));
    assert_eq!(content("IOR:00000000000000010000000000"), ("profiles", 12, Fault::Short));
    assert_eq!(content("IOR:000000000000000000ffffff"), ("profiles", 12, Fault::OverLimit));
}

#[test]
fn every_truncation_is_an_error_and_no_panic() {
    for endian in ENDIANS {
        let ior = sample(endian);
        let bytes = ior.encode(endian);
        for length in 0..bytes.len() {
            let (part, error) = Ior::decode_partly(&bytes[..length]);
            assert!(error.is_some());
            assert!(part.profiles.len() < 2);
        }
        let data = &ior.profiles[0].data;
        for length in 0..data.len() {
            let (_, error) = IiopProfile::decode_partly(&data[..length]);
            assert!(error.unwrap().offset <= data.len());
        }
        for component in ior.profiles[0].iiop().unwrap().unwrap().components {
            for length in 0..component.data.len() {
                let data = component.data[..length].to_vec();
                let cut = Component { tag: component.tag, data }.value();
                assert!(cut.is_none_or(|value| value.is_err()));
            }
        }
    }
}

fn gateways() -> Vec<(String, u16)> {
    [("n1", 1), ("n2", 2), ("n3", 3)].map(|(host, port)| (host.to_string(), port)).into()
}

#[test]
fn a_group_reference_has_a_profile_per_gateway_and_the_others_as_alternates() {
    let group = FtGroup { domain_id: b"d".to_vec(), group_id: 5, reference_version: 1 };
    let code_sets = ComponentValue::CodeSets(CodeSetInfo::usual()).encode(Endian::Big);
    let gateways = gateways();
    let ior = group_reference(&GroupReference {
        type_id: b"IDL:T:1.0",
        object_key: b"key",
        gateways: &gateways,
        group: Some(&group),
        primary: Some(0),
        tls: &[],
        heartbeat_enabled: true,
        components: &[code_sets],
    });
    assert_eq!(ior.profiles.len(), 3);
    for (index, (profile, gateway)) in ior.profiles.iter().zip(&gateways).enumerate() {
        let iiop = profile.iiop().unwrap().unwrap();
        assert_eq!((iiop.version, iiop.object_key.as_slice()), (Version::V1_2, &b"key"[..]));
        assert_eq!((iiop.host, iiop.port), gateway.clone());
        let alternates: Vec<_> =
            iiop.components.iter().filter_map(Component::alternate_address).collect();
        let mut others = gateways.clone();
        others.rotate_left(index);
        others.remove(0);
        assert_eq!(alternates, others);
        let count = |tag| iiop.components.iter().filter(|c| c.tag == tag).count();
        assert_eq!(count(TAG_CODE_SETS), 1);
        assert_eq!(count(TAG_FT_GROUP), 1);
        assert_eq!(count(TAG_FT_HEARTBEAT_ENABLED), 1);
        assert_eq!(count(TAG_FT_PRIMARY), usize::from(gateway.1 == 1));
    }
    let ports: Vec<_> = ior.endpoints().iter().map(|endpoint| endpoint.port).collect();
    assert_eq!(ports, [1, 2, 3]);
    assert_eq!(ior.ft_group(), Some(group));
}

#[test]
fn gateways_with_tls_say_their_port_and_without_plain_iiop_no_other() {
    let tls = [6, 7, 8].map(|port| SslTransport { supports: 0x7e, requires: 0x1e, port });
    for plain in [true, false] {
        let mut gateways = gateways();
        gateways.iter_mut().filter(|_| !plain).for_each(|(_, port)| *port = 0);
        let ior = group_reference(&GroupReference {
            type_id: b"IDL:T:1.0",
            object_key: b"key",
            gateways: &gateways,
            group: None,
            primary: None,
            tls: &tls,
            heartbeat_enabled: false,
            components: &[],
        });
        for (profile, expected) in ior.profiles.iter().zip(tls) {
            let components = profile.iiop().unwrap().unwrap().components;
            assert_eq!(components[0].value(), Some(Ok(ComponentValue::SslTransport(expected))));
            let alternates = components.iter().filter_map(Component::alternate_address).count();
            assert_eq!(alternates, if plain { 2 } else { 0 });
        }
        assert_eq!(ior.endpoints().len(), if plain { 3 } else { 0 });
    }
}

#[test]
fn a_group_without_gateways_keeps_its_name() {
    let group = FtGroup { domain_id: b"d".to_vec(), group_id: 5, reference_version: 1 };
    let mut reference = GroupReference {
        type_id: b"IDL:T:1.0",
        object_key: b"key",
        gateways: &[],
        group: Some(&group),
        primary: Some(0),
        tls: &[],
        heartbeat_enabled: true,
        components: &[],
    };
    let ior = group_reference(&reference);
    assert_eq!(ior.profiles.len(), 1);
    assert_eq!(ior.profiles[0].tag, TAG_MULTIPLE_COMPONENTS);
    assert!(ior.ft_group().unwrap().is_same_group(&group));
    assert!(ior.endpoints().is_empty());
    reference.group = None;
    assert!(group_reference(&reference).is_nil());
}
