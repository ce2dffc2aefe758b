//! Which interface each object has, and where its calls go; and the object that hands out the
//! state.
//!
//! Invariant: an object that has ended does not exist.

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Call, Interface, Objects, raise_system};
use quorba_idl::checkpoint::{give_state, take_state};
use quorba_idl::ft::checkpointable::{GetStateError, SetStateError};
use quorba_idl::ft::{self, Checkpointable};
use quorba_idl::{
    cos_event_channel_admin as cos, ft_rtec_event_channel_admin as ft_rtec, quorba_events,
    rtec_event_channel_admin as rtec,
};

use crate::channel::Channel;
use crate::cos::CosView;
use crate::facade::FacadeView;
use crate::keys::{Place, place};
use crate::registry::{ConsumerForm, SupplierForm};
use crate::rtec::RtecView;

impl Channel {
    pub(crate) fn interface_of(&self, place: Place) -> Option<Interface> {
        Some(match place {
            Place::State => ft::CHECKPOINTABLE,
            _ if self.registry.is_destroyed => return None,
            Place::Channel => cos::EVENT_CHANNEL,
            Place::Consumers => cos::CONSUMER_ADMIN,
            Place::Suppliers => cos::SUPPLIER_ADMIN,
            Place::Rtec => rtec::EVENT_CHANNEL,
            Place::RtecConsumers => rtec::CONSUMER_ADMIN,
            Place::RtecSuppliers => rtec::SUPPLIER_ADMIN,
            Place::Facade => ft_rtec::EVENT_CHANNEL,
            Place::Numbered => quorba_events::NUMBERED_CHANNEL,
            Place::Consumer(id) => match self.registry.consumers.get(&id)?.form {
                ConsumerForm::Push => cos::PROXY_PUSH_SUPPLIER,
                ConsumerForm::Pull => cos::PROXY_PULL_SUPPLIER,
                ConsumerForm::Rtec => rtec::PROXY_PUSH_SUPPLIER,
                ConsumerForm::Facade | ConsumerForm::Numbered => return None,
            },
            Place::Supplier(id) => match self.registry.suppliers.get(&id)?.form {
                SupplierForm::Push => cos::PROXY_PUSH_CONSUMER,
                SupplierForm::Pull => cos::PROXY_PULL_CONSUMER,
                SupplierForm::Rtec => rtec::PROXY_PUSH_CONSUMER,
                SupplierForm::Facade => return None,
            },
        })
    }
}

impl Objects for Channel {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        self.interface_of(place(&self.base, key)?)
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        let missing = raise_system(ExceptionKind::ObjectNotExist);
        self.dispatch_at(place(&self.base, key).ok_or(missing)?, call)
    }
}

impl Channel {
    /// A call of one of its objects.
    pub(crate) fn dispatch_at(
        &mut self,
        place: Place,
        call: &mut Call<'_>,
    ) -> Result<(), SystemException> {
        let missing = raise_system(ExceptionKind::ObjectNotExist);
        let interface = self.interface_of(place).ok_or(missing)?;
        let id = match place {
            Place::Consumer(id) | Place::Supplier(id) => id,
            _ => 0,
        };
        match place {
            Place::State => ft::dispatch_checkpointable(self, call),
            Place::Channel => cos::dispatch_event_channel(&mut CosView(self, id), call),
            Place::Consumers => cos::dispatch_consumer_admin(&mut CosView(self, id), call),
            Place::Suppliers => cos::dispatch_supplier_admin(&mut CosView(self, id), call),
            Place::Rtec => rtec::dispatch_event_channel(&mut RtecView(self, id), call),
            Place::RtecConsumers => rtec::dispatch_consumer_admin(&mut RtecView(self, id), call),
            Place::RtecSuppliers => rtec::dispatch_supplier_admin(&mut RtecView(self, id), call),
            Place::Facade => ft_rtec::dispatch_event_channel(&mut FacadeView(self), call),
            Place::Numbered => {
                quorba_events::dispatch_numbered_channel(&mut FacadeView(self), call)
            }
            Place::Consumer(_) if interface == cos::PROXY_PUSH_SUPPLIER => {
                cos::dispatch_proxy_push_supplier(&mut CosView(self, id), call)
            }
            Place::Consumer(_) if interface == cos::PROXY_PULL_SUPPLIER => {
                cos::dispatch_proxy_pull_supplier(&mut CosView(self, id), call)
            }
            Place::Consumer(_) => rtec::dispatch_proxy_push_supplier(&mut RtecView(self, id), call),
            Place::Supplier(_) if interface == cos::PROXY_PUSH_CONSUMER => {
                cos::dispatch_proxy_push_consumer(&mut CosView(self, id), call)
            }
            Place::Supplier(_) if interface == cos::PROXY_PULL_CONSUMER => {
                cos::dispatch_proxy_pull_consumer(&mut CosView(self, id), call)
            }
            Place::Supplier(_) => rtec::dispatch_proxy_push_consumer(&mut RtecView(self, id), call),
        }
    }
}

impl Checkpointable for Channel {
    fn get_state(&mut self) -> Result<ft::State, GetStateError> {
        give_state(self.state())
    }

    fn set_state(&mut self, s: ft::State) -> Result<(), SetStateError> {
        take_state(self.take_over(&s))
    }
}
