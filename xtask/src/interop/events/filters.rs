//! TAO's filters of every kind, and the facade's subscription, on running nodes: consumers and
//! suppliers by stubs of omniORB that TAO's IDL was made to, against an evaluation here.
//!
//! What it is not: a test of the compiler of filters; `crates/events/tests/filters.rs` has
//! thousands. Invariants: nothing here knows how a channel filters; what was repeated when another
//! member began to lead counts once; the process that leads is killed while conjunctions hold half
//! of what they wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::{SERVICE, TIME_MAX, channels};
use crate::examples::Example;
use crate::interop::{Context, Verdict, fleet};
use crate::wait;

/// Events before the kill, and behind it.
const HALF: i32 = 40;
/// The period of timers, in 100 ns and in a part of a second.
const PERIOD: u64 = 3_000_000;
/// How often a timer that repeats must have fired.
const FIRES: usize = 3;

/// What a consumer wants.
enum Want {
    /// A type and a source; 0 is any.
    Type(i32, i32),
    /// Bits of both, and what they must be.
    Masked([i32; 4]),
    /// A bit of each is set, and this.
    Bits(i32, i32, Box<Self>),
    Not(Box<Self>),
    Global(Box<Self>),
    Any(Vec<Self>),
    And(Vec<Self>),
    All(Vec<Self>),
    Everything,
}

#[derive(Clone, Copy)]
struct Event {
    event_type: i32,
    source: i32,
    number: i32,
}

/// What the parts of conjunctions have: by the path to a part, in the order in which they came.
#[derive(Default)]
struct Came(BTreeMap<Vec<usize>, Vec<(usize, Vec<i32>)>>);

impl Want {
    /// As a subscription (TAO's constants of `Event_Service_Constants`).
    fn write(&self, out: &mut Vec<String>) {
        let mut one = |event_type: i32, source: i32| out.push(format!("{event_type}:{source}:0"));
        match self {
            Self::Type(event_type, source) => one(*event_type, *source),
            Self::Masked([type_mask, source_mask, event_type, source]) => {
                one(13, 0);
                one(*type_mask, *source_mask);
                one(*event_type, *source);
            }
            Self::Bits(event_type, source, inner) => {
                one(12, 0);
                one(*event_type, *source);
                inner.write(out);
            }
            Self::Not(inner) => {
                one(10, 0);
                inner.write(out);
            }
            Self::Global(inner) => {
                one(7, 0);
                inner.write(out);
            }
            Self::Everything => one(14, 0),
            Self::Any(parts) | Self::And(parts) | Self::All(parts) => {
                let kind = match self {
                    Self::All(_) => 8,
                    Self::Any(_) => 9,
                    _ => 11,
                };
                one(kind, i32::try_from(parts.len()).unwrap_or_default());
                parts.iter().for_each(|part| part.write(out));
            }
        }
    }

    fn text(&self) -> String {
        let mut parts = Vec::new();
        self.write(&mut parts);
        parts.join(",")
    }

    /// Whether it accepts, and what it hands up then.
    fn ask(&self, event: Event, path: &[usize], came: &mut Came) -> Option<Vec<i32>> {
        let alone = |accepts: bool| accepts.then(|| vec![event.number]);
        let below = |part: usize| [path, &[part]].concat();
        match self {
            Self::Type(event_type, source) => {
                let fits = |wanted: i32, there: i32| wanted == 0 || wanted == there;
                alone(fits(*event_type, event.event_type) && fits(*source, event.source))
            }
            Self::Masked([type_mask, source_mask, event_type, source]) => alone(
                event.event_type & type_mask == *event_type
                    && event.source & source_mask == *source,
            ),
            Self::Bits(event_type, source, inner) => {
                let has = event.event_type & event_type != 0 && event.source & source != 0;
                has.then(|| inner.ask(event, &below(0), came)).flatten()
            }
            Self::Not(inner) => alone(inner.ask(event, &below(0), came).is_none()),
            Self::Global(inner) => inner.ask(event, &below(0), came),
            Self::Everything => alone(true),
            Self::And(parts) => alone(
                parts.iter().enumerate().all(|(at, it)| it.ask(event, &below(at), came).is_some()),
            ),
            Self::Any(parts) => {
                let mut parts = parts.iter().enumerate();
                parts.find_map(|(at, part)| part.ask(event, &below(at), came))
            }
            Self::All(parts) => {
                let mut numbered = parts.iter().enumerate();
                let (part, items) = numbered
                    .find_map(|(at, part)| Some((at, part.ask(event, &below(at), came)?)))?;
                let has = came.0.entry(path.to_vec()).or_default();
                // Who has come keeps what came first; an inner one that lacks something has none.
                if !items.is_empty() && has.iter().all(|(of, _)| *of != part) {
                    has.push((part, items));
                    if has.len() == parts.len() {
                        return Some(has.iter().flat_map(|(_, items)| items.clone()).collect());
                    }
                }
                // It has the event, and nothing passes.
                Some(Vec::new())
            }
        }
    }

    /// What comes of these events, in sets.
    fn evaluate(&self, events: &[Event]) -> Vec<String> {
        let mut came = Came::default();
        let mut sets = Vec::new();
        for event in events {
            let passed = self.ask(*event, &[], &mut came).filter(|set| !set.is_empty());
            let Some(set) = passed else { continue };
            came.0.clear();
            let set: Vec<String> = set.iter().map(ToString::to_string).collect();
            sets.push(set.join("+"));
        }
        sets
    }
}

