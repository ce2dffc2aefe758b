//! Letters to the data-plane thread from the few other threads, and the bell that wakes it.
//!
//! What it is not: a path for requests. Only supervisors and the admin API write here.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

/// Writes letters.
pub(crate) struct MailboxSender<T> {
    sender: Sender<T>,
    bell: Arc<OwnedFd>,
}

impl<T> Clone for MailboxSender<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), bell: Arc::clone(&self.bell) }
    }
}

impl<T> MailboxSender<T> {
    /// Sends a letter. False if the reader is gone.
    pub(crate) fn send(&self, letter: T) -> bool {
        let sent = self.sender.send(letter).is_ok();
        // A bell that is ringing already (EAGAIN) is as good.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        sent
    }
}

/// Reads letters.
pub(crate) struct Mailbox<T> {
    receiver: Receiver<T>,
    bell: Arc<OwnedFd>,
}

impl<T> Mailbox<T> {
    /// All letters that are there; the bell is still until the next one.
    pub(crate) fn take(&self) -> Vec<T> {
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&self.bell, &mut count);
        self.receiver.try_iter().collect()
    }

    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// A mailbox and its first writer.
pub(crate) fn mailbox<T>() -> io::Result<(MailboxSender<T>, Mailbox<T>)> {
    let (sender, receiver) = mpsc::channel();
    let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
    Ok((MailboxSender { sender, bell: Arc::clone(&bell) }, Mailbox { receiver, bell }))
}
