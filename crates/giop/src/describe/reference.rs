//! References as text.

use super::{Name, Text, names};
use crate::corbaloc::{Address, Corbaloc, EscapedKey, HostPort};
use crate::ior::{
    CodeSetChoice, Component, ComponentValue, IiopProfile, Ior, Profile, decode_components,
};
use crate::version::Version;
use core::fmt;
use core::net::IpAddr;

pub(super) fn describe(text: &mut Text, ior: &Ior) {
    if ior.is_nil() {
        text.line(format_args!("nil reference: it has no profiles"));
    }
    text.line(format_args!("type {}", Name(&ior.type_id)));
    for (index, profile) in ior.profiles.iter().enumerate() {
        describe_profile(text, index + 1, profile);
    }
}

pub(super) fn describe_corbaloc(text: &mut Text, corbaloc: &Corbaloc) {
    text.line(format_args!("key {}", Name(&corbaloc.object_key)));
    for address in &corbaloc.addresses {
        match address {
            Address::Iiop { version, host, port } => {
                let (at, hint) = (HostPort(host, *port), hint(host));
                text.line(format_args!("IIOP {version} at {at}{hint}"));
            }
            Address::InitialReferences => {
                text.line(format_args!("whatever the ORB was configured with under this name"));
            }
        }
    }
}

/// What most often keeps a reference from working elsewhere.
fn hint(host: &str) -> &'static str {
    let address = host.parse::<IpAddr>().ok();
    if host.eq_ignore_ascii_case("localhost") || address.is_some_and(|ip| ip.is_loopback()) {
        ", which is reachable on its own machine only"
    } else if address.is_some_and(|ip| ip.is_unspecified()) {
        ", which is no address to connect to"
    } else {
        ""
    }
}

fn describe_profile(text: &mut Text, number: usize, profile: &Profile) {
    match profile.tag {
        0 => describe_iiop(text, number, &profile.data),
        1 => {
            let (components, error) = decode_components(&profile.data);
            text.line(format_args!("profile {number}: components without an address"));
            text.deeper(|text| {
                components.iter().for_each(|component| describe_component(text, component));
                describe_fault(text, error, &profile.data);
            });
        }
        tag => {
            let name = names::profile(tag).unwrap_or("unknown");
            let length = profile.data.len();
            text.line(format_args!("profile {number}: tag {tag:#x} ({name}), {length} bytes"));
            text.deeper(|text| text.dump(&profile.data));
        }
    }
}

fn describe_iiop(text: &mut Text, number: usize, data: &[u8]) {
    let (iiop, error) = IiopProfile::decode_partly(data);
    let IiopProfile { version, host, port, object_key, components } = &iiop;
    let (at, hint) = (HostPort(host, *port), hint(host));
    text.line(format_args!("profile {number}: IIOP {version} at {at}{hint}"));
    text.deeper(|text| {
        text.line(format_args!("key {}, in a corbaloc {}", Name(object_key), KeyText(object_key)));
        components.iter().for_each(|component| describe_component(text, component));
        if *version < Version::V1_1 && error.is_none() {
            text.line(format_args!("no components, as IIOP 1.0 has none"));
        }
        describe_fault(text, error, data);
    });
}

/// A key as a corbaloc has it, if it is short enough to be of use.
struct KeyText<'a>(&'a [u8]);

impl fmt::Display for KeyText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get(..super::NAME_BYTES_MAX) {
            Some(begin) => write!(f, "{}...", EscapedKey(begin)),
            None => write!(f, "{}", EscapedKey(self.0)),
        }
    }
}

fn describe_fault(text: &mut Text, error: Option<crate::MessageError>, data: &[u8]) {
    if let Some(error) = error {
        text.line(format_args!("malformed from here on: {error}"));
        text.dump(data);
    }
}

fn describe_component(text: &mut Text, component: &Component) {
    let Component { tag, data } = component;
    let name = names::component(*tag).unwrap_or("unknown");
    match component.value() {
        Some(Ok(value)) => text.line(format_args!("{name}: {}", Value(&value))),
        Some(Err(error)) => {
            text.line(format_args!("{name}: malformed: {error}"));
            text.deeper(|text| text.dump(data));
        }
        None => {
            text.line(format_args!("component {tag:#x} ({name}), {} bytes", data.len()));
            text.deeper(|text| text.dump(data));
        }
    }
}

struct Value<'a>(&'a ComponentValue);

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ComponentValue::OrbType(number) => {
                write!(f, "{} ({number:#010x})", names::orb(*number).unwrap_or("unknown"))
            }
            ComponentValue::CodeSets(info) => {
                let (chars, wide) = (Choice(&info.char_data), Choice(&info.wchar_data));
                write!(f, "char {chars}; wchar {wide}")
            }
            ComponentValue::AlternateAddress { host, port } => {
                write!(f, "{}{}", HostPort(host, *port), hint(host))
            }
            ComponentValue::SslTransport(tls) => {
                let (supports, requires) = (tls.supports, tls.requires);
                write!(
                    f,
                    "TLS at port {}, supports {supports:#x}, requires {requires:#x}",
                    tls.port
                )
            }
            ComponentValue::FtGroup(group) => {
                let (domain, id) = (Name(&group.domain_id), group.group_id);
                write!(f, "domain {domain}, group {id}, version {}", group.reference_version)
            }
            ComponentValue::FtPrimary(primary) => write!(f, "{primary}"),
            ComponentValue::FtHeartbeatEnabled(true) => f.write_str("enabled"),
            ComponentValue::FtHeartbeatEnabled(false) => f.write_str("disabled"),
        }
    }
}

struct Choice<'a>(&'a CodeSetChoice);

impl fmt::Display for Choice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", CodeSet(self.0.native))?;
        for (index, number) in self.0.conversion.iter().enumerate() {
            let before = if index == 0 { ", also " } else { ", " };
            write!(f, "{before}{}", CodeSet(*number))?;
        }
        Ok(())
    }
}

pub(super) struct CodeSet(pub(super) u32);

impl fmt::Display for CodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match names::code_set(self.0) {
            Some(name) => f.write_str(name),
            None if self.0 == 0 => f.write_str("none"),
            None => write!(f, "{:#010x}", self.0),
        }
    }
}
