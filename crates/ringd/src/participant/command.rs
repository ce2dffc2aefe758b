//! What the director of a benchmark says on standard input: see `bench/peers/README.md`.
//!
//! Invariant: a line that cannot be read is an error with the line in it, never a guess.

use quorba_order::Guarantee;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Prepare(Plan),
    Go,
    Stop,
    Quit,
}

/// How messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One message at a time, each when the one before it has come back.
    Latency,
    /// As fast as window and interface allow, for a time.
    Stream,
    /// One per pause, until told to stop.
    Steady,
}

/// An experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) id: u32,
    pub(crate) kind: Kind,
    pub(crate) size_bytes: usize,
    /// The only sender; 0: everyone sends.
    pub(crate) sender: u32,
    /// Messages for [`Kind::Latency`], milliseconds for [`Kind::Stream`].
    pub(crate) amount: u64,
    /// Own messages that may be undelivered; 0: any number.
    pub(crate) window: u64,
    pub(crate) pause_us: u64,
    pub(crate) guarantee: Guarantee,
}

/// Longest message of an experiment.
const SIZE_BYTES_MAX: usize = 1 << 20;
/// A message has a header of so many bytes.
pub(crate) const HEADER_BYTES: usize = 16;

/// Reads a line.
pub(crate) fn parse(line: &str) -> Result<Command, String> {
    let mut words = line.split_ascii_whitespace();
    match words.next() {
        Some("prepare") => plan(words).map(Command::Prepare),
        Some("go") => Ok(Command::Go),
        Some("stop") => Ok(Command::Stop),
        Some("quit") => Ok(Command::Quit),
        _ => Err(format!("not a command: {line:?}")),
    }
}

fn plan<'a>(words: impl Iterator<Item = &'a str>) -> Result<Plan, String> {
    let mut plan = Plan {
        id: 0,
        kind: Kind::Latency,
        size_bytes: HEADER_BYTES,
        sender: 0,
        amount: 0,
        window: 0,
        pause_us: 0,
        guarantee: Guarantee::Agreed,
    };
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("no value: {word:?}"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("not a number: {word:?}"));
        let small = || value.parse::<u32>().map_err(|_| format!("not a number: {word:?}"));
        match (key, value) {
            ("id", _) => plan.id = small()?,
            ("kind", "latency") => plan.kind = Kind::Latency,
            ("kind", "stream") => plan.kind = Kind::Stream,
            ("kind", "steady") => plan.kind = Kind::Steady,
            ("size", _) => plan.size_bytes = small()? as usize,
            ("sender", _) => plan.sender = small()?,
            ("amount", _) => plan.amount = number()?,
            ("window", _) => plan.window = number()?,
            ("pause_us", _) => plan.pause_us = number()?,
            ("guarantee", "agreed") => plan.guarantee = Guarantee::Agreed,
            ("guarantee", "safe") => plan.guarantee = Guarantee::Safe,
            _ => return Err(format!("unknown: {word:?}")),
        }
    }
    if !(HEADER_BYTES..=SIZE_BYTES_MAX).contains(&plan.size_bytes) {
        return Err(format!("size must be {HEADER_BYTES} to {SIZE_BYTES_MAX}"));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_whole_and_nonsense_is_refused() {
        let line = "prepare id=7 kind=stream size=1024 sender=0 amount=2000 window=200 \
                    pause_us=5 guarantee=safe";
        let plan = Plan {
            id: 7,
            kind: Kind::Stream,
            size_bytes: 1024,
            sender: 0,
            amount: 2000,
            window: 200,
            pause_us: 5,
            guarantee: Guarantee::Safe,
        };
        assert_eq!(parse(line), Ok(Command::Prepare(plan)));
        assert_eq!(parse("go"), Ok(Command::Go));
        for bad in ["", "gone", "prepare id=x", "prepare size=3", "prepare kind=idle", "prepare 1"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
