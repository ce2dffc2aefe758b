//! The terminal: raw keys in, the picture out, on standard error.
//!
//! What it is not: the picture; that is [`super::picture`].
//!
//! Invariants: the terminal is given back as it was, whether the run ends, fails or panics, and
//! before a panic's message is printed; standard output is never written to.

use std::io::{self, IsTerminal, Stderr};
use std::panic;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::model::Model;
use super::picture;

/// What a person at the keyboard wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Act on the node with this index from now on.
    Choose(usize),
    /// Kill a bank server.
    KillServer,
    /// Kill a node.
    KillNode,
    /// Kill all nodes at once.
    KillDomain,
    /// Pause a node.
    Pause,
    /// Start everything that is down.
    Restart,
    /// Let kills happen by themselves, or no longer.
    Chaos,
    /// Say how the ring stands.
    Status,
    /// Show what keys and columns mean, or no longer.
    Help,
    /// End the load and account.
    Quit,
}

/// The terminal, taken.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
}

impl Screen {
    /// Whether there is a terminal to draw on and to read keys from.
    pub(super) fn is_possible() -> bool {
        io::stderr().is_terminal() && io::stdin().is_terminal()
    }

    /// Takes the terminal.
    pub(super) fn take() -> io::Result<Self> {
        let say = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            give_back();
            say(info);
        }));
        enable_raw_mode()?;
        // From here on an early return must give the terminal back.
        let terminal = execute!(io::stderr(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stderr())));
        match terminal {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    pub(super) fn draw(&mut self, model: &Model) -> io::Result<()> {
        self.terminal.draw(|frame| picture::draw(frame, model)).map(drop)
    }

    /// The next key that means something, waiting for it at most `wait`.
    pub(super) fn key(&self, wait: Duration) -> io::Result<Option<Key>> {
        if !event::poll(wait)? {
            return Ok(None);
        }
        let Event::Key(key) = event::read()? else { return Ok(None) };
        if key.kind == KeyEventKind::Release {
            return Ok(None);
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        Ok(match key.code {
            KeyCode::Char('c') if control => Some(Key::Quit),
            KeyCode::Char(digit @ '1'..='9') => Some(Key::Choose(digit as usize - '1' as usize)),
            KeyCode::Char('k') => Some(Key::KillServer),
            KeyCode::Char('n') => Some(Key::KillNode),
            KeyCode::Char('d') => Some(Key::KillDomain),
            KeyCode::Char('p') => Some(Key::Pause),
            KeyCode::Char('r') => Some(Key::Restart),
            KeyCode::Char('c') => Some(Key::Chaos),
            KeyCode::Char('s') => Some(Key::Status),
            KeyCode::Char('?' | 'h') => Some(Key::Help),
            KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
            _ => None,
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
        // The hook that was there before went into the one that is taken away here.
        let _ours = panic::take_hook();
    }
}

fn give_back() {
    // If the terminal is gone there is nothing to give back.
    let _raw = disable_raw_mode();
    let _screen = execute!(io::stderr(), LeaveAlternateScreen, Show);
}
