//! One object group: what it is to be, who is in it, and how that is said to the domain.
//!
//! Invariant: the same group gives the same keys, in one order.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quorba_corba::giop::MessageError;
use quorba_corba::giop::cdr::{Reader, Writer};
use quorba_corba::giop::{Endian, Fault as Wrong};
use quorba_corba::{Any, Object};
use quorba_idl::ft;
use quorba_idl::quorba::Setting;

use crate::fault::Fault;
use crate::levels::over;
use crate::property::{self, Key, ORDER, Value, Values};

/// Ticks of 100 ns in a millisecond.
const TICKS_PER_MS: u64 = 10_000;
/// The longest checkpoint interval that a group's definition takes, in milliseconds.
const CHECKPOINT_MS_MAX: u64 = 86_400_000;

/// The word of `recovery` in definitions: states are the application's. A domain names it where it
/// is why a definition is refused.
pub(crate) const BY_APPLICATION: &str = "application";

/// Where a member's object comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// The node starts its server.
    Local,
    /// A factory of the application made it.
    Made { factory: Object, creation_id: Any, object: Object },
    /// The application added it.
    Added(Object),
}

/// A member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    /// The node.
    pub(crate) location: String,
    pub(crate) origin: Origin,
}

impl Member {
    pub(crate) const fn object(&self) -> Option<&Object> {
        match &self.origin {
            Origin::Local => None,
            Origin::Made { object, .. } | Origin::Added(object) => Some(object),
        }
    }
}

/// A group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Group {
    pub(crate) type_id: String,
    /// What counted when it was created: defaults, the type's and its own.
    pub(crate) creation: Values,
    /// What was set since.
    pub(crate) dynamic: Values,
    /// In the order in which they came.
    pub(crate) members: Vec<Member>,
    /// The version of its reference.
    pub(crate) version: u32,
    /// As the domain gave it last.
    pub(crate) reference: Object,
}

impl Group {
    pub(crate) fn properties(&self) -> Values {
        over(&self.creation, &self.dynamic)
    }

    pub(crate) fn number(&self, key: Key) -> Option<u16> {
        let value = self.dynamic.get(&key).or_else(|| self.creation.get(&key));
        value.and_then(Value::number)
    }

    pub(crate) fn style(&self) -> u16 {
        self.number(Key::ReplicationStyle).unwrap_or(ft::ACTIVE)
    }

    pub(crate) fn is_passive(&self) -> bool {
        matches!(self.style(), ft::COLD_PASSIVE | ft::WARM_PASSIVE)
    }

    /// Whether its members are the manager's business.
    pub(crate) fn is_by_infrastructure(&self) -> bool {
        self.number(Key::MembershipStyle).unwrap_or(ft::MEMB_INF_CTRL) == ft::MEMB_INF_CTRL
    }

    pub(crate) fn is_consistent_by_application(&self) -> bool {
        self.number(Key::ConsistencyStyle) == Some(ft::CONS_APP_CTRL)
    }

    /// Why the domain does not take its definition, if that says so: what goes with its type does
    /// not go with its consistency.
    pub(crate) fn refused_for(&self, why: &str) -> Fault {
        let is_for_that = self.is_consistent_by_application() && why.contains(BY_APPLICATION);
        let wrong = property::consistency(&self.creation).filter(|_| is_for_that);
        wrong.map_or(Fault::ObjectNotCreated, Fault::InvalidProperty)
    }

    pub(crate) fn minimum(&self) -> usize {
        usize::from(self.number(Key::MinimumNumberReplicas).unwrap_or(1))
    }

