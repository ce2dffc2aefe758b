//! Tells the node what the channels do, for its status.
//!
//! What it is not: needed by anybody else; if it fails, the status has no channels for a while.
//! Invariant: only the process whose member leads tells anything.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use quorba_idl::quorba::FiguresStub;
use quorba_orb::{Client, ClientOptions, Reference};

use super::Core;

const EVERY: Duration = Duration::from_secs(1);
/// How long the node may take to hear it.
const WITHIN: Duration = Duration::from_secs(3);

pub(super) fn start(figures: &Reference, group: String, core: &Arc<Core>) {
    let options = ClientOptions { call_timeout: Some(WITHIN), ..ClientOptions::default() };
    let mut client = Client::new(figures, options);
    let core = Arc::clone(core);
    thread::spawn(move || {
        loop {
            let figures = {
                let service = core.lock();
                (core.is_heard() && service.leads()).then(|| service.figures())
            };
            if let Some(figures) = figures {
                // It is told anew in a moment.
                let _told = FiguresStub(&mut client).channels(&group, &figures);
            }
            thread::sleep(EVERY);
        }
    });
}
