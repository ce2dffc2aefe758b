//! What a channel wants to be called outside, as data, and how that call is made.
//!
//! Invariant: nothing here is called by the channel itself.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use quorba_base::canary;

use quorba_corba::giop::{Completion, ExceptionKind, SystemException};
use quorba_corba::{Any, Encoder, Object, Transport, call};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::quorba_events::EndReason;

use crate::ends::Ended;
use crate::event::{self, Shared};
use crate::observers::Update;
use crate::registry::{ConsumerForm, SupplierForm};

/// Why a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Its client wants it.
    Asked,
    /// The channel ends.
    Destroyed,
    /// More waits for the consumer than may.
    TooSlow,
    /// What the conjunctions of the consumer's filter hold is more than they may.
    HoldsTooMuch,
    /// The supplier gave an event that is larger than one may be.
    TooLarge,
    /// It is there, and has answered every call by an exception for long.
    Raises,
    /// Its object is no more, or has not taken anything for long.
    Gone,
    /// An operator has ended it.
    Removed,
}

impl Reason {
    /// In one word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Destroyed => "destroyed",
            Self::TooSlow => "too-slow",
            Self::HoldsTooMuch => "holds-too-much",
            Self::TooLarge => "too-large",
            Self::Raises => "raises",
            Self::Gone => "gone",
            Self::Removed => "removed",
        }
    }

    /// As a decision says it. Nothing else is decided of a connection.
    pub(crate) const fn decided(self) -> EndReason {
        match self {
            Self::TooSlow => EndReason::TooSlow,
            Self::HoldsTooMuch => EndReason::HoldsTooMuch,
            Self::TooLarge => EndReason::TooLarge,
            Self::Raises => EndReason::Raising,
            Self::Gone | Self::Asked | Self::Destroyed | Self::Removed => EndReason::Gone,
        }
    }

    /// For people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Asked => "its client wants it",
            Self::Destroyed => "the channel ends",
            Self::TooSlow => {
                "more waits for it than may (queue_events, queue_bytes, total_bytes of the channel)"
            }
            Self::HoldsTooMuch => {
                "the conjunctions of its filter hold more than 8 MiB of events whose others do not \
                 come: make the filter narrower"
            }
            Self::TooLarge => {
                "it gave an event that is larger than one may be (4 MiB; with Corosync 879,520 \
                 octets)"
            }
            Self::Raises => {
                "it answers, and has raised exceptions for give_up_ms: its own log may say why"
            }
            Self::Gone => "its object is no more, or could not be called for give_up_ms",
            Self::Removed => "an operator has ended it (quorba events disconnect)",
        }
    }
}

impl From<EndReason> for Reason {
    fn from(why: EndReason) -> Self {
        match why {
            EndReason::TooSlow => Self::TooSlow,
            EndReason::HoldsTooMuch => Self::HoldsTooMuch,
            EndReason::TooLarge => Self::TooLarge,
            EndReason::Raising => Self::Raises,
            EndReason::Gone => Self::Gone,
        }
    }
}

/// Which interface is told the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goodbye {
    /// CosEventComm::PushConsumer.
    CosPushConsumer,
    /// CosEventComm::PullConsumer.
    CosPullConsumer,
    /// CosEventComm::PushSupplier.
    CosPushSupplier,
    /// CosEventComm::PullSupplier.
    CosPullSupplier,
    /// RtecEventComm::PushConsumer.
    RtecPushConsumer,
    /// RtecEventComm::PushSupplier.
    RtecPushSupplier,
}

impl Goodbye {
    pub(crate) const fn of_consumer(form: ConsumerForm) -> Self {
        match form {
            ConsumerForm::Push => Self::CosPushConsumer,
            ConsumerForm::Pull => Self::CosPullConsumer,
            _ => Self::RtecPushConsumer,
        }
    }

    pub(crate) const fn of_supplier(form: SupplierForm) -> Self {
        match form {
            SupplierForm::Push => Self::CosPushSupplier,
            SupplierForm::Pull => Self::CosPullSupplier,
            _ => Self::RtecPushSupplier,
        }
    }