    pub(crate) fn member(&self, location: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.location == location)
    }

    /// Whether the nodes start its servers; a group has one kind of member only.
    pub(crate) fn is_local(&self) -> bool {
        self.members.iter().all(|member| member.origin == Origin::Local)
    }

    pub(crate) fn locations(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.location.as_str())
    }

    /// The keys of its definition.
    pub(crate) fn settings(&self, id: u64) -> Vec<Setting> {
        let mut settings = Vec::new();
        let mut set = |name: &str, value: String| {
            settings.push(Setting { name: String::from(name), value });
        };
        let members: Vec<String> = self.locations().map(quoted).collect();
        set("members", format!("[{}]", members.join(", ")));
        set("style", quoted(style_word(self.style())));
        set("type_id", quoted(&self.type_id));
        set("ft_group", id.to_string());
        set("ft_version", self.version.to_string());
        set("note", quoted(&self.note()));
        if self.number(Key::FaultMonitoringStyle) == Some(ft::NOT_MONITORED) {
            set("ft_monitored", String::from("false"));
        }
        if self.is_passive() {
            let checkpoint = match self.properties().get(&Key::CheckpointInterval) {
                Some(Value::Time(ticks)) => {
                    (ticks / TICKS_PER_MS).clamp(1, CHECKPOINT_MS_MAX).to_string()
                }
                _ => String::new(),
            };
            set("checkpoint_ms", checkpoint);
        }
        if self.is_consistent_by_application() {
            // What the type says of states does not count, but that it is durable is refused.
            set("state_object", String::new());
            set("replay_bytes", String::new());
            let is_stateless = self.style() == ft::STATELESS;
            set("recovery", if is_stateless { String::new() } else { quoted(BY_APPLICATION) });
        }
        if !self.is_local() {
            let at = |member: &Member| {
                let object = member.object()?;
                let text = object.0.stringify(Endian::Big);
                Some(format!("{} = {}", quoted(&member.location), quoted(&text)))
            };
            let servers: Vec<String> = self.members.iter().filter_map(at).collect();
            set("connect", format!("{{ {} }}", servers.join(", ")));
            if !self.is_consistent_by_application()
                && self.style() != ft::STATELESS
                && let Some(key) = self.state_key()
            {
                set("state_object", quoted(&key));
            }
        }
        settings
    }

    /// The object key that the members have alike: an application's object hands out its state
    /// itself (FT-CORBA §23.5).
    fn state_key(&self) -> Option<String> {
        let first = self.members.first()?.object()?;
        let key = first.0.endpoints().into_iter().next()?.object_key;
        String::from_utf8(key.to_vec()).ok()
    }

    /// Itself, for its definition.
    pub(crate) fn note(&self) -> String {
        let mut note = Writer::new(ORDER);
        self.keep(&mut note);
        hex(&note.finish())
    }

    /// From a definition's note.
    pub(crate) fn of_note(note: &str) -> Option<Self> {
        let octets = of_hex(note)?;
        let mut reader = Reader::new(&octets, ORDER);
        let group = Self::kept(&mut reader).ok()?;
        (reader.remaining() == 0).then_some(group)
    }

    /// Writes it into a state. The reference is not in it.
    pub(crate) fn keep(&self, state: &mut Writer) {
        state.write_octets(self.type_id.as_bytes());
        state.write_u32(self.version);
        property::keep(&self.creation, state);
        property::keep(&self.dynamic, state);
        state.write_count(self.members.len());
        for member in &self.members {
            state.write_octets(member.location.as_bytes());
            match &member.origin {
                Origin::Local => state.write_u8(0),
                Origin::Made { factory, creation_id, object } => {
                    state.write_u8(1);
                    keep_object(factory, state);
                    creation_id.keep(state);
                    keep_object(object, state);
                }
                Origin::Added(object) => {
                    state.write_u8(2);
                    keep_object(object, state);
                }
            }
        }
    }

    /// Reads what [`Group::keep`] wrote.
    pub(crate) fn kept(state: &mut Reader<'_>) -> Result<Self, MessageError> {
        let type_id = kept_text(state, "type")?;
        let version = state.read_u32("version")?;
        let creation = property::kept(state)?;
        let dynamic = property::kept(state)?;
        let mut members: Vec<Member> = Vec::new();
        for _ in 0..state.read_count(5, usize::MAX, "members")? {
            let offset = state.position();
            let fault = MessageError { what: "member", offset, fault: Wrong::Value };
            let location = kept_text(state, "location")?;
            let origin = match state.read_u8("origin")? {
                0 => Origin::Local,
                1 => Origin::Made {
                    factory: kept_object(state)?,
                    creation_id: Any::kept(state)?,
                    object: kept_object(state)?,
                },
                2 => Origin::Added(kept_object(state)?),
                _ => return Err(fault),
            };
            if members.iter().any(|member| member.location == location) {
                return Err(fault);
            }
            members.push(Member { location, origin });
        }
        Ok(Self { type_id, creation, dynamic, members, version, reference: Object::nil() })
    }
}

pub(crate) fn keep_object(object: &Object, state: &mut Writer) {
    state.write_octets(&object.0.encode(ORDER));
}

pub(crate) fn kept_object(state: &mut Reader<'_>) -> Result<Object, MessageError> {
    let offset = state.position();
    let octets = state.read_octets(usize::MAX, "reference")?;
    let object = quorba_corba::giop::ior::Ior::decode(octets)?;
    // One way only to write it.
    if object.encode(ORDER) != octets {
        return Err(MessageError { what: "reference", offset, fault: Wrong::Value });
    }
    Ok(Object(object))
}

pub(crate) fn kept_text(
    state: &mut Reader<'_>,
    what: &'static str,
) -> Result<String, MessageError> {
    let offset = state.position();
    let octets = state.read_octets(usize::MAX, what)?;
    String::from_utf8(octets.to_vec()).map_err(|_| MessageError {
        what,
        offset,
        fault: Wrong::Value,
    })
}

const fn style_word(style: u16) -> &'static str {
    match style {
        ft::STATELESS => "stateless",
        ft::COLD_PASSIVE => "cold-passive",
        ft::WARM_PASSIVE => "warm-passive",
        ft::ACTIVE_WITH_VOTING => "active-with-voting",
        ft::SEMI_ACTIVE => "semi-active",
        _ => "active",
    }
}

/// As a text of TOML.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            control if control < ' ' || control == '\u{7f}' => {
                out.push_str(&format!("\\u{:04X}", u32::from(control)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

pub(crate) fn of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |octet: &u8| (*octet as char).to_digit(16).and_then(|it| u8::try_from(it).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect()
}
