//! The measures against long waits at failover, alone and together (Huang05 §4.3).
//!
//! The paper's: pushes with a thread of their own, and a priority for it; no futile reconnect to
//! who has ended; memory that was used before. In place of the last the members that do not lead
//! have connections to consumers here: it is what the first push would wait for.
//!
//! What it is not: what is measured with them, which is [`super::failover`]. Invariant: each
//! setting has a name of its own, and that of the files' usual one is [`SHIPPED`].

use quorba_config::Without;
use serde::Serialize;

use super::failover::{CASES, Case, Moment, Victim};

/// The real-time priority of threads that events wait for, where they have one.
pub(super) const PRIORITY: u32 = 10;

/// Which measures are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Measures {
    /// Pushes have a connection and a thread of their own at the process of the service.
    pub own_way: bool,
    /// The threads that events wait for have a real-time priority.
    pub priority: bool,
    /// Members that do not lead have connections to consumers.
    pub warm: bool,
    /// A supplier does not connect again to who has ended.
    pub moves_on: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) measures: Measures,
    /// Its column of figure 4, if it is one.
    pub(super) column: Option<&'static str>,
}

const NONE: Measures = Measures { own_way: false, priority: false, warm: false, moves_on: false };
const ALL: Measures = Measures { own_way: true, priority: true, warm: true, moves_on: true };

const fn step(name: &'static str, measures: Measures) -> Setting {
    Setting { name, measures, column: None }
}

const fn column(name: &'static str, column: &'static str, measures: Measures) -> Setting {
    Setting { name, measures, column: Some(column) }
}

/// What a domain file that says nothing of it has, with a supplier that moves on.
pub(super) const SHIPPED: &str = "all but priorities";

/// Every setting, in the order of the report.
pub(super) const SETTINGS: [Setting; 8] = [
    step("no measure", NONE),
    step("own threads only", Measures { own_way: true, ..NONE }),
    step("priorities only", Measures { priority: true, ..NONE }),
    step("warm connections only", Measures { warm: true, ..NONE }),
    step("no futile reconnect only", Measures { moves_on: true, ..NONE }),
    column(
        "all but threads and priorities",
        "without threads of their own",
        Measures { own_way: false, priority: false, ..ALL },
    ),
    column(SHIPPED, "with threads", Measures { priority: false, ..ALL }),
    column("all measures", "with threads and priorities", ALL),
];

impl Setting {
    /// Who dies in it, and when.
    pub(super) fn cases(&self) -> &'static [Case] {
        const SOME: [Case; 3] = [
            (Victim::Process, Moment::Between),
            (Victim::Process, Moment::Middle),
            (Victim::Node, Moment::Between),
        ];
        if self.name == SHIPPED { &CASES } else { &SOME }
    }

    /// How often, if figures 4 and 5 have `count` of each case: a step needs fewer.
    pub(super) fn deaths(&self, count: u32) -> u32 {
        if self.column.is_some() { count } else { (count / 4).max(1) }
    }
}

impl Measures {
    /// The keys of `[service.events]` with which a domain has them.
    pub(super) fn keys(self) -> String {
        let mut without = Vec::new();
        if !self.own_way {
            without.push(Without::OWN_WAY);
        }
        if !self.warm {
            without.push(Without::WARM);
        }
        let priority = if self.priority { PRIORITY } else { 0 };
        format!(
            "real_time_priority = {priority}\nenv = {{ {} = \"{}\" }}\n",
            Without::VARIABLE,
            without.join(" ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_measure_stands_alone_once_and_all_stand_together() {
        let names: BTreeSet<_> = SETTINGS.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), SETTINGS.len());
        assert!(names.contains(SHIPPED));
        let taken = |measures: Measures| {
            let Measures { own_way, priority, warm, moves_on } = measures;
            [own_way, priority, warm, moves_on].iter().filter(|taken| **taken).count()
        };
        let counts: Vec<_> = SETTINGS.iter().map(|one| taken(one.measures)).collect();
        assert_eq!(counts, [0, 1, 1, 1, 1, 2, 3, 4]);
        assert_eq!(SETTINGS.iter().filter(|one| one.column.is_some()).count(), 3);
    }

    #[test]
    fn a_domain_is_told_what_it_does_without() {
        let said = NONE.keys();
        assert!(said.contains("real_time_priority = 0\n"), "{said}");
        assert!(said.contains("QUORBA_EVENTS_WITHOUT = \"own-way warm\""), "{said}");
        assert!(ALL.keys().starts_with("real_time_priority = 10\n"));
    }
}