    /// The operation to call; it has no arguments.
    #[must_use]
    pub const fn operation(self) -> &'static str {
        match self {
            Self::CosPushConsumer | Self::RtecPushConsumer => "disconnect_push_consumer",
            Self::CosPullConsumer => "disconnect_pull_consumer",
            Self::CosPushSupplier | Self::RtecPushSupplier => "disconnect_push_supplier",
            Self::CosPullSupplier => "disconnect_pull_supplier",
        }
    }
}

/// What must be known to all replicas before it is so: who leads asks for it, the order says when.
#[derive(Clone, PartialEq, Debug)]
pub enum Proposal {
    /// A consumer's connection ends.
    EndConsumer {
        /// Which.
        consumer: u64,
        /// The number of its connection: if it has another one by then it stays.
        connection: u64,
        /// Why.
        why: Reason,
    },
    /// A supplier's connection ends.
    EndSupplier {
        /// Which.
        supplier: u64,
        /// The number of its connection: if it has another one by then it stays.
        connection: u64,
        /// Why.
        why: Reason,
    },
    /// An observer cannot be told anything.
    EndObserver {
        /// Which.
        observer: u32,
    },
    /// A consumer has what it was given; in reliable channels.
    Acknowledge {
        /// Which.
        consumer: u64,
        /// The last set that it has.
        number: u64,
        /// When that came.
        came: u64,
    },
    /// A supplier was pulled; in reliable channels.
    Pulled {
        /// Which.
        supplier: u64,
        /// What it gave.
        data: Any,
    },
}

impl Proposal {
    /// Whether it is what a supplier gave, which nobody else has.
    pub(crate) const fn is_pulled(&self) -> bool {
        matches!(self, Self::Pulled { .. })
    }
}

/// A push that was refused because it is too large, where others may have been before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooLarge {
    /// Whose it is: the number of its proxy.
    pub supplier: u64,
    /// Where that one is called, as host and port; the number of the proxy if nowhere.
    pub place: String,
    /// How many events it has.
    pub events: usize,
    /// Octets of the largest.
    pub bytes: usize,
    /// The most of both that are taken.
    pub limits: (usize, usize),
    /// What the channel has refused so far, for whatever reason.
    pub refused: u64,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { supplier, place, events, bytes, limits, refused } = self;
        write!(
            f,
            "a push of supplier {supplier} ({place}) is too large and is not taken: it has \
             {events} events, the largest of {bytes} bytes, and {} events of {} bytes each are \
             the most; {refused} pushes were refused so far. A supplier that pushes by oneways \
             is not told: let it push less at once",
            limits.0, limits.1
        )
    }
}

/// What is to be done outside, pushes apart.
#[derive(Clone, PartialEq, Debug)]
pub enum Outgoing {
    /// Tell the end of a connection.
    Disconnect {
        /// Whom.
        to: Object,
        /// By which operation.
        call: Goodbye,
    },
    /// The channel has ended a proxy: for a log.
    Ended(Ended),
    /// A push was too large: for a log.
    TooLarge(TooLarge),
    /// Call `try_pull` of a supplier, or `pull` if it has no such operation, and say what came by
    /// `pulled`.
    Pull {
        /// Which supplier.
        supplier: u64,
        /// The name of the attempt.
        ticket: u64,
        /// Its reference.
        to: Object,
    },
    /// Tell an observer, and say how that ended by `observed`.
    Update {
        /// Which observer.
        observer: u32,
        /// The name of the attempt.
        ticket: u64,
        /// Its reference.
        to: Object,
        /// What.
        update: Update,
    },
    /// The channel has removed an observer that cannot be told: for a log.
    ObserverEnded {
        /// Which.
        observer: u32,
        /// Where it was called, as host and port.
        place: String,
    },
    /// Have it ordered, and carry it out at its place.
    Propose(Proposal),
}

impl Outgoing {
    /// Whether it is what a supplier gave, which nobody else has.
    pub(crate) const fn is_pulled(&self) -> bool {
        matches!(self, Self::Propose(proposal) if proposal.is_pulled())
    }
}

