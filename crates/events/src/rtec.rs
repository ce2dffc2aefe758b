//! The channel in the form of TAO's real-time event service.
//!
//! Deviations from TAO: a filter that makes no sense raises TypeError, which TAO never does; what
//! its builders leave out or crash on is refused.

use quorba_corba::Object;
use quorba_corba::giop::SystemException;
use quorba_idl::rtec_event_channel_admin::{
    self as admin, AlreadyConnected, ConsumerQOS, SupplierQOS, TypeError, event_channel,
    proxy_push_consumer, proxy_push_supplier,
};
use quorba_idl::rtec_event_comm::{self as comm, EventSet};

use crate::channel::{Channel, ConnectFault, gone};
use crate::keys::Place;
use crate::outgoing::Reason;
use crate::qos;
use crate::registry::{Change, ConsumerForm, SupplierForm};

/// A channel, and the proxy that is called.
pub(crate) struct RtecView<'c>(pub(crate) &'c mut Channel, pub(crate) u64);

pub(crate) fn append_observer(
    channel: &mut Channel,
    observer: Object,
) -> Result<u32, event_channel::AppendObserverError> {
    let is_full = channel.registry.observers.len() >= channel.settings.limits.observers_max;
    if is_full || observer.is_nil() || channel.check_reference(&observer).is_err() {
        return Err(event_channel::CANTAPPENDOBSERVER {}.into());
    }
    let (handle, change) = (channel.registry.next_observer, Change::Observe { observer });
    channel.check_bytes(&change).map_err(|_| event_channel::CANTAPPENDOBSERVER {})?;
    let observed = channel.change(change);
    observed.map_err(|_| event_channel::CANTAPPENDOBSERVER {})?;
    Ok(handle)
}

pub(crate) fn remove_observer(
    channel: &mut Channel,
    handle: u32,
) -> Result<(), event_channel::RemoveObserverError> {
    let removed = channel.change(Change::Unobserve { handle });
    removed.map_err(|_| event_channel::CANTREMOVEOBSERVER {}.into())
}

impl admin::EventChannel for RtecView<'_> {
    fn for_consumers(&mut self) -> Result<Object, SystemException> {
        Ok(self.0.object(admin::CONSUMER_ADMIN.id(), Place::RtecConsumers))
    }

    fn for_suppliers(&mut self) -> Result<Object, SystemException> {
        Ok(self.0.object(admin::SUPPLIER_ADMIN.id(), Place::RtecSuppliers))
    }

    fn destroy(&mut self) -> Result<(), SystemException> {
        self.0.destroy().map_err(gone)
    }

    fn append_observer(
        &mut self,
        gw: Object,
    ) -> Result<admin::ObserverHandle, event_channel::AppendObserverError> {
        append_observer(self.0, gw)
    }

    fn remove_observer(
        &mut self,
        gw: admin::ObserverHandle,
    ) -> Result<(), event_channel::RemoveObserverError> {
        remove_observer(self.0, gw)
    }
}

impl admin::ConsumerAdmin for RtecView<'_> {
    fn obtain_push_supplier(&mut self) -> Result<Object, SystemException> {
        let number = self.0.obtain_consumer(ConsumerForm::Rtec)?;
        Ok(self.0.object(admin::PROXY_PUSH_SUPPLIER.id(), Place::Consumer(number)))
    }
}

impl admin::SupplierAdmin for RtecView<'_> {
    fn obtain_push_consumer(&mut self) -> Result<Object, SystemException> {
        let number = self.0.obtain_supplier(SupplierForm::Rtec)?;
        Ok(self.0.object(admin::PROXY_PUSH_CONSUMER.id(), Place::Supplier(number)))
    }
}

impl comm::PushSupplier for RtecView<'_> {
    fn disconnect_push_supplier(&mut self) -> Result<(), SystemException> {
        self.0.end_consumer(self.1, Reason::Asked).map_err(gone)
    }
}

impl admin::ProxyPushSupplier for RtecView<'_> {
    fn connect_push_consumer(
        &mut self,
        push_consumer: Object,
        qos: ConsumerQOS,
    ) -> Result<(), proxy_push_supplier::ConnectPushConsumerError> {
        let connected = self.0.connect_consumer(self.1, push_consumer, qos::wanted(&qos));
        connected.map_err(|fault| match fault {
            ConnectFault::AlreadyConnected => AlreadyConnected {}.into(),
            ConnectFault::Filter(_) => TypeError {}.into(),
            other @ ConnectFault::System(_) => other.system().into(),
        })
    }

    fn suspend_connection(&mut self) -> Result<(), SystemException> {
        self.0.change(Change::Suspend { id: self.1, is_suspended: true }).map_err(gone)
    }

    fn resume_connection(&mut self) -> Result<(), SystemException> {
        self.0.change(Change::Suspend { id: self.1, is_suspended: false }).map_err(gone)
    }
}

impl comm::PushConsumer for RtecView<'_> {
    /// A oneway: who is not connected hears nothing of it, as with TAO.
    fn push(&mut self, data: EventSet) -> Result<(), SystemException> {
        let supplier = self.0.registry.suppliers.get(&self.1);
        if supplier.is_none_or(|one| one.peer.is_none()) {
            return Ok(());
        }
        Ok(self.0.push_of(self.1, data, true)?)
    }

    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        self.0.end_supplier(self.1, Reason::Asked).map_err(gone)
    }
}

impl admin::ProxyPushConsumer for RtecView<'_> {
    fn connect_push_supplier(
        &mut self,
        push_supplier: Object,
        qos: SupplierQOS,
    ) -> Result<(), proxy_push_consumer::ConnectPushSupplierError> {
        let connected = self.0.connect_supplier(self.1, push_supplier, qos::offered(&qos));
        connected.map_err(|fault| match fault {
            ConnectFault::AlreadyConnected => AlreadyConnected {}.into(),
            other => other.system().into(),
        })
    }
}
