//! The one object of the fault-tolerant event service (Huang and Gill §3.8), and what Quorba adds
//! to it: consumers that are told numbers.
//!
//! What it is not: a manager of its replicas. Who is a replica, and what replicas tell each other,
//! is the domain's matter, so TAO's operations for that are refused.
//!
//! Invariant: an id is that of one proxy, for ever.

use alloc::vec::Vec;

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Object, raise_system};
use quorba_idl::ft_rtec_event_channel_admin::event_channel_facade as errors;
use quorba_idl::ft_rtec_event_channel_admin::{self as ft_rtec, ObjectId};
use quorba_idl::ft_rtec_event_comm::{self as comm, InvalidObjectID, push_consumer};
use quorba_idl::ftrt::{self, object_group_manager, updateable};
use quorba_idl::quorba_events::{self, numbered_channel};
use quorba_idl::rtec_event_channel_admin::{
    self as rtec, ConsumerQOS, SupplierQOS, TypeError, event_channel,
};
use quorba_idl::rtec_event_comm::EventSet;

use crate::channel::{Channel, ConnectFault, gone};
use crate::keys::Place;
use crate::outgoing::Reason;
use crate::registry::{Change, ConsumerForm, NoSuchThing, SupplierForm};
use crate::{qos, rtec as view};

/// What ids begin with. A proxy's number follows, so that they have 16 octets, as TAO's do.
const ID_HEAD: &[u8; 8] = b"QRBEVENT";

fn id(number: u64) -> ObjectId {
    let mut id = Vec::from(ID_HEAD);
    id.extend_from_slice(&number.to_be_bytes());
    id
}

fn number(id: &ObjectId) -> Result<u64, InvalidObjectID> {
    let number = id.strip_prefix(ID_HEAD).and_then(|rest| <[u8; 8]>::try_from(rest).ok());
    number.map(u64::from_be_bytes).ok_or(InvalidObjectID {})
}

fn invalid(_: NoSuchThing) -> InvalidObjectID {
    InvalidObjectID {}
}

/// A channel.
pub(crate) struct FacadeView<'c>(pub(crate) &'c mut Channel);

impl FacadeView<'_> {
    /// The number of a consumer that was connected here.
    fn consumer(&self, id: &ObjectId) -> Result<u64, InvalidObjectID> {
        let number = number(id)?;
        let there = self.0.registry.consumers.get(&number);
        let is_ours = there.is_some_and(|one| one.form.by_facade());
        if is_ours { Ok(number) } else { Err(InvalidObjectID {}) }
    }

    fn supplier(&self, id: &ObjectId) -> Result<u64, InvalidObjectID> {
        let number = number(id)?;
        let there = self.0.registry.suppliers.get(&number);
        let is_ours = there.is_some_and(|one| one.form == SupplierForm::Facade);
        if is_ours { Ok(number) } else { Err(InvalidObjectID {}) }
    }

    fn connect(
        &mut self,
        form: ConsumerForm,
        peer: Object,
        qos: &ConsumerQOS,
    ) -> Result<ObjectId, ConnectFault> {
        let number = self.0.obtain_consumer(form);
        let number = number.map_err(|exception| ConnectFault::System(exception.kind))?;
        if let Err(fault) = self.0.connect_consumer(number, peer, qos::wanted(qos)) {
            // One call, so nothing is left of it.
            let _ = self.0.end_consumer(number, Reason::Asked);
            return Err(fault);
        }
        Ok(id(number))
    }

    fn suspend(&mut self, id: &ObjectId, is_suspended: bool) -> Result<(), InvalidObjectID> {
        let id = self.consumer(id)?;
        self.0.change(Change::Suspend { id, is_suspended }).map_err(invalid)
    }
}

impl comm::PushConsumer for FacadeView<'_> {
    fn push(&mut self, oid: ObjectId, data: EventSet) -> Result<(), push_consumer::PushError> {
        let supplier = self.supplier(&oid)?;
        self.0
            .push_of(supplier, data, false)
            .map_err(|refused| SystemException::from(refused).into())
    }
}

