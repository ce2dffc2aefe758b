//! The connection to the Corosync of this host, on Corosync's own bindings.
//!
//! What the bindings (3.2.0) want to be used with care:
//! - Callbacks are plain functions: what they hear goes into a list of the thread that
//!   dispatches, and one thread has one connection.
//! - They hold a lock of the whole process during a callback: nothing is opened or closed there.
//! - The descriptor that they give is a number: a copy of it is owned here, so that it can be
//!   waited for without `unsafe`.
//! - `mcast_joined` waits for the daemon's answer: a daemon that is stopped stops this thread.
//!
//! Invariant: what was dispatched comes in the order in which CPG delivered it.

use bytes::Bytes;
use rust_corosync::cpg::{self, Address, Guarantee, Handle, Model1Data, Model1Flags, ModelData};
use rust_corosync::{CsError, DispatchFlags, NodeId};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::cell::RefCell;
use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::group::{Change, Gone, Process};

/// Events that one dispatch brings, so that others have their turn.
const BATCH: usize = 256;
/// How often it is tried while the daemon starts or is busy, and the pause between.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);

thread_local! {
    static HEARD: RefCell<Vec<Event>> = const { RefCell::new(Vec::new()) };
}

/// What CPG says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Another membership.
    Change(Change),
    /// A message, in its place.
    Message {
        /// Who sent it.
        from: Process,
        /// What it sent.
        message: Bytes,
    },
}

/// Why Corosync cannot be used. None of these is cured by waiting alone.
#[derive(Debug, thiserror::Error)]
pub enum CpgError {
    /// There is no daemon, or it does not talk to this user.
    #[error(
        "Corosync does not let this process in ({0}): is it running on this host, and is this user \
         allowed (uidgid.d)?"
    )]
    Unreachable(CsError),
    /// The daemon has ended, or has thrown this process out.
    #[error("Corosync of this host is gone ({0}); start it, and this node again")]
    Gone(CsError),
    /// The kernel refused a descriptor.
    #[error("the system refused a resource: {0}")]
    Resources(#[source] io::Error),
}

/// A process's membership in a CPG group.
pub struct Cpg {
    handle: Handle,
    group: String,
    fd: OwnedFd,
}

impl Cpg {
    /// Joins the group; waits some seconds for a daemon that is about to start.
    ///
    /// # Errors
    /// [`CpgError`].
    pub fn join(group: &str) -> Result<Self, CpgError> {
        let model = ModelData::ModelV1(Model1Data {
            flags: Model1Flags::None,
            deliver_fn: Some(on_message),
            confchg_fn: Some(on_change),
            totem_confchg_fn: None,
        });
        // The context would be lost: the bindings store the address of it.
        let handle = patiently(|| cpg::initialize(&model, 0))?;
        let number = cpg::fd_get(&handle).map_err(CpgError::Unreachable)?;
        let own = |error: rustix::io::Errno| CpgError::Resources(error.into());
        let this = pidfd_open(getpid(), PidfdFlags::empty()).map_err(own)?;
        let fd = pidfd_getfd(this, number, PidfdGetfdFlags::empty()).map_err(own)?;
        patiently(|| cpg::join(&handle, group))?;
        Ok(Self { handle, group: group.to_owned(), fd })
    }

    /// What CPG has to say now, up to a bound; nothing if it has nothing to say.
    ///
    /// # Errors
    /// [`CpgError::Gone`].
    pub fn dispatch(&self) -> Result<Vec<Event>, CpgError> {
        for _ in 0..BATCH {
            match cpg::dispatch(&self.handle, DispatchFlags::OneNonblocking) {
                Ok(()) => {}
                Err(CsError::CsErrTryAgain) => break,
                Err(error) => return Err(CpgError::Gone(error)),
            }
        }
        Ok(HEARD.take())
    }

    /// Offers a message; `false`: not now, try again in a moment.
    ///
    /// # Errors
    /// [`CpgError::Gone`].
    pub fn multicast(&self, message: &[u8]) -> Result<bool, CpgError> {
        match cpg::mcast_joined(&self.handle, Guarantee::TypeAgreed, message) {
            Ok(()) => Ok(true),
            Err(CsError::CsErrTryAgain) => Ok(false),
            Err(error) => Err(CpgError::Gone(error)),
        }
    }

    /// Leaves the group: the others need not wait for this host's silence.
    pub fn leave(&self) {
        // If it cannot be said, the end of the process says it.
        let _left = cpg::leave(&self.handle, &self.group);
    }
}

