//! The daemon: one node of the ring, and the programs on its machine that use process groups.
//!
//! What it is not: more than one thread. The ring, the groups and all programs have their turns
//! in it, so a message passes from a program to the ring without a hand-over.
//!
//! Invariants: what a program sends is never dropped: when the ring or the groups cannot take it,
//! the program is not read from until they can. A program that does not keep up with what it is
//! told slows the whole ring down, as a slow node would; it is cut off only if that does not help.

use crate::driver::{Driver, Event, OWN_TOKENS, log_view};
use crate::linger::Linger;
use crate::programs::Programs;
use crate::protocol::{
    Wish, WishKind, next_frame, put_joining, put_refused, put_view, put_welcome,
};
use bytes::Bytes;
use quorba_groups::{GroupNumber, Groups, Output, ProcessId, ProcessNumber};
use quorba_net::{Interest, ReadOutcome, Ready};
use quorba_order::{Full, Guarantee};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

const LISTENER: u64 = OWN_TOKENS;
const SIGNALS: u64 = OWN_TOKENS + 1;
const STDIN: u64 = OWN_TOKENS + 2;
/// Programs have tokens from here on.
const PROGRAMS: u64 = OWN_TOKENS + 16;
/// Read from a program at once.
const READ_BYTES: usize = 256 << 10;

/// See the module's text.
pub struct Daemon {
    driver: Driver,
    groups: Groups,
    programs: Programs,
    linger: Linger,
    _signals: UnixStream,
    /// Taken from the groups, not yet by the ring.
    waiting: VecDeque<(Bytes, Guarantee)>,
    scratch: Vec<u8>,
}

/// Whether programs can go on sending.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    Shut,
}

