//! The objects of the service itself: all channels, what the leader decides, and the state.
//!
//! Invariant: a state that cannot be read whole changes nothing.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quorba_base::channel::{Bounds, ChannelRule, LINE_BYTES_MAX};
use quorba_corba::giop::cdr::{Reader, Writer};
use quorba_corba::giop::{MessageError, SystemException};
use quorba_corba::{Any, Object};
use quorba_idl::checkpoint::{give_state, take_state};
use quorba_idl::ft::checkpointable::{GetStateError, SetStateError};
use quorba_idl::ft::{self, Checkpointable};
use quorba_idl::quorba::{EventServiceFigures, MissingChannel};
use quorba_idl::quorba_events::channels::{
    AlreadyThere, ChannelError, CreateError, DisconnectError, EndedError, Invalid, IsFiled,
    NoSuchChannel, NoSuchProxy, RemoveError, ShowError,
};
use quorba_idl::quorba_events::{
    self, Acknowledgements, AllTaken, ChannelInfo, ChannelInfos, Channels, Decisions, EndFigures,
    EndReason, FiledChannels, Missing, Missings, ProxyInfos,
};

use crate::agenda::Agenda;
use crate::outgoing::{Proposal, Reason};
use crate::registry::Numbers;
use crate::service::{CHANNELS_MAX, EventService, Held, NotMade, TEXT_BYTES_MAX, is_name};
use crate::shown::{ends, figures, info, proxies};
use crate::state::ORDER;

/// What a state begins with: a name, and the version of what follows.
const HEAD: &[u8] = b"QEVSERV\x03";
/// The same of a state without the next numbers.
const HEAD_2: &[u8] = b"QEVSERV\x02";
/// The same of a state without bounds, and without channels that are missing, either.
const HEAD_1: &[u8] = b"QEVSERV\x01";

fn read_text(from: &mut Reader<'_>, bytes_max: usize) -> Result<String, MessageError> {
    let octets = from.read_octets(bytes_max, "text")?;
    core::str::from_utf8(octets).map(ToString::to_string).map_err(|_| from.wrong("text"))
}

fn read_name(from: &mut Reader<'_>) -> Result<String, MessageError> {
    let name = read_text(from, TEXT_BYTES_MAX)?;
    if is_name(&name) { Ok(name) } else { Err(from.wrong("name")) }
}

fn read_missing(from: &mut Reader<'_>) -> Result<BTreeMap<String, (String, String)>, MessageError> {
    let mut missing = BTreeMap::new();
    for _ in 0..from.read_count(12, CHANNELS_MAX, "missing")? {
        let (name, settings) = (read_name(from)?, read_text(from, LINE_BYTES_MAX)?);
        if missing.insert(name, (settings, read_text(from, TEXT_BYTES_MAX)?)).is_some() {
            return Err(from.wrong("missing"));
        }
    }
    Ok(missing)
}

impl Channels for EventService {
    fn list(&mut self) -> Result<ChannelInfos, SystemException> {
        Ok(self.channels.iter().map(|(name, held)| info(name, held)).collect())
    }

    fn missing(&mut self) -> Result<Missings, SystemException> {
        let all = Self::missing(self);
        Ok(all
            .map(|(name, why)| Missing { name: name.to_string(), why: why.to_string() })
            .collect())
    }

    fn show(&mut self, name: String) -> Result<(ChannelInfo, ProxyInfos), ShowError> {
        let held = self.channels.get(&name).ok_or(NoSuchChannel {})?;
        Ok((info(&name, held), proxies(held)))
    }

    fn ended(&mut self, name: String) -> Result<EndFigures, EndedError> {
        Ok(ends(self.channels.get(&name).ok_or(NoSuchChannel {})?))
    }

    fn channel(&mut self, name: String) -> Result<Object, ChannelError> {
        let held = self.channels.get(&name).ok_or(NoSuchChannel {})?;
        Ok(held.channel.cos_reference())
    }

    /// To create it again with the same settings is to find it.
    fn create(&mut self, name: String, settings: String) -> Result<Object, CreateError> {
        let rule = ChannelRule::parse(&settings).map_err(|why| Invalid { why })?;
        if let Some(held) = self.channels.get(&name).filter(|held| held.rule == rule) {
            return Ok(held.channel.cos_reference());
        }
        match self.make(&name, rule, false) {
            Ok(channel) => Ok(channel.cos_reference()),
            Err(NotMade::AlreadyThere) => Err(AlreadyThere {}.into()),
            Err(NotMade::Invalid(why)) => Err(Invalid { why }.into()),
        }
    }

