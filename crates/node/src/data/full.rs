//! A disk that is full, where the node can do nothing before it has room: the node waits, as if it
//! were stopped, and the others of the domain go on without it.
//!
//! What it is not: what a durable group does on a full disk, which is the log's: there the node
//! works on, and only answers wait. This is for more than the node may keep in memory for its log,
//! and for file systems that need room to write what is there already. Invariants: nothing leaves
//! meanwhile; clients are not kept waiting, but sent to other gateways; an operator can still end
//! the node.

use super::DataPlane;
use crate::{NodeError, filesystem};
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How often the disk is tried again.
const AGAIN: Duration = Duration::from_millis(100);

impl DataPlane {
    /// What came of writing the state file. One that found no room is repeated.
    pub(super) fn stored(&mut self, stored: io::Result<()>) -> Result<(), NodeError> {
        let error = match stored {
            Ok(()) => return Ok(()),
            Err(error) if filesystem::is_shortage(&error) => error,
            Err(error) => return Err(self.reporter.disk_failed(error)),
        };
        let path = self.boot.path().to_path_buf();
        tell_that_it_waits(&path, &error);
        loop {
            self.stand_still(&error, &path)?;
            match self.boot.write() {
                Ok(()) => break,
                Err(error) if filesystem::is_shortage(&error) => {}
                Err(error) => return Err(self.reporter.disk_failed(error)),
            }
        }
        tracing::info!(path = %path.display(), "there is room again: the node goes on");
        Ok(())
    }

    /// Until the log has handed over what waits.
    pub(super) fn wait_for_log(&mut self) -> Result<(), NodeError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        log.flush();
        let path = log.path().to_path_buf();
        let error = io::Error::from(io::ErrorKind::StorageFull);
        if log.is_overfull() {
            tell_that_it_waits(&path, &error);
            while self.log.as_ref().is_some_and(|log| !log.has_room_again()) {
                self.stand_still(&error, &path)?;
                self.read_letters()?;
            }
            tracing::info!(path = %path.display(), "there is room again: the node goes on");
        }
        Ok(())
    }

    /// For a moment.
    ///
    /// # Errors
    /// The node was told to end.
    fn stand_still(&mut self, error: &io::Error, path: &Path) -> Result<(), NodeError> {
        let now = self.now();
        for connection in self.clients.turn_away() {
            self.engine.handle_client_closed(now, connection);
        }
        let mut awaited = [PollFd::new(&self.signals, PollFlags::IN)];
        let limit = quorba_net::timespec(AGAIN);
        let _ = poll(&mut awaited, Some(&limit));
        if awaited[0].revents().is_empty() {
            return Ok(());
        }
        let source = io::Error::from(error.kind());
        Err(NodeError::StateDir { path: path.to_path_buf(), source })
    }
}

fn tell_that_it_waits(path: &Path, error: &io::Error) {
    let path_text = path.display();
    let reason = filesystem::explain(path, error);
    tracing::error!(
        "disk full: the node waits, and closes the connections of clients: {path_text}: {reason}"
    );
}