/// How an attempt to call somebody ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was done.
    Taken,
    /// Nobody could be called, so it surely was not done.
    Failed,
    /// There was no answer: perhaps it was done.
    Unanswered,
    /// The one who was called answered by an exception.
    Raised {
        /// It says that it did not do it.
        is_undone: bool,
    },
    /// There is nobody to call any more.
    Gone,
}

impl Outcome {
    /// What an exception means for the one who was called.
    #[must_use]
    pub fn of(exception: &SystemException) -> Self {
        let is_undone = exception.completed == Completion::No;
        match exception.kind {
            ExceptionKind::ObjectNotExist | ExceptionKind::InvObjref => Self::Gone,
            ExceptionKind::CommFailure
            | ExceptionKind::Transient
            | ExceptionKind::Timeout
            | ExceptionKind::NoResponse => {
                if is_undone {
                    Self::Failed
                } else {
                    Self::Unanswered
                }
            }
            // It cannot be said, or not be read, in the code set of the other side, however often.
            ExceptionKind::DataConversion => Self::Raised { is_undone: false },
            _ => Self::Raised { is_undone },
        }
    }

    /// Why one ends whose calls have ended so for long.
    pub(crate) const fn why(self) -> Reason {
        if matches!(self, Self::Raised { .. }) { Reason::Raises } else { Reason::Gone }
    }

    /// Whether the call was not done for certain, so that it may be made again where nothing may be
    /// done twice.
    pub(crate) const fn is_undone(self) -> bool {
        matches!(self, Self::Failed | Self::Raised { is_undone: true })
    }
}

/// Events on their way to a consumer.
#[derive(Clone, PartialEq, Debug)]
pub struct Delivery {
    /// Which consumer.
    pub consumer: u64,
    /// The name of the attempt: its outcome is told by it.
    pub ticket: u64,
    /// Its reference.
    pub to: Arc<Object>,
    /// The number of the first set; each event behind it has the next one.
    pub number: u64,
    pub(crate) form: ConsumerForm,
    pub(crate) events: Vec<Shared>,
    pub(crate) now: u64,
    pub(crate) hops_taken: i32,
    /// Whether a reply must say that they are there.
    pub(crate) waits: bool,
}

impl Delivery {
    /// How many events.
    #[must_use]
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// The operation to call.
    #[must_use]
    pub const fn operation(&self) -> &'static str {
        if matches!(self.form, ConsumerForm::Numbered) { "push_numbered" } else { "push" }
    }

    /// Whether it may go only when the group holds its events: its numbers must not become those of
    /// other events when this replica ends.
    #[must_use]
    pub fn is_to_be_held(&self) -> bool {
        let is_numbered = matches!(self.form, ConsumerForm::Numbered);
        is_numbered && self.waits && !canary!(PushesUnheldNumbers)
    }

    /// Whether it is sent without a reply.
    #[must_use]
    pub const fn is_oneway(&self) -> bool {
        matches!(self.form, ConsumerForm::Rtec | ConsumerForm::Facade) && !self.waits
    }

    /// Writes the arguments.
    pub fn write(&self, to: &mut Encoder) {
        match self.form {
            ConsumerForm::Push | ConsumerForm::Pull => {
                let data = self.events.first().map(|held| event::as_any(&held.event));
                to.write(&data.unwrap_or_default());
                return;
            }
            ConsumerForm::Numbered => to.write(&self.number),
            ConsumerForm::Rtec | ConsumerForm::Facade => {}
        }
        to.writer().write_count(self.events.len());
        for held in &self.events {
            event::write(&held.event, self.now, self.hops_taken, to);
        }
    }

    /// Makes the call.
    pub fn send(&self, transport: &mut dyn Transport) -> Outcome {
        let arguments = |to: &mut Encoder| self.write(to);
        if self.is_oneway() {
            let sent = transport.send(self.operation(), &arguments);
            return sent.map_or_else(|exception| Outcome::of(&exception), |()| Outcome::Taken);
        }
        match call::<(), PushError>(transport, self.operation(), &arguments, |_| Ok(())) {
            Ok(()) => Outcome::Taken,
            Err(PushError::Disconnected(_)) => Outcome::Gone,
            Err(PushError::System(exception)) => Outcome::of(&exception),
        }
    }
}
