//! The channel in the standard's form (Event Service 1.2, §2.1 to §2.3): push and pull on both
//! sides.
//!
//! Invariants: what is not connected is told so; a proxy that has ended does not exist.

use quorba_corba::giop::{Completion, ExceptionKind, SystemException};
use quorba_corba::{Any, Object, raise_system};
use quorba_idl::cos_event_channel_admin::{
    self as admin, AlreadyConnected, proxy_pull_consumer, proxy_pull_supplier, proxy_push_consumer,
    proxy_push_supplier,
};
use quorba_idl::cos_event_comm::{self as comm, Disconnected, pull_supplier, push_consumer};
use quorba_idl::quorba_events;

use crate::channel::{Channel, ConnectFault, gone};
use crate::keys::Place;
use crate::outgoing::Reason;
use crate::push::NOTHING_YET;
use crate::registry::{ConsumerForm, Offered, SupplierForm, Wanted};

/// A channel, and the proxy that is called.
pub(crate) struct CosView<'c>(pub(crate) &'c mut Channel, pub(crate) u64);

impl CosView<'_> {
    fn consumer(&mut self, form: ConsumerForm, id: &str) -> Result<Object, SystemException> {
        let number = self.0.obtain_consumer(form)?;
        Ok(self.0.object(id, Place::Consumer(number)))
    }

    fn supplier(&mut self, form: SupplierForm, id: &str) -> Result<Object, SystemException> {
        let number = self.0.obtain_supplier(form)?;
        Ok(self.0.object(id, Place::Supplier(number)))
    }

    fn check_consumer(&self) -> Result<(), Disconnected> {
        let consumer = self.0.registry.consumers.get(&self.1);
        let is_connected = consumer.is_some_and(|one| one.peer.is_some());
        if is_connected { Ok(()) } else { Err(Disconnected {}) }
    }
}

impl admin::EventChannel for CosView<'_> {
    fn for_consumers(&mut self) -> Result<Object, SystemException> {
        Ok(self.0.object(admin::CONSUMER_ADMIN.id(), Place::Consumers))
    }

    fn for_suppliers(&mut self) -> Result<Object, SystemException> {
        Ok(self.0.object(admin::SUPPLIER_ADMIN.id(), Place::Suppliers))
    }

    fn destroy(&mut self) -> Result<(), SystemException> {
        self.0.destroy().map_err(gone)
    }
}

impl admin::ConsumerAdmin for CosView<'_> {
    fn obtain_push_supplier(&mut self) -> Result<Object, SystemException> {
        self.consumer(ConsumerForm::Push, admin::PROXY_PUSH_SUPPLIER.id())
    }

    fn obtain_pull_supplier(&mut self) -> Result<Object, SystemException> {
        self.consumer(ConsumerForm::Pull, admin::PROXY_PULL_SUPPLIER.id())
    }
}

impl admin::SupplierAdmin for CosView<'_> {
    fn obtain_push_consumer(&mut self) -> Result<Object, SystemException> {
        self.supplier(SupplierForm::Push, admin::PROXY_PUSH_CONSUMER.id())
    }

    fn obtain_pull_consumer(&mut self) -> Result<Object, SystemException> {
        self.supplier(SupplierForm::Pull, admin::PROXY_PULL_CONSUMER.id())
    }
}

impl comm::PushConsumer for CosView<'_> {
    fn push(&mut self, data: Any) -> Result<(), push_consumer::PushError> {
        let supplier = self.0.registry.suppliers.get(&self.1);
        if supplier.is_none_or(|one| one.peer.is_none()) {
            return Err(Disconnected {}.into());
        }
        let event = self.0.event_of(data);
        let refused = self.0.push_of(self.1, alloc::vec![event], false);
        refused.map_err(|refused| SystemException::from(refused).into())
    }

    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        self.0.end_supplier(self.1, Reason::Asked).map_err(gone)
    }
}

impl admin::ProxyPushConsumer for CosView<'_> {
    fn connect_push_supplier(
        &mut self,
        push_supplier: Object,
    ) -> Result<(), proxy_push_consumer::ConnectPushSupplierError> {
        let connected = self.0.connect_supplier(self.1, push_supplier, Offered::default());
        connected.map_err(|fault| match fault {
            ConnectFault::AlreadyConnected => AlreadyConnected {}.into(),
            other => other.system().into(),
        })
    }
}

