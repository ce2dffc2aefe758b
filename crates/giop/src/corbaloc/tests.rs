//! Corbalocs are read as people write them, and refused at the place of the fault.

use super::*;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;

fn iiop(version: Version, host: &str, port: u16) -> Address {
    Address::Iiop { version, host: host.to_string(), port }
}

fn good(text: &str, addresses: &[Address], key: &[u8]) {
    let read = parse(text).unwrap();
    assert_eq!(read, Corbaloc { addresses: addresses.to_vec(), object_key: key.to_vec() });
    assert_eq!(parse(&read.to_string()), Ok(read));
}

fn bad(text: &str, offset: usize, fault: CorbalocFault) {
    assert_eq!(parse(text), Err(CorbalocError { offset, fault }), "{text}");
}

#[test]
fn the_usual_forms_are_read_and_printed() {
    let (v0, v2) = (Version::V1_0, Version::V1_2);
    good("corbaloc::h/k", &[iiop(v0, "h", 2809)], b"k");
    good("corbaloc::h:/k", &[iiop(v0, "h", 2809)], b"k");
    good(" CorbaLoc:IIOP:1.2@h:99/a/b\n", &[iiop(v2, "h", 99)], b"a/b");
    good("corbaloc:iiop:h:99", &[iiop(v0, "h", 99)], b"");
    good("corbaloc::[::1]:5000/k", &[iiop(v0, "::1", 5000)], b"k");
    good("corbaloc::1.2@[fe80::1%25eth0]/k", &[iiop(v2, "fe80::1%25eth0", 2809)], b"k");
    let two = [iiop(v2, "a.example", 1), iiop(Version::V1_1, "10.0.0.2", 2)];
    good("corbaloc::1.2@a.example:1,iiop:1.1@10.0.0.2:2/k", &two, b"k");
    good("corbaloc:rir:", &[Address::InitialReferences], b"NameService");
    good("corbaloc:rir:/TradingService", &[Address::InitialReferences], b"TradingService");
    good("corbaloc::h/%00%fFa%25", &[iiop(v0, "h", 2809)], b"\0\xffa%");
    assert_eq!(
        parse("corbaloc::1.2@h:1,:[::1]:2/%ff\"x").unwrap().to_string(),
        "corbaloc:iiop:1.2@h:1,iiop:1.0@[::1]:2/%ff%22x"
    );
}

#[test]
fn every_key_survives_printing() {
    let object_key: Vec<u8> = (0..=255).collect();
    let corbaloc = Corbaloc { addresses: vec![iiop(Version::V1_2, "h", 1)], object_key };
    assert_eq!(parse(&corbaloc.to_string()), Ok(corbaloc));
}

#[test]
fn a_corbaname_is_a_context_and_a_name_in_it() {
    let read = |text: &str| {
        let found = parse_name(text).expect(text);
        (found.context.to_string(), found.name)
    };
    let context = "corbaloc:iiop:1.0@h:2809/NameService";
    for text in ["corbaname::h", "corbaname::h#", "corbaname::h/NameService", "CORBANAME::h/#"] {
        assert_eq!(read(text), (String::from(context), String::new()), "{text}");
    }
    assert_eq!(read("corbaname::h#a/b.c").1, "a/b.c");
    assert_eq!(read(" corbaname::h#a%20b%5c.c%c3%a9 ").1, "a b\\.cé");
    let (context, name) = read("corbaname:iiop:1.2@a:1,:b:2/Key#x");
    assert_eq!(context, "corbaloc:iiop:1.2@a:1,iiop:1.0@b:2/Key");
    assert_eq!(name, "x");
    for (text, offset, fault) in [
        ("corbaloc::h#x", 0, CorbalocFault::NamePrefix),
        ("corbaname:h#x", 10, CorbalocFault::Protocol),
        ("corbaname::h#a%2", 14, CorbalocFault::Escape),
        ("corbaname::h#%ff", 13, CorbalocFault::NameCharacter),
    ] {
        assert_eq!(parse_name(text), Err(CorbalocError { offset, fault }), "{text}");
    }
}

#[test]
fn faults_are_named_where_they_are() {
    bad("IOR:00", 0, CorbalocFault::Prefix);
    bad("  corbaname::h#x", 2, CorbalocFault::Corbaname);
    bad("corbaloc:h/k", 9, CorbalocFault::Protocol);
    bad("corbaloc::a,b/k", 12, CorbalocFault::Protocol);
    bad("corbaloc:ssliop:h/k", 9, CorbalocFault::Protocol);
    bad("corbaloc::/k", 10, CorbalocFault::NoHost);
    bad("corbaloc::[]/k", 10, CorbalocFault::NoHost);
    bad("corbaloc::a b/k", 10, CorbalocFault::Host);
    bad("corbaloc::[[a]/k", 10, CorbalocFault::Host);
    bad("corbaloc::[::1/k", 10, CorbalocFault::Bracket);
    bad("corbaloc::[::1]5/k", 15, CorbalocFault::Bracket);
    bad("corbaloc::fe80::1/k", 15, CorbalocFault::Colons);
    for port in ["0", "65536", "x", "+1", "-1"] {
        bad(&format!("corbaloc::h:{port}/k"), 12, CorbalocFault::Port);
    }
    for version in ["1.3", "2.0", "", "x"] {
        bad(&format!("corbaloc::{version}@h/k"), 10, CorbalocFault::Version);
    }
    bad("corbaloc:rir:,:h/k", 0, CorbalocFault::Rir);
    bad("corbaloc:rir:h/k", 13, CorbalocFault::Rir);
    for key in ["%", "%1", "%g0", "%1g"] {
        bad(&format!("corbaloc::h/{key}"), 12, CorbalocFault::Escape);
    }
    bad("corbaloc::h/a b", 13, CorbalocFault::KeyCharacter);
    bad("corbaloc::h/a\u{e4}", 13, CorbalocFault::KeyCharacter);
    let many = format!("corbaloc:{}/k", vec![":h"; ADDRESSES_MAX + 1].join(","));
    bad(&many, 9 + 3 * ADDRESSES_MAX, CorbalocFault::TooManyAddresses);
    let long = format!("corbaloc::h/{}", "k".repeat(OBJECT_KEY_BYTES_MAX + 1));
    bad(&long, 12 + OBJECT_KEY_BYTES_MAX, CorbalocFault::KeyTooLong);
    let error = parse("corbaloc::h:x/k").unwrap_err().to_string();
    assert_eq!(error, "malformed corbaloc at character 12: a port is a number from 1 to 65535");
}

#[test]
fn addresses_become_profiles_and_come_back() {
    let corbaloc = parse("corbaloc::1.2@a:1,:1.2@b:2/k").unwrap();
    let ior = corbaloc.to_ior();
    assert_eq!(ior.profiles.len(), 2);
    assert_eq!(Corbaloc::from_ior(&ior), Some(corbaloc));
    assert!(parse("corbaloc:rir:").unwrap().to_ior().is_nil());
    assert_eq!(Corbaloc::from_ior(&Ior::nil()), None);
    let mut mixed = ior;
    mixed.profiles.extend(parse("corbaloc::c/other").unwrap().to_ior().profiles);
    assert_eq!(Corbaloc::from_ior(&mixed), None);
}
