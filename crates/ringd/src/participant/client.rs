//! A participant that is a program beside the daemon: everything passes through its socket.

use super::command::Command;
use super::director::tell;
use super::{Director, Experiment, Port, monotonic_ns, offer, pause};
use quorba_groups::{GroupName, GroupNumber};
use quorba_net::timespec;
use quorba_order::{Guarantee, ViewKind};
use quorba_ringd::client::Client;
use quorba_ringd::protocol::Notice;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::io;
use std::path::Path;

struct Seat {
    client: Client,
    group: GroupNumber,
}

impl Port for Seat {
    fn send(&mut self, message: &[u8], safe: bool) -> io::Result<bool> {
        let guarantee = if safe { Guarantee::Safe } else { Guarantee::Agreed };
        self.client.send(self.group, guarantee, message)
    }

    fn push(&mut self) -> io::Result<()> {
        self.client.push().map(|_| ())
    }
}

/// Takes part until told to quit.
pub(crate) fn client(socket: &Path, me: u32, nodes: u32) -> io::Result<()> {
    let mut client = Client::connect(socket)?;
    client.join(&GroupName::new(b"bench").expect("a short name"))?;
    let mut seat = Seat { client, group: GroupNumber(0) };
    let mut director = Director::default();
    let mut experiment: Option<Experiment> = None;
    let mut ready = false;
    loop {
        if let Some(experiment) = &mut experiment {
            offer(experiment, &mut seat)?;
        }
        take_in(&mut seat, experiment.as_mut(), nodes, &mut ready)?;
        if experiment.as_ref().is_some_and(Experiment::is_done)
            && let Some(done) = experiment.take()
        {
            tell(&done.done(Value::Null, None))?;
        }
        let timeout = experiment.as_mut().and_then(pause).map(timespec);
        let stdin = io::stdin();
        let blocked = seat.client.has_unsent();
        let wanted = if blocked { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let timeout = if blocked { None } else { timeout };
        let mut fds = [PollFd::new(&seat.client, wanted), PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [news, orders] = fds.map(|fd| fd.revents().contains(PollFlags::IN));
        if news {
            seat.client.read()?;
        }
        for command in if orders { director.read()? } else { Vec::new() } {
            match command {
                Command::Prepare(plan) => {
                    tell(&json!({ "event": "prepared", "id": plan.id }))?;
                    experiment = Some(Experiment::new(plan, me, nodes));
                }
                Command::Go => experiment.iter_mut().for_each(|e| e.go(monotonic_ns())),
                Command::Stop => experiment.iter_mut().for_each(Experiment::stop),
                Command::Quit => return Ok(()),
            }
        }
    }
}

fn take_in(
    seat: &mut Seat,
    mut experiment: Option<&mut Experiment>,
    nodes: u32,
    ready: &mut bool,
) -> io::Result<()> {
    while let Some(notice) = seat.client.notice()? {
        match notice {
            Notice::Message { message, .. } => {
                if let Some(experiment) = &mut experiment {
                    experiment.delivered(monotonic_ns(), message);
                }
            }
            Notice::View(view) if view.kind == ViewKind::Regular => {
                let members: Vec<u32> =
                    view.members.iter().map(|member| u32::from(member.node.index()) + 1).collect();
                if let Some(experiment) = &mut experiment {
                    experiment.view(monotonic_ns(), &members).map_err(io::Error::other)?;
                }
                if members.len() == nodes as usize && !*ready {
                    *ready = true;
                    tell(&json!({ "event": "ready", "members": nodes }))?;
                }
            }
            Notice::Joining(group, _) => seat.group = group,
            Notice::Refused { what, text, .. } => eprintln!("refused: {what:?}: {text}"),
            Notice::Welcome(_) | Notice::View(_) => {}
        }
    }
    Ok(())
}