    fn remove(&mut self, name: String) -> Result<(), RemoveError> {
        if self.channels.get(&name).ok_or(NoSuchChannel {})?.is_filed {
            return Err(IsFiled {}.into());
        }
        Self::remove(self, &name);
        Ok(())
    }

    fn disconnect(&mut self, name: String, proxy: u64) -> Result<(), DisconnectError> {
        if !self.channels.contains_key(&name) {
            return Err(NoSuchChannel {}.into());
        }
        if !self.has_proxy(&name, proxy) {
            return Err(NoSuchProxy {}.into());
        }
        self.tick_channel(&name);
        // A number is that of one proxy, of a consumer or of a supplier.
        let ended = self.with_channel(&name, |channel| {
            let ended = channel.end_consumer(proxy, Reason::Removed);
            ended.or_else(|_| channel.end_supplier(proxy, Reason::Removed))
        });
        ended.ok_or(NoSuchChannel {})?.map_err(|_| NoSuchProxy {}.into())
    }
}

impl EventService {
    /// What all channels do, for the status of the node.
    #[must_use]
    pub fn figures(&self) -> EventServiceFigures {
        let missing = self.missing();
        EventServiceFigures {
            channels: self.channels.iter().map(|(name, held)| figures(name, held)).collect(),
            missing: missing
                .map(|(name, why)| MissingChannel { name: name.to_string(), why: why.to_string() })
                .collect(),
        }
    }

    fn carry_out(&mut self, name: &str, proposal: Proposal) {
        self.tick_channel(name);
        self.with_channel(name, |channel| channel.carry_out(proposal));
    }

    /// The connection that a proxy of a consumer, or else of a supplier, has now.
    fn connection(&self, name: &str, proxy: u64, is_consumer: bool) -> Option<u64> {
        let registry = &self.channels.get(name)?.channel.registry;
        if is_consumer {
            registry.consumers.get(&proxy).map(|one| one.connection)
        } else {
            registry.suppliers.get(&proxy).map(|one| one.connection)
        }
    }

    /// All that replicas have alike, as octets.
    #[must_use]
    pub fn state(&self) -> Vec<u8> {
        let mut out = Writer::new(ORDER);
        out.write_raw(HEAD);
        out.write_u64(self.numbers.proxy);
        out.write_u32(self.numbers.observer);
        out.write_bool(self.is_configured);
        out.write_u64(self.bounds.channels_bytes);
        out.write_u64(self.bounds.reliable_bytes);
        out.write_count(self.missing.len());
        for (name, (settings, why)) in &self.missing {
            [name, settings, why].iter().for_each(|text| out.write_octets(text.as_bytes()));
        }
        out.write_count(self.channels.len());
        for (name, held) in &self.channels {
            out.write_octets(name.as_bytes());
            out.write_octets(held.rule.to_string().as_bytes());
            out.write_bool(held.is_filed);
            out.write_octets(&held.channel.state());
        }
        out.finish()
    }

