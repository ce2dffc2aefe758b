//! Commands of operators that are on their way through the order, and who waits for their end.
//!
//! Invariant: each is answered at most once; one whose asker has gone is forgotten in time.

use std::collections::BTreeMap;
use tokio::sync::oneshot;

/// Who waits for a command, and hears why it was refused.
pub(crate) type Asker = oneshot::Sender<Result<(), String>>;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Commands {
    last: u64,
    open: BTreeMap<u64, Asker>,
}

impl Commands {
    /// A name for a command that `asker` waits for.
    pub(crate) fn open(&mut self, asker: Asker) -> u64 {
        self.open.retain(|_, asker| !asker.is_closed());
        self.last += 1;
        self.open.insert(self.last, asker);
        self.last
    }

    pub(crate) fn close(&mut self, id: u64, result: Result<(), String>) {
        if let Some(asker) = self.open.remove(&id) {
            // Whoever asked may have given up.
            let _ = asker.send(result);
        }
    }
}