impl ft_rtec::EventChannelFacade for FacadeView<'_> {
    fn connect_push_consumer(
        &mut self,
        push_consumer: Object,
        qos: ConsumerQOS,
    ) -> Result<ObjectId, errors::ConnectPushConsumerError> {
        let connected = self.connect(ConsumerForm::Facade, push_consumer, &qos);
        connected.map_err(|fault| match fault {
            ConnectFault::Filter(_) => TypeError {}.into(),
            other => other.system().into(),
        })
    }

    fn connect_push_supplier(
        &mut self,
        push_supplier: Object,
        qos: SupplierQOS,
    ) -> Result<ObjectId, SystemException> {
        let number = self.0.obtain_supplier(SupplierForm::Facade)?;
        let connected = self.0.connect_supplier(number, push_supplier, qos::offered(&qos));
        if let Err(fault) = connected {
            let _ = self.0.end_supplier(number, Reason::Asked);
            return Err(fault.system());
        }
        Ok(id(number))
    }

    fn disconnect_push_supplier(
        &mut self,
        oid: ObjectId,
    ) -> Result<(), errors::DisconnectPushSupplierError> {
        let id = self.consumer(&oid)?;
        Ok(self.0.end_consumer(id, Reason::Asked).map_err(invalid)?)
    }

    fn disconnect_push_consumer(
        &mut self,
        oid: ObjectId,
    ) -> Result<(), errors::DisconnectPushConsumerError> {
        let id = self.supplier(&oid)?;
        Ok(self.0.end_supplier(id, Reason::Asked).map_err(invalid)?)
    }

    fn suspend_push_supplier(
        &mut self,
        oid: ObjectId,
    ) -> Result<(), errors::SuspendPushSupplierError> {
        Ok(self.suspend(&oid, true)?)
    }

    fn resume_push_supplier(
        &mut self,
        oid: ObjectId,
    ) -> Result<(), errors::ResumePushSupplierError> {
        Ok(self.suspend(&oid, false)?)
    }
}

impl rtec::EventChannel for FacadeView<'_> {
    fn for_consumers(&mut self) -> Result<Object, SystemException> {
        Ok(self.0.object(rtec::CONSUMER_ADMIN.id(), Place::RtecConsumers))
    }

    fn for_suppliers(&mut self) -> Result<Object, SystemException> {
        Ok(self.0.object(rtec::SUPPLIER_ADMIN.id(), Place::RtecSuppliers))
    }

    fn destroy(&mut self) -> Result<(), SystemException> {
        self.0.destroy().map_err(gone)
    }

    fn append_observer(&mut self, gw: Object) -> Result<u32, event_channel::AppendObserverError> {
        view::append_observer(self.0, gw)
    }

    fn remove_observer(&mut self, gw: u32) -> Result<(), event_channel::RemoveObserverError> {
        view::remove_observer(self.0, gw)
    }
}

impl ftrt::Updateable for FacadeView<'_> {
    fn set_update(&mut self, _: ftrt::State) -> Result<(), updateable::SetUpdateError> {
        Err(NOT_OURS.into())
    }

    fn oneway_set_update(&mut self, _: ftrt::State) -> Result<(), SystemException> {
        Err(NOT_OURS)
    }
}

/// What the domain does, and not its clients.
const NOT_OURS: SystemException = raise_system(ExceptionKind::NoPermission);

impl ftrt::FaultListener for FacadeView<'_> {
    fn replica_crashed(&mut self, _: ftrt::Location) -> Result<(), SystemException> {
        Err(NOT_OURS)
    }
}

impl ftrt::ObjectGroupManager for FacadeView<'_> {
    fn start(&mut self, _: Object) -> Result<(bool, ftrt::Location), SystemException> {
        Err(NOT_OURS)
    }

    fn create_group(
        &mut self,
        _: ftrt::ManagerInfoList,
        _: u32,
    ) -> Result<(), object_group_manager::CreateGroupError> {
        Err(NOT_OURS.into())
    }

    fn join_group(&mut self, _: ftrt::ManagerInfo) -> Result<(), SystemException> {
        Err(NOT_OURS)
    }

    fn add_member(&mut self, _: ftrt::ManagerInfo, _: u32) -> Result<(), SystemException> {
        Err(NOT_OURS)
    }

    fn remove_member(&mut self, _: ftrt::Location, _: u32) -> Result<(), SystemException> {
        Err(NOT_OURS)
    }

    fn set_state(&mut self, _: ftrt::State) -> Result<(), object_group_manager::SetStateError> {
        Err(NOT_OURS.into())
    }
}

impl ft_rtec::EventChannel for FacadeView<'_> {}

impl quorba_events::NumberedChannel for FacadeView<'_> {
    fn connect_numbered_consumer(
        &mut self,
        consumer: Object,
        qos: ConsumerQOS,
    ) -> Result<ObjectId, numbered_channel::ConnectNumberedConsumerError> {
        let connected = self.connect(ConsumerForm::Numbered, consumer, &qos);
        connected.map_err(|fault| match fault {
            ConnectFault::Filter(_) => TypeError {}.into(),
            other => other.system().into(),
        })
    }

    fn acknowledge(
        &mut self,
        oid: ObjectId,
        last: quorba_events::Number,
    ) -> Result<(), numbered_channel::AcknowledgeError> {
        let number = self.consumer(&oid)?;
        self.0.acknowledge(number, last);
        Ok(())
    }
}