    /// Takes over what another one handed out by [`EventService::state`].
    ///
    /// # Errors
    /// If it is no such state; then nothing changes.
    pub fn take_over(&mut self, octets: &[u8]) -> Result<(), MessageError> {
        let mut from = Reader::new(octets, ORDER);
        let head = from.take(HEAD.len(), "head")?;
        if ![HEAD, HEAD_2, HEAD_1].contains(&head) {
            return Err(from.wrong("head"));
        }
        let mut numbers = Numbers::FIRST;
        if head == HEAD {
            numbers.proxy = from.read_u64("proxies")?;
            numbers.observer = from.read_u32("observers")?;
        }
        let is_configured = from.read_bool("configured")?;
        let (mut bounds, mut missing) = (Bounds::default(), BTreeMap::new());
        if head != HEAD_1 {
            bounds.channels_bytes = from.read_u64("bounds")?;
            bounds.reliable_bytes = from.read_u64("bounds")?;
            missing = read_missing(&mut from)?;
        }
        let mut channels = BTreeMap::new();
        for _ in 0..from.read_count(13, CHANNELS_MAX, "channels")? {
            let name = read_name(&mut from)?;
            let rule = ChannelRule::parse(&read_text(&mut from, LINE_BYTES_MAX)?);
            let rule = rule.map_err(|_| from.wrong("settings"))?;
            let is_filed = from.read_bool("filed")?;
            let mut channel = self.empty(&name, &rule).map_err(|_| from.wrong("settings"))?;
            channel.take_over(from.read_octets(usize::MAX, "channel")?)?;
            let behind = numbers.behind(channel.registry.numbers());
            if head == HEAD && behind != numbers {
                return Err(from.wrong("numbers"));
            }
            numbers = behind;
            let held = Held::new(&name, rule, is_filed, channel);
            if channels.insert(name, held).is_some() {
                return Err(from.wrong("name"));
            }
        }
        if from.remaining() > 0 {
            return Err(from.wrong("end"));
        }
        let (ended, unsaid) = (Self::ended(self) + 1, self.unsaid());
        self.tickets = self.next_ticket();
        (self.channels, self.is_configured) = (channels, is_configured);
        self.agenda = Agenda::default();
        self.channels.values_mut().for_each(|held| held.note(&mut self.agenda));
        (self.ended, self.unsaid) = (ended, unsaid);
        (self.bounds, self.missing, self.numbers) = (bounds, missing, numbers);
        Ok(())
    }
}

impl Checkpointable for EventService {
    fn get_state(&mut self) -> Result<ft::State, GetStateError> {
        give_state(self.state())
    }

    fn set_state(&mut self, s: ft::State) -> Result<(), SetStateError> {
        take_state(self.take_over(&s))
    }
}

impl Decisions for EventService {
    fn configure(
        &mut self,
        channels: FiledChannels,
        together: quorba_events::Bounds,
    ) -> Result<(), SystemException> {
        let quorba_events::Bounds { channels_bytes, reliable_bytes } = together;
        Self::configure(self, &channels, Bounds { channels_bytes, reliable_bytes });
        Ok(())
    }

    fn taken(&mut self, all: AllTaken) -> Result<(), SystemException> {
        for one in all {
            let (consumer, number, came) = (one.consumer, one.last, one.came);
            self.with_channel(&one.channel, |channel| channel.taken(consumer, number, came));
        }
        Ok(())
    }

    fn acknowledge(&mut self, all: Acknowledgements) -> Result<(), SystemException> {
        for one in all {
            let (consumer, number) = (one.consumer, one.last);
            self.with_channel(&one.channel, |channel| channel.acknowledge(consumer, number));
        }
        Ok(())
    }

    fn end_consumer(
        &mut self,
        channel: String,
        consumer: u64,
        too_slow: bool,
    ) -> Result<(), SystemException> {
        let why = if too_slow { Reason::TooSlow } else { Reason::Gone };
        let connection = self.connection(&channel, consumer, true).unwrap_or_default();
        self.carry_out(&channel, Proposal::EndConsumer { consumer, connection, why });
        Ok(())
    }

    fn end_supplier(
        &mut self,
        channel: String,
        supplier: u64,
        too_large: bool,
    ) -> Result<(), SystemException> {
        let why = if too_large { Reason::TooLarge } else { Reason::Gone };
        let connection = self.connection(&channel, supplier, false).unwrap_or_default();
        self.carry_out(&channel, Proposal::EndSupplier { supplier, connection, why });
        Ok(())
    }

    fn end_proxy(
        &mut self,
        channel: String,
        proxy: u64,
        connection: u64,
        why: EndReason,
    ) -> Result<(), SystemException> {
        let why = Reason::from(why);
        // A number is that of one proxy, of a consumer or of a supplier.
        let proposal = match self.connection(&channel, proxy, true) {
            Some(_) => Proposal::EndConsumer { consumer: proxy, connection, why },
            None => Proposal::EndSupplier { supplier: proxy, connection, why },
        };
        self.carry_out(&channel, proposal);
        Ok(())
    }

    fn end_observer(&mut self, channel: String, observer: u32) -> Result<(), SystemException> {
        self.carry_out(&channel, Proposal::EndObserver { observer });
        Ok(())
    }

    fn pulled(&mut self, channel: String, supplier: u64, data: Any) -> Result<(), SystemException> {
        self.carry_out(&channel, Proposal::Pulled { supplier, data });
        Ok(())
    }

    fn look(&mut self, channel: String) -> Result<(), SystemException> {
        self.tick_channel(&channel);
        Ok(())
    }
}
