//! Ctrl-C at a command that is connected to channels: what it has there is ended before it ends.
//!
//! A command that fails ends what it has there in the same way.
//!
//! What it is not: the end of a command that ends as it should, which tells its channels itself.
//!
//! Invariants: a proxy is known here before a signal can come between; a signal ends the process
//! within [`END_WITHIN`], and a second one at once, each as if nobody had listened to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::system_reason;

/// How long a channel may take to hear that nobody is there any more.
pub(super) const END_WITHIN: Duration = Duration::from_secs(5);

/// Ends what was opened.
pub(super) type End = Box<dyn FnOnce() + Send>;

/// What is to be ended.
#[derive(Default)]
struct Open {
    ends: Mutex<Vec<End>>,
    /// A signal came.
    is_over: Arc<AtomicBool>,
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, Vec<End>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends everything; whether all of it was in time.
    fn end(self: &Arc<Self>) -> bool {
        let until = Instant::now() + END_WITHIN;
        let (sender, done) = channel::<()>();
        let open = Arc::clone(self);
        thread::spawn(move || {
            // Whoever opens something now is waited for: it has not told yet what it is.
            for end in open.lock().drain(..) {
                let sender = sender.clone();
                thread::spawn(move || {
                    end();
                    drop(sender);
                });
            }
        });
        let left = until.saturating_duration_since(Instant::now());
        // Nothing is sent: it is over when all have gone.
        done.recv_timeout(left) == Err(RecvTimeoutError::Disconnected)
    }
}

/// Not everything could be ended.
const NOT_TOLD: &str = "note: the channel was not told in time: quorba events show says which \
                        proxies there are, quorba events disconnect ends them";

/// See the module's text.
pub(super) struct Ending {
    open: Arc<Open>,
    context: Context,
}

impl Ending {
    /// Signals are listened to from now on.
    pub(super) fn watch(context: &Context) -> Result<Self, Failure> {
        let open = Arc::new(Open::default());
        let failed = |error: std::io::Error| {
            let what = format!("signals cannot be received: {}", system_reason(&error));
            Failure::new(codes::PROCESS, Exit::Failed, what, "run it again")
        };
        let signals = [SIGINT, SIGTERM];
        let mut first = Signals::new(signals).map_err(failed)?;
        for signal in signals {
            // In this order: the first one is let pass, and sets the flag for the second.
            let is_over = Arc::clone(&open.is_over);
            flag::register_conditional_default(signal, is_over).map_err(failed)?;
            flag::register(signal, Arc::clone(&open.is_over)).map_err(failed)?;
        }
        let (context, watched) = (*context, Arc::clone(&open));
        thread::spawn(move || {
            let Some(signal) = first.forever().next() else { return };
            if !watched.end() {
                context.tell(NOT_TOLD);
            }
            // It has a default: this is the end.
            let _ = emulate_default_handler(signal);
        });
        Ok(Self { open, context })
    }

    /// Opens something that a signal is to end.
    pub(super) fn open<T>(
        &self,
        open: impl FnOnce() -> Result<(T, End), Failure>,
    ) -> Result<T, Failure> {
        let mut ends = self.open.lock();
        if self.is_over() {
            drop(ends);
            self.wait();
        }
        let (opened, end) = open()?;
        ends.push(end);
        Ok(opened)
    }

    fn is_over(&self) -> bool {
        self.open.is_over.load(Ordering::SeqCst)
    }

    /// How the command ended. After a signal it is that which ends the process, and nothing is said
    /// of what went wrong because of it. What a command that has failed has left open is ended.
    pub(super) fn after(&self, ended: Result<Exit, Failure>) -> Result<Exit, Failure> {
        if self.is_over() {
            self.wait();
        }
        if ended.is_err() && !self.open.end() {
            self.context.tell(NOT_TOLD);
        }
        ended
    }

    /// The end of the process comes.
    fn wait(&self) -> ! {
        loop {
            thread::park();
        }
    }
}
