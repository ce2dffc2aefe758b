//! The manager: its state, its objects, and what they have in common.
//!
//! Invariant: an object's key says in which form it is called, and nothing else differs.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use quorba_corba::giop::ior::{FtGroup, GroupReference, group_reference};
use quorba_corba::giop::{ExceptionKind, MessageError, SystemException};
use quorba_corba::{Call, Interface, Object, Objects, Transport, raise_system};
use quorba_idl::quorba::DomainStub;
use quorba_idl::{cos_notify_comm, ft, portable_group, quorba, tao_ft};

use crate::fault::Fault;
use crate::faults::FaultsView;
use crate::group::Group;
use crate::omg::OmgView;
use crate::property::Values;
use crate::pushed::{Heard, PushView};
use crate::reports::Reports;
use crate::tao::{RegistryView, TaoView};
use crate::trials::Trials;

/// The key of the manager in the standard's form.
pub const MANAGER_KEY: &str = "ReplicationManager";
/// The key of the manager for clients linked with TAO.
pub const TAO_KEY: &str = "TAO/ReplicationManager";
/// The key of TAO's registry of factories.
pub(crate) const REGISTRY_KEY: &str = "TAO/FactoryRegistry";
/// The key of the consumer that is told of faults.
pub const FAULTS_KEY: &str = "ReplicationManager/faults";
/// The key of the object that is told by members that they live.
pub const PUSH_KEY: &str = "PushMonitor";
/// The key of the object that is told to look again.
pub const WATCHER_KEY: &str = "ReplicationManager/watcher";
/// The key of the object that hands out the state.
pub const STATE_KEY: &str = "ReplicationManager/state";

/// How large everything may become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Object groups.
    pub groups_max: usize,
    /// Types with properties of their own.
    pub types_max: usize,
    /// Factories in the registry.
    pub factories_max: usize,
    /// Octets of a type's id.
    pub type_id_bytes_max: usize,
    /// Octets of what a definition says of a group.
    pub note_bytes_max: usize,
    /// How long a new member's server may take to be in, in milliseconds.
    pub start_ms: u32,
    /// How long a server that takes another one's place may take to be in or to be given a state,
    /// before another node is tried, in milliseconds: longer than nodes wait for a server where
    /// nobody has said how long (`start_timeout_ms`).
    pub replace_ms: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            groups_max: 50_000,
            types_max: 1_000,
            factories_max: 1_000,
            type_id_bytes_max: 512,
            note_bytes_max: 24 << 10,
            start_ms: 10_000,
            replace_ms: 20_000,
        }
    }
}

/// A factory that was registered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Registered {
    pub(crate) type_id: String,
    pub(crate) info: ft::FactoryInfo,
}

/// What replicas have alike.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct State {
    /// The domain's id; empty until it was asked.
    pub(crate) domain_id: String,
    pub(crate) next_group: u64,
    /// Numbers below this are never given out again, whatever is forgotten.
    pub(crate) reserved: u64,
    pub(crate) groups: BTreeMap<u64, Group>,
    /// Groups of which nobody knows whether they are still there.
    pub(crate) garbage: BTreeSet<u64>,
    /// Groups of which the domain may have another definition than this one: a change was not
    /// answered.
    pub(crate) doubtful: BTreeSet<u64>,
    pub(crate) defaults: Values,
    pub(crate) types: BTreeMap<String, Values>,
    pub(crate) notifier: Option<Object>,
    /// By role and location.
    pub(crate) registry: BTreeMap<(String, String), Registered>,
    /// What is written down may be something else.
    pub(crate) is_unsaved: bool,
    pub(crate) reports: Reports,
    pub(crate) trials: Trials,
}

/// A ReplicationManager that reaches the domain by `D`.
pub struct Manager<D> {
    pub(crate) domain: D,
    pub(crate) state: State,
    pub(crate) limits: Limits,
    /// The group that the manager is itself: in its definition it keeps what is of no group.
    pub(crate) own_group: String,
    /// The reference to the registry, as clients get it.
    pub(crate) registry: Object,
    pub(crate) heard: Heard,
}

/// Which object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Manager,
    Tao,
    Registry,
    Faults,
    Push,
    Watcher,
    State,
}

fn place(key: &[u8]) -> Option<Place> {
    let places = [
        (MANAGER_KEY, Place::Manager),
        (TAO_KEY, Place::Tao),
        (REGISTRY_KEY, Place::Registry),
        (FAULTS_KEY, Place::Faults),
        (PUSH_KEY, Place::Push),
        (WATCHER_KEY, Place::Watcher),
        (STATE_KEY, Place::State),
    ];
    places.iter().find(|(known, _)| known.as_bytes() == key).map(|(_, place)| *place)
}

/// What a group is called in the domain.
pub(crate) fn group_name(id: u64) -> String {
    format!("object-{id}")
}