fn wants() -> Vec<Want> {
    let boxed = |want: Want| Box::new(want);
    let (one, two, three) = (|| Want::Type(17, 0), || Want::Type(18, 0), || Want::Type(19, 0));
    vec![
        one(),
        Want::Type(0, 2),
        Want::Type(18, 1),
        Want::Masked([3, 1, 1, 1]),
        Want::Bits(2, 3, boxed(Want::Type(0, 1))),
        Want::Not(boxed(one())),
        Want::Global(boxed(two())),
        Want::Any(vec![one(), Want::Type(18, 1)]),
        Want::And(vec![two(), Want::Type(0, 2)]),
        Want::Everything,
        Want::All(vec![one(), two()]),
        Want::All(vec![one(), Want::Any(vec![two(), three()])]),
        Want::All(vec![Want::All(vec![Want::Type(16, 0), one()]), Want::Not(boxed(one()))]),
        Want::And(vec![Want::Not(boxed(three())), Want::Any(vec![one(), two(), three()])]),
    ]
}

/// Types and sources that look like anything.
fn events(from: i32, dice: &mut u32) -> Vec<Event> {
    let mut roll = |below: u32| {
        *dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        i32::try_from((*dice >> 16) % below).unwrap_or_default()
    };
    let one = |number| Event { event_type: 16 + roll(4), source: 1 + roll(2), number };
    (from..from + HALF).map(one).collect()
}

/// Killed when this is dropped.
struct Consumers(Child, std::path::PathBuf);

impl Drop for Consumers {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _status = self.0.wait();
    }
}

impl Consumers {
    /// What the consumer at a place has, each set once.
    fn got(&self, place: usize) -> (Vec<String>, usize) {
        let text = std::fs::read_to_string(&self.1).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let begin = format!("{place} ");
        let lines: Vec<&str> = whole.lines().filter_map(|line| line.strip_prefix(&begin)).collect();
        let mut seen = BTreeSet::new();
        let sets = lines.iter().filter(|line| seen.insert(**line)).map(ToString::to_string);
        (sets.collect(), lines.len())
    }
}

fn client() -> Command {
    Command::new(Example::OmniorbAdapter.built().join("filters_client"))
}

fn supply(channel: &str, interface: &str, events: &[Event]) -> Result<(), String> {
    let text: Vec<String> = events
        .iter()
        .map(|one| format!("{}:{}:{}", one.event_type, one.source, one.number))
        .collect();
    let mut command = client();
    command.args(["supply", channel, interface, &text.join(",")]);
    let output = command.output().map_err(|error| format!("filters_client: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("the supplier: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

pub(in crate::interop) fn run(context: &Context) -> Verdict {
    run_in(context).map_or_else(Verdict::Failed, Verdict::Passed)
}

/// All consumers have what the evaluation says.
fn wait_for(consumers: &Consumers, wants: &[Want], events: &[Event]) -> Result<usize, String> {
    let expected: Vec<Vec<String>> = wants.iter().map(|want| want.evaluate(events)).collect();
    wait::until("every filter has let through what it should", TIME_MAX, || {
        for (place, want) in (0..2 * wants.len()).zip(wants.iter().cycle()) {
            let (got, expected) = (consumers.got(place).0, &expected[place % wants.len()]);
            if got != *expected {
                let filter = want.text();
                return Err(format!("consumer {place} ({filter}): {got:?}, and not {expected:?}"));
            }
        }
        Ok(())
    })?;
    Ok(expected.iter().map(Vec::len).sum::<usize>() * 2)
}

fn run_in(context: &Context) -> Result<String, String> {
    let (fleet, channel) = channels(context)?;
    // What comes together belongs together there.
    let single = channel("single");
    let (wants, path) = (wants(), context.folder.join("filters.out"));
    let failed = |error: std::io::Error| format!("filters_client: {error}");
    let mut command = client();
    command.args(["consume", &single]);
    for interface in ["rtec", "facade"] {
        for want in &wants {
            command.args([interface, &want.text()]);
        }
    }
    // One timer that fires once, and two that fire again.
    let timers = 2 * wants.len();
    for (kind, interface) in [(4, "facade"), (5, "rtec"), (6, "facade")] {
        command.args([interface, &format!("{kind}:0:{PERIOD}")]);
    }
    command.stdin(Stdio::null()).stdout(std::fs::File::create(&path).map_err(failed)?);
    let consumers = Consumers(command.spawn().map_err(failed)?, path);
    wait::until("all consumers are connected", TIME_MAX, || {
        let text = std::fs::read_to_string(&consumers.1).unwrap_or_default();
        if text.lines().any(|line| line == "connected") { Ok(()) } else { Err(text) }
    })?;

    let mut dice = 2_005;
    let mut all = events(1, &mut dice);
    supply(&single, "facade", &all)?;
    wait_for(&consumers, &wants, &all)?;
    fleet::signal(fleet.server(fleet.leader()?)?.pid, Signal::KILL);
    fleet.wait_whole()?;
    let more = events(1 + HALF, &mut dice);
    supply(&single, "rtec", &more)?;
    all.extend(more);
    let sets = wait_for(&consumers, &wants, &all)?;

    wait::until("timers fire", TIME_MAX, || {
        let [once, again, deadline] = [0, 1, 2].map(|at| consumers.got(timers + at));
        let (fires, deadlines) = (again.1, deadline.1);
        let is_right = once.0 == ["t4"] && again.0 == ["t5"] && deadline.0 == ["t6"];
        match is_right && fires >= FIRES && deadlines >= FIRES {
            true => Ok(()),
            false => Err(format!("{once:?}, {again:?}, {deadline:?}")),
        }
    })?;
    drop(consumers);
    fleet.wait_whole()?;
    fleet.end()?;
    Ok(format!(
        "{} filters at TAO's interface and at the facade of {SERVICE}: {} events, {sets} sets, as \
         evaluated; a kill of who leads between halves; timers fire",
        wants.len(),
        all.len()
    ))
}