impl comm::PullConsumer for CosView<'_> {
    fn disconnect_pull_consumer(&mut self) -> Result<(), SystemException> {
        self.0.end_supplier(self.1, Reason::Asked).map_err(gone)
    }
}

impl admin::ProxyPullConsumer for CosView<'_> {
    fn connect_pull_supplier(
        &mut self,
        pull_supplier: Object,
    ) -> Result<(), proxy_pull_consumer::ConnectPullSupplierError> {
        let connected = self.0.connect_supplier(self.1, pull_supplier, Offered::default());
        connected.map_err(|fault| match fault {
            ConnectFault::AlreadyConnected => AlreadyConnected {}.into(),
            other => other.system().into(),
        })
    }
}

impl comm::PushSupplier for CosView<'_> {
    fn disconnect_push_supplier(&mut self) -> Result<(), SystemException> {
        self.0.end_consumer(self.1, Reason::Asked).map_err(gone)
    }
}

impl admin::ProxyPushSupplier for CosView<'_> {
    fn connect_push_consumer(
        &mut self,
        push_consumer: Object,
    ) -> Result<(), proxy_push_supplier::ConnectPushConsumerError> {
        let connected = self.0.connect_consumer(self.1, push_consumer, Wanted::default());
        connected.map_err(|fault| match fault {
            ConnectFault::AlreadyConnected => AlreadyConnected {}.into(),
            other => other.system().into(),
        })
    }
}

impl comm::PullSupplier for CosView<'_> {
    /// The standard's `pull` waits. A servant cannot: it says that there is nothing yet, and the
    /// gateway holds the call, and asks [`Channel::has_event`].
    fn pull(&mut self) -> Result<Any, pull_supplier::PullError> {
        self.check_consumer()?;
        let (kind, completed) = (ExceptionKind::Transient, Completion::No);
        let later = SystemException { kind, minor: NOTHING_YET, completed };
        Ok(self.0.pull(self.1).ok_or(later)?)
    }

    fn try_pull(&mut self) -> Result<(Any, bool), pull_supplier::TryPullError> {
        self.check_consumer()?;
        let data = self.0.pull(self.1);
        let is_there = data.is_some();
        Ok((data.unwrap_or_default(), is_there))
    }

    fn disconnect_pull_supplier(&mut self) -> Result<(), SystemException> {
        self.0.end_consumer(self.1, Reason::Asked).map_err(gone)
    }
}

impl admin::ProxyPullSupplier for CosView<'_> {
    fn connect_pull_consumer(
        &mut self,
        pull_consumer: Object,
    ) -> Result<(), proxy_pull_supplier::ConnectPullConsumerError> {
        let connected = self.0.connect_consumer(self.1, pull_consumer, Wanted::default());
        connected.map_err(|fault| match fault {
            ConnectFault::AlreadyConnected => AlreadyConnected {}.into(),
            other => other.system().into(),
        })
    }
}

/// Whether a consumer's `pull` would be answered, as its gateway asks.
pub(crate) struct Waiting {
    has_event: bool,
    leads: bool,
}

impl quorba_events::Waiting for Waiting {
    fn has_event(&mut self) -> Result<bool, SystemException> {
        // Where events are not kept they are at the leader only, and a reliable channel's times
        // are ordered by it.
        if self.leads { Ok(self.has_event) } else { Err(raise_system(ExceptionKind::Transient)) }
    }
}

impl Channel {
    /// What is said of a consumer, by the member that leads or does not.
    pub(crate) fn waiting(&self, id: u64, leads: bool) -> Waiting {
        Waiting { has_event: self.has_event_for(id), leads }
    }

    /// Whether `pull` at the object with this key gives an event, or an exception, at once; false
    /// if it would have to wait. What may be given again, because another caller may not have seen
    /// it, does not count.
    #[must_use]
    pub fn has_event(&self, key: &[u8]) -> bool {
        match crate::keys::place(&self.base, key) {
            Some(Place::Consumer(id)) => self.has_event_for(id),
            _ => true,
        }
    }

    fn has_event_for(&self, id: u64) -> bool {
        let connected = self.registry.consumers.get(&id).is_some_and(|one| one.peer.is_some());
        !connected || self.running.get(&id).is_none_or(|one| one.queue.len() > 0)
    }
}
