//! The naming service of a run: the bank is bound in it at the beginning, and resolved after every
//! fault.
//!
//! What it is not: a part of the account. It shows that a name survives what its servers do not.
//!
//! Invariant: nothing here keeps the picture waiting; calls are made by a thread of its own.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::Object;
use quorba_idl::cos_naming::{NameComponent, NamingContextStub};
use quorba_orb::{Client, ClientOptions, Reference, Repeat};

use super::model::EventKind;
use super::stage::{BANK_KEY, Stage};

/// How long a call may take: the group may have to come back first.
const CALL_WITHIN: Duration = Duration::from_secs(10);

/// Who binds and resolves.
pub(super) struct Names {
    asks: Sender<()>,
    told: Receiver<(EventKind, String)>,
}

impl Names {
    /// Binds the bank.
    pub(super) fn start(stage: &Stage) -> Self {
        let (asks, asked) = channel();
        let (tells, told) = channel();
        let (service, bank) = (stage.naming_corbaloc(), stage.corbaloc());
        let file = stage.domain_file().display().to_string();
        thread::spawn(move || serve(&service, &bank, &file, &asked, &tells));
        Self { asks, told }
    }

    /// Asks for the bank.
    pub(super) fn resolve(&self) {
        // Without the thread there is nobody to ask, and that was told.
        let _gone = self.asks.send(());
    }

    /// What there is to tell.
    pub(super) fn told(&self) -> Vec<(EventKind, String)> {
        self.told.try_iter().collect()
    }
}

fn serve(
    service: &str,
    bank: &str,
    file: &str,
    asked: &Receiver<()>,
    tells: &Sender<(EventKind, String)>,
) {
    let Ok(place) = Reference::parse(service) else { return };
    let Ok(bank) = quorba_orb::giop::corbaloc::parse(bank) else { return };
    let bank = Object(bank.to_ior());
    let options = ClientOptions {
        call_timeout: Some(CALL_WITHIN),
        repeat: Some(Repeat::new("demo-names", 0)),
        ..ClientOptions::default()
    };
    let mut client = Client::new(&place, options);
    let name = vec![NameComponent { id: BANK_KEY.into(), kind: String::new() }];
    let text = match NamingContextStub(&mut client).rebind(&name, &bank) {
        Ok(()) => (
            EventKind::Note,
            format!("{BANK_KEY} is bound in the naming service: quorba naming tree -c {file}"),
        ),
        Err(error) => (EventKind::Alarm, format!("{BANK_KEY} cannot be bound: {error:?}")),
    };
    let mut is_heard = tells.send(text).is_ok();
    while is_heard && asked.recv().is_ok() {
        let began = Instant::now();
        let found = NamingContextStub(&mut client).resolve(&name);
        let took = began.elapsed().as_secs_f64() * 1e3;
        let text = match found {
            Ok(found) if found == bank => (
                EventKind::Note,
                format!("the naming service still has {BANK_KEY}: resolved in {took:.1} ms"),
            ),
            Ok(_) => (EventKind::Alarm, format!("{BANK_KEY} resolves to something else")),
            Err(error) => (EventKind::Alarm, format!("{BANK_KEY} is not resolved: {error:?}")),
        };
        is_heard = tells.send(text).is_ok();
    }
}