impl<D: Transport> Manager<D> {
    /// One that knows nothing yet. `own_group` is the group behind which it stands, and `home`
    /// where that is reached.
    #[must_use]
    pub fn new(domain: D, own_group: &str, home: &quorba_corba::Home, limits: Limits) -> Self {
        let registry = home.object(portable_group::FACTORY_REGISTRY.id(), REGISTRY_KEY.as_bytes());
        let state = State { next_group: 1, ..State::default() };
        let (own_group, heard) = (String::from(own_group), Heard::default());
        Self { domain, state, limits, own_group, registry, heard }
    }

    /// How many groups there are.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.state.groups.len()
    }

    /// Whether it knows what there is, and need not ask first.
    #[must_use]
    pub const fn has_memory(&self) -> bool {
        !self.state.domain_id.is_empty()
    }

    /// Whether something is left to do that it knows of without asking.
    #[must_use]
    pub fn has_work(&self) -> bool {
        let is_short =
            |group: &Group| group.is_by_infrastructure() && group.members.len() < group.minimum();
        !self.has_memory() || self.has_debts() || self.state.groups.values().any(is_short)
    }

    /// Whether something is to be written down or removed that could not be when it was to.
    #[must_use]
    pub fn has_debts(&self) -> bool {
        let State { is_unsaved, garbage, doubtful, .. } = &self.state;
        *is_unsaved || !garbage.is_empty() || !doubtful.is_empty()
    }

    /// What it knows, as octets.
    #[must_use]
    pub fn state(&self) -> Vec<u8> {
        crate::state::write(&self.state)
    }

    /// Takes over what another one handed out by [`Manager::state`].
    ///
    /// # Errors
    /// If it is no such state; then nothing changes.
    pub fn take_over(&mut self, state: &[u8]) -> Result<(), MessageError> {
        self.state = crate::state::read(state)?;
        self.heard = Heard::default();
        Ok(())
    }

    pub(crate) const fn domain(&mut self) -> DomainStub<'_> {
        DomainStub(&mut self.domain)
    }

    /// The number of the group that a reference names, if it is one of this domain's.
    pub(crate) fn group_of(&self, reference: &Object) -> Result<u64, Fault> {
        let named = reference.0.ft_group().ok_or(Fault::ObjectGroupNotFound)?;
        let is_ours = named.domain_id == self.state.domain_id.as_bytes();
        let is_known = self.state.groups.contains_key(&named.group_id);
        if is_ours && is_known { Ok(named.group_id) } else { Err(Fault::ObjectGroupNotFound) }
    }

    pub(crate) fn group(&self, id: u64) -> Result<&Group, Fault> {
        self.state.groups.get(&id).ok_or(Fault::ObjectGroupNotFound)
    }

    /// The reference to a group without members (FT-CORBA §23.2.2).
    pub(crate) fn empty_reference(&self, id: u64, group: &Group) -> Object {
        let named = FtGroup {
            domain_id: self.state.domain_id.clone().into_bytes(),
            group_id: id,
            reference_version: group.version,
        };
        Object(group_reference(&GroupReference {
            type_id: group.type_id.as_bytes(),
            object_key: &[],
            gateways: &[],
            tls: &[],
            group: Some(&named),
            primary: None,
            heartbeat_enabled: false,
            components: &[],
        }))
    }
}

impl<D: Transport> Objects for Manager<D> {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        Some(match place(key)? {
            Place::Manager => ft::REPLICATION_MANAGER,
            Place::Tao => tao_ft::REPLICATION_MANAGER,
            Place::Registry => portable_group::FACTORY_REGISTRY,
            Place::Faults => cos_notify_comm::STRUCTURED_PUSH_CONSUMER,
            Place::Push => quorba::PUSH_MONITOR,
            Place::Watcher => quorba::WATCHER,
            Place::State => ft::CHECKPOINTABLE,
        })
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        let place = place(key).ok_or(raise_system(ExceptionKind::ObjectNotExist))?;
        if place == Place::State {
            return ft::dispatch_checkpointable(self, call);
        }
        self.remember()?;
        if place == Place::Push {
            return quorba::dispatch_push_monitor(&mut PushView(self), call);
        }
        // Whatever else is called may change who is in which group.
        self.heard.index = None;
        let done = match place {
            Place::Manager => ft::dispatch_replication_manager(&mut OmgView(self), call),
            Place::Tao => tao_ft::dispatch_replication_manager(&mut TaoView(self), call),
            Place::Registry => {
                portable_group::dispatch_factory_registry(&mut RegistryView(self), call)
            }
            Place::Faults => {
                cos_notify_comm::dispatch_structured_push_consumer(&mut FaultsView(self), call)
            }
            Place::Watcher => quorba::dispatch_watcher(&mut FaultsView(self), call),
            Place::Push | Place::State => Ok(()),
        };
        self.forget_gone();
        self.forget_trials();
        done
    }
}
