//! The interfaces of Quorba's services, generated from the IDL in `idl/`.
//!
//! For each interface of IDL there is a trait that an implementation has, a `dispatch_` function
//! that executes a [`quorba_corba::Call`] by it, a stub that calls such an object, and a constant
//! with its repository ids.
//!
//! What it is not: written by hand, but for the module [`checkpoint`]. `cargo xtask idl --write`
//! makes it; what generated code is made
//! of is the crate `corba`.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod checkpoint;

mod generated {
    //! One module for each file of IDL.
    #[allow(unreachable_pub, reason = "all of it is, under another path")]
    pub(crate) mod checkpointable;
    #[allow(unreachable_pub, reason = "all of it is, under another path")]
    pub(crate) mod domain;
    pub(crate) mod event_channel;
    pub(crate) mod event_comm;
    pub(crate) mod events;
    #[allow(unreachable_pub, reason = "all of it is, under another path")]
    pub(crate) mod fault_tolerance;
    pub(crate) mod ft_rtec;
    pub(crate) mod naming;
    pub(crate) mod notification;
    #[allow(unreachable_pub, reason = "all of it is, under another path")]
    pub(crate) mod push_monitor;
    pub(crate) mod rt_replicas;
    pub(crate) mod rtec_channel;
    pub(crate) mod rtec_comm;
    pub(crate) mod tao;
}

pub use generated::event_channel::cos_event_channel_admin;
pub use generated::event_comm::cos_event_comm;
pub use generated::events::quorba_events;
pub use generated::ft_rtec::{ft_rtec_event_channel_admin, ft_rtec_event_comm};
pub use generated::naming::cos_naming;
pub use generated::notification::{cos_notification, cos_notify_comm, cos_notify_filter};
pub use generated::rt_replicas::ftrt;
pub use generated::rtec_channel::rtec_event_channel_admin;
pub use generated::rtec_comm::{rtec_base, rtec_event_comm};
pub use generated::tao::{portable_group, tao_ft};

/// `Quorba`: what nodes offer to services, and the manager to objects that say that they live.
pub mod quorba {
    pub use crate::generated::domain::quorba::*;
    pub use crate::generated::push_monitor::quorba::*;
}

/// `FT`: what a server has to offer for its state, and the services.
pub mod ft {
    pub use crate::generated::checkpointable::ft::*;
    pub use crate::generated::fault_tolerance::ft::*;
}
