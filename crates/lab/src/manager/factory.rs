//! What the measured services call: a factory whose object is there already, and a consumer of
//! fault reports that knows when each came.
//!
//! What it is not: a server of a domain; both run in this process.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Instant;

use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Call, Interface, Object, Objects};
use quorba_idl::cos_notification::{EventTypeSeq, StructuredEvent};
use quorba_idl::cos_notify_comm::notify_publish::OfferChangeError;
use quorba_idl::cos_notify_comm::structured_push_consumer::PushStructuredEventError;
use quorba_idl::cos_notify_comm::{self, NotifyPublish, StructuredPushConsumer};
use quorba_idl::ft;
use quorba_idl::ft::generic_factory::{CreateObjectError, DeleteObjectError};

/// A factory that gives the same object to all.
pub(super) struct Factory(pub(super) Object);

impl Objects for Factory {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(ft::GENERIC_FACTORY)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        ft::dispatch_generic_factory(self, call)
    }
}

impl ft::GenericFactory for Factory {
    fn create_object(
        &mut self,
        _: ft::TypeId,
        _: ft::Criteria,
    ) -> Result<(Object, Any), CreateObjectError> {
        Ok((self.0.clone(), Any::new(&1_u64).unwrap_or_default()))
    }

    fn delete_object(&mut self, _: Any) -> Result<(), DeleteObjectError> {
        Ok(())
    }
}

/// A consumer of fault reports.
pub(super) struct Consumer(Sender<(Instant, String)>);

impl Consumer {
    /// One, and where it says when which location was reported.
    pub(super) fn new() -> (Self, Receiver<(Instant, String)>) {
        let (sender, reports) = mpsc::channel();
        (Self(sender), reports)
    }
}

impl Objects for Consumer {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(cos_notify_comm::STRUCTURED_PUSH_CONSUMER)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        cos_notify_comm::dispatch_structured_push_consumer(self, call)
    }
}

impl NotifyPublish for Consumer {
    fn offer_change(&mut self, _: EventTypeSeq, _: EventTypeSeq) -> Result<(), OfferChangeError> {
        Ok(())
    }
}

impl StructuredPushConsumer for Consumer {
    fn push_structured_event(
        &mut self,
        notification: StructuredEvent,
    ) -> Result<(), PushStructuredEventError> {
        let mut items = notification.filterable_data.iter();
        let location = items.find(|item| item.name == "Location");
        let location: Option<ft::Location> = location.and_then(|item| item.value.get());
        let location = location.and_then(|name| name.into_iter().next()).map(|part| part.id);
        // The lab may have ended its measurement.
        let _is_heard = self.0.send((Instant::now(), location.unwrap_or_default()));
        Ok(())
    }

    fn disconnect_structured_push_consumer(&mut self) -> Result<(), SystemException> {
        Ok(())
    }
}