impl AsFd for Cpg {
    /// Readable when [`Cpg::dispatch`] has something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Tries while the daemon is about to start (the library says no more than that it fails) or busy.
fn patiently<T>(what: impl FnMut() -> Result<T, CsError>) -> Result<T, CpgError> {
    with_pauses(PAUSE, what)
}

fn with_pauses<T>(
    pause: Duration,
    mut what: impl FnMut() -> Result<T, CsError>,
) -> Result<T, CpgError> {
    let mut tries = 0;
    loop {
        match what() {
            Ok(value) => return Ok(value),
            Err(CsError::CsErrTryAgain | CsError::CsErrLibrary) if tries < TRIES => {
                tries += 1;
                sleep(pause);
            }
            Err(error) => return Err(CpgError::Unreachable(error)),
        }
    }
}

fn hear(event: Event) {
    HEARD.with_borrow_mut(|heard| heard.push(event));
}

fn on_message(_: &Handle, _: String, host: NodeId, pid: u32, message: &[u8], _: usize) {
    hear(message_of(host, pid, message));
}

fn on_change(_: &Handle, _: &str, members: Vec<Address>, left: Vec<Address>, _: Vec<Address>) {
    hear(change_of(&members, &left));
}

fn message_of(host: NodeId, pid: u32, message: &[u8]) -> Event {
    let from = Process { host: host.into(), pid };
    Event::Message { from, message: Bytes::copy_from_slice(message) }
}

fn change_of(members: &[Address], left: &[Address]) -> Event {
    let process = |address: &Address| Process { host: address.nodeid.into(), pid: address.pid };
    let how = |address: &Address| match address.reason {
        cpg::Reason::Leave => Gone::Left,
        cpg::Reason::NodeDown => Gone::Host,
        _ => Gone::Ended,
    };
    Event::Change(Change {
        members: members.iter().map(process).collect(),
        gone: left.iter().map(|address| (process(address), how(address))).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rust_corosync::cpg::Reason;

    fn address(host: u32, pid: u32, reason: Reason) -> Address {
        Address { nodeid: NodeId::from(host), pid, reason }
    }

    #[test]
    fn a_change_names_everyone_and_how_each_of_the_others_went() {
        let members = [address(3, 77, Reason::Undefined), address(1, 78, Reason::Join)];
        let left = [
            address(2, 5, Reason::Leave),
            address(4, 6, Reason::NodeDown),
            address(5, 7, Reason::ProcDown),
            address(6, 8, Reason::Undefined),
        ];
        let process = |host, pid| Process { host, pid };
        let change = Change {
            members: vec![process(3, 77), process(1, 78)],
            gone: vec![
                (process(2, 5), Gone::Left),
                (process(4, 6), Gone::Host),
                (process(5, 7), Gone::Ended),
                // Whoever is gone without a reason cannot be said to have left.
                (process(6, 8), Gone::Ended),
            ],
        };
        assert_eq!(change_of(&members, &left), Event::Change(change));
    }

    #[test]
    fn what_is_heard_between_two_dispatches_comes_in_its_order_and_once() {
        let message = message_of(NodeId::from(3), 77, b"first");
        let change = change_of(&[address(3, 77, Reason::Join)], &[]);
        for event in [&message, &change, &message] {
            hear(event.clone());
        }
        assert_eq!(HEARD.take(), [message.clone(), change, message.clone()]);
        assert_eq!(HEARD.take(), []);
        let from = Process { host: 3, pid: 77 };
        assert_eq!(message, Event::Message { from, message: Bytes::from_static(b"first") });
    }

    /// What the daemon says, then that all is well; and how often it was asked.
    fn asked(says: &[CsError]) -> (Result<(), CpgError>, usize) {
        let mut count = 0;
        let result = with_pauses(Duration::ZERO, || {
            count += 1;
            says.get(count - 1).map_or(Ok(()), |error| Err(*error))
        });
        (result, count)
    }

    #[test]
    fn a_daemon_that_starts_or_is_busy_is_asked_again_and_one_that_refuses_is_not() {
        let (result, count) = asked(&[CsError::CsErrLibrary, CsError::CsErrTryAgain]);
        assert!(result.is_ok() && count == 3, "{result:?} {count}");
        let (result, count) = asked(&[CsError::CsErrTryAgain, CsError::CsErrAccess]);
        assert!(matches!(result, Err(CpgError::Unreachable(CsError::CsErrAccess))), "{result:?}");
        assert_eq!(count, 2);
    }

    #[test]
    fn a_daemon_that_does_not_start_is_not_waited_for_without_end() {
        let (result, count) = asked(&[CsError::CsErrLibrary; 2 * TRIES as usize]);
        assert!(matches!(result, Err(CpgError::Unreachable(CsError::CsErrLibrary))), "{result:?}");
        assert_eq!(count, TRIES as usize + 1);
    }
}