impl Daemon {
    /// Listens at `socket` for programs; what was there from an earlier life is replaced.
    ///
    /// # Errors
    /// The socket cannot be made, or the kernel refuses a resource.
    pub fn listen(driver: Driver, socket: &Path) -> io::Result<Self> {
        let (me, incarnation) = driver.identity();
        let programs = Programs::listen(socket, PROGRAMS)?;
        driver.register(programs.listener(), LISTENER, Interest::READ)?;
        let (write, signals) = UnixStream::pair()?;
        signals.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGTERM, write.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGINT, write)?;
        driver.register(&signals, SIGNALS, Interest::READ)?;
        let groups = Groups::new(me, incarnation);
        let (waiting, scratch) = (VecDeque::new(), vec![0; READ_BYTES]);
        let linger = Linger::default();
        Ok(Self { driver, groups, programs, linger, _signals: signals, waiting, scratch })
    }

    /// Ends when standard input does, too: for a daemon that another program has started.
    ///
    /// # Errors
    /// What the system says of standard input.
    pub fn end_with_stdin(&self) -> io::Result<()> {
        self.driver.register(io::stdin(), STDIN, Interest::READ)
    }

    /// Serves until told to stop (SIGTERM, SIGINT); then says farewell to the other nodes.
    ///
    /// # Errors
    /// The node cannot go on.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            self.driver.wait(None)?;
            self.take_in();
            while let Some(ready) = self.driver.ready() {
                match ready.token {
                    LISTENER => self.welcome(),
                    SIGNALS => return self.driver.leave(),
                    STDIN => {
                        let mut nothing = [0; 256];
                        if rustix::io::read(io::stdin(), &mut nothing) == Ok(0) {
                            return self.driver.leave();
                        }
                    }
                    token => {
                        if let Some(process) = self.programs.process(token) {
                            self.program_ready(process, ready);
                        }
                    }
                }
            }
            // Who waits for its own message has it before the kernel carries it to the others,
            // which takes as long as all the rest.
            self.driver.gather()?;
            self.take_in();
            if self.programs.flush(self.driver.poller()) {
                self.linger.told(Instant::now());
            }
            self.driver.pump()?;
            self.driver.throttle(self.programs.is_any_slow());
            self.bury();
            self.stay_awake()?;
        }
    }

    /// Where the token rests, nothing waits for the core that the daemon keeps awake but what it
    /// is kept awake for.
    fn stay_awake(&mut self) -> io::Result<()> {
        let Some(until) = self.linger.until() else { return Ok(()) };
        if self.driver.progress().rests_here && !self.driver.linger(until)? {
            self.linger.in_vain();
        }
        Ok(())
    }

    /// What the ring has delivered, to the groups, and what they make of it, to the programs.
    fn take_in(&mut self) {
        while let Some(event) = self.driver.event() {
            match event {
                Event::Deliver(delivery) => {
                    let (origin, incarnation) = (delivery.origin, delivery.incarnation);
                    self.groups.handle_delivery(origin, incarnation, &delivery.payload);
                }
                Event::View(view) => {
                    log_view(&view);
                    self.groups.handle_view(&view);
                }
                Event::Refused(node, reason) => {
                    eprintln!("datagrams in the name of node {node} are refused: {reason:?}");
                }
                Event::Held(_) | Event::Stable(_) => {}
            }
            self.carry_out();
        }
        if self.programs.has_stopped() {
            self.resume();
        } else {
            self.submit_waiting();
        }
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.groups.poll() {
            match output {
                Output::Submit { payload, guarantee } => {
                    self.waiting.push_back((payload, guarantee))
                }
                Output::View { to, group, view } => {
                    if let Some(out) = self.programs.out(to) {
                        put_view(out, group, &view);
                    }
                }
                Output::Message { to, group, from, payload, .. } => {
                    self.programs.tell_message(to, group, from, payload);
                }
                Output::Malformed { origin, reason } => {
                    eprintln!("node {origin} orders what cannot be understood: {reason}");
                }
            }
        }
    }

    /// Gives the ring what waits; whether all of it was taken.
    fn submit_waiting(&mut self) -> Flow {
        while let Some((payload, guarantee)) = self.waiting.pop_front() {
            match self.driver.submit(payload.clone(), guarantee) {
                Ok(_) => {}
                Err(Full::Messages | Full::Bytes) => {
                    self.waiting.push_front((payload, guarantee));
                    return Flow::Shut;
                }
                Err(Full::TooLarge) => unreachable!("frames are shorter than the ring's payloads"),
            }
        }
        Flow::Open
    }

    /// Lets programs that were stopped go on, if they can.
    fn resume(&mut self) {
        if self.submit_waiting() == Flow::Shut {
            return;
        }
        for process in self.programs.stopped() {
            if self.take_wishes(process) == Flow::Shut {
                return;
            }
            self.programs.go_on(process, self.driver.poller());
        }
    }

    fn welcome(&mut self) {
        while let Some(socket) = self.programs.accept() {
            let Ok(number) = self.groups.add_process() else { continue };
            let (node, incarnation) = self.driver.identity();
            self.programs.admit(number, socket, self.driver.poller());
            if let Some(out) = self.programs.out(number) {
                put_welcome(out, ProcessId { node, incarnation, number });
            }
        }
    }

    fn program_ready(&mut self, process: ProcessNumber, ready: Ready) {
        let Some(program) = self.programs.get(process) else { return };
        if ready.writable && program.stream.flush(self.driver.poller()).is_err() {
            return self.programs.end(process);
        }
        if ready.readable {
            self.linger.asked(Instant::now());
            match program.stream.read(&mut self.scratch) {
                ReadOutcome::Bytes(count) => {
                    program.buffer.extend_from_slice(&self.scratch[..count]);
                    if self.take_wishes(process) == Flow::Shut {
                        self.programs.stop(process, self.driver.poller());
                    }
                    return;
                }
                ReadOutcome::Nothing => {}
                ReadOutcome::Closed => return self.programs.end(process),
            }
        }
        if ready.hung_up {
            self.programs.end(process);
        }
    }

    /// Grants the wishes that have come in whole.
    fn take_wishes(&mut self, process: ProcessNumber) -> Flow {
        loop {
            if !self.waiting.is_empty() && self.submit_waiting() == Flow::Shut {
                return Flow::Shut;
            }
            let settled = self.groups.is_settled();
            let Some(program) = self.programs.get(process) else { return Flow::Open };
            // A message must not be taken out of the buffer that could not be sent.
            if !settled && !program.buffer.is_empty() {
                return Flow::Shut;
            }
            let wish = match next_frame(&mut program.buffer) {
                Ok(None) => return Flow::Open,
                Ok(Some(frame)) => Wish::decode(frame),
                Err(bad) => Err(bad),
            };
            match wish {
                Ok(wish) => self.grant(process, wish),
                Err(bad) => {
                    eprintln!("a program is cut off: {bad}");
                    self.programs.end(process);
                    return Flow::Open;
                }
            }
        }
    }

    fn grant(&mut self, process: ProcessNumber, wish: Wish) {
        let (what, group, granted) = match wish {
            Wish::Send { guarantee, group, mut frame } => {
                let granted = self.groups.send(process, group, &mut frame);
                if granted.is_ok() {
                    self.waiting.push_back((frame.freeze(), guarantee));
                }
                (WishKind::Send, group, granted)
            }
            Wish::Join(name) => {
                let granted = self.groups.join(process, &name);
                if let (Ok(group), Some(out)) = (granted, self.programs.out(process)) {
                    put_joining(out, group, &name);
                }
                (WishKind::Join, GroupNumber(0), granted.map(|_| ()))
            }
            Wish::Leave(group) => (WishKind::Leave, group, self.groups.leave(process, group)),
        };
        if let (Err(refused), Some(out)) = (granted, self.programs.out(process)) {
            put_refused(out, what, group, &refused.to_string());
        }
        self.carry_out();
    }

    /// Tells the groups which programs are gone.
    fn bury(&mut self) {
        while let Some(process) = self.programs.bury() {
            self.groups.process_gone(process);
            self.carry_out();
            let _ = self.submit_waiting();
        }
    }
}
