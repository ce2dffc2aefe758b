//! What is measured in one run behind figure 2: many consumers, many subscriptions, and deaths.
//!
//! What it is not: what each of them is; see [`super::load`], [`super::crowd`], [`super::depth`]
//! and [`super::failover`]. Invariant: what was measured is in the run's folder before the next
//! begins.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Service;
use super::crowd::{self, Crowd};
use super::depth::{self, Subscriptions};
use super::ends::Ends;
use super::failover::{self, Death};
use super::load::{self, Load};
use super::measures::{SETTINGS, Setting};
use super::stand::Stand;
use crate::error::LabError;
use crate::placement::Setting::Free;
use crate::run::{LabOptions, Record};

/// What `--only` calls the measurements with many consumers, and with many subscriptions.
pub(super) const LOADS: [&str; 3] = ["10 consumers", "1000 consumers", "10000 subscriptions"];
/// The domain in which they are made.
const BACKUPS: usize = 2;
/// Events to a thousand consumers: one for so many of figure 2.
const EVENTS_OF_MANY: u32 = 50;
/// After so many repetitions the domain is another one: servers that end again and again are
/// started after longer and longer pauses.
const DEATHS_OF_DOMAIN: u32 = 4;

/// What a measurement needs of its run.
pub(super) struct Bench<'a> {
    pub(super) options: &'a LabOptions,
    pub(super) program: &'a Path,
    pub(super) flag: &'a Arc<AtomicBool>,
    pub(super) record: &'a mut Record,
    pub(super) tell: &'a mut dyn FnMut(&str),
}

impl Bench<'_> {
    /// Events a second to many consumers, by each service, and by one of ours to very many.
    pub(super) fn loads(&mut self, rounds: u32, events: u32) -> Result<Vec<Load>, LabError> {
        let [some, many, _] = LOADS;
        let mut loads = Vec::new();
        let domain = Service::Domain { backups: BACKUPS };
        let services = Service::all().into_iter().filter(|one| match one {
            Service::Domain { backups } => [0, BACKUPS].contains(backups),
            Service::AtLeader | Service::AtOther => false,
            Service::Alone | Service::OmniEvents | Service::IceStorm => true,
        });
        let services: Vec<_> = services.collect();
        for round in 1..=rounds {
            let of_some = services.iter().map(|one| (*one, some, load::SOME, events));
            let of_many = (domain, many, load::MANY, (events / EVENTS_OF_MANY).max(10));
            let of_many = (round == 1).then_some(of_many);
            for (service, name, consumers, events) in of_some.chain(of_many) {
                if !self.options.wants(name) {
                    continue;
                }
                let result = Stand::start(self.program, service)
                    .and_then(|stand| load::measure(&stand, service, (round, consumers, events)));
                let load = self.record.measured(self.flag, (name, Free, round), result)?;
                (self.tell)(&load::line(&load));
                self.record.line(&load)?;
                loads.push(load);
            }
        }
        Ok(loads)
    }

    /// Many subscriptions.
    pub(super) fn crowd(&mut self, events: u32) -> Result<Option<Crowd>, LabError> {
        let [_, _, name] = LOADS;
        if !self.options.wants(name) {
            return Ok(None);
        }
        let service = Service::Domain { backups: BACKUPS };
        let result = Stand::start(self.program, service)
            .and_then(|stand| crowd::measure(&stand, crowd::SUBSCRIPTIONS, events));
        let crowd = self.record.measured(self.flag, (name, Free, 1), result)?;
        crowd::lines(Some(&crowd)).iter().for_each(|line| (self.tell)(line));
        self.record.line(&crowd)?;
        Ok(Some(crowd))
    }

    /// A domain with the measures of a setting, and both ends of its channel; or why a measure is
    /// refused.
    fn domain(
        &mut self,
        setting: &Setting,
        repetition: u32,
    ) -> Result<((Stand, Ends), Option<String>), LabError> {
        let measures = setting.measures;
        let all = Stand::with(self.program, failover::BACKUPS, measures)
            .and_then(|mut stand| match measures.priority {
                true => stand.is_refused().map(|why| (stand, why)),
                false => Ok((stand, None)),
            })
            .and_then(|(stand, why)| {
                Ends::connect(&stand, measures.moves_on).map(|ends| ((stand, ends), why))
            });
        self.record.measured(self.flag, (setting.name, Free, repetition), all)
    }

    /// Figure 3.
    pub(super) fn depths(&mut self, count: u32) -> Result<Vec<Subscriptions>, LabError> {
        let mut all = Vec::new();
        for (replication, name) in depth::WAYS {
            if !self.options.wants(name) {
                continue;
            }
            let result = Stand::counting(self.program, depth::BACKUPS, replication)
                .and_then(|stand| depth::measure(&stand, replication, count));
            let found = self.record.measured(self.flag, (name, Free, 1), result)?;
            for one in &found {
                self.record.line(one)?;
            }
            (self.tell)(&format!("{name}: measured"));
            all.extend(found);
        }
        Ok(all)
    }

    /// Figures 4 and 5, and the measures one by one.
    pub(super) fn failover(
        &mut self,
        count: u32,
        skipped: &mut Vec<String>,
    ) -> Result<Vec<Death>, LabError> {
        let mut deaths = Vec::new();
        for setting in SETTINGS.iter().filter(|setting| self.options.wants(setting.name)) {
            let (first, refused) = self.domain(setting, 1)?;
            if let Some(why) = refused {
                let what =
                    setting.column.map_or_else(String::new, |it| format!(" (figure 4, {it})"));
                skipped
                    .push(format!("skipped: {}{what}: no real-time priority: {why}", setting.name));
                (self.tell)(skipped.last().map_or("", String::as_str));
                continue;
            }
            let mut domain = Some(first);
            for repetition in 1..=setting.deaths(count) {
                if domain.is_none() || repetition % DEATHS_OF_DOMAIN == 0 {
                    // The one before ends first: it would use the cores.
                    domain = None;
                    domain.replace(self.domain(setting, repetition)?.0);
                }
                let Some((stand, ends)) = &mut domain else { continue };
                for case in setting.cases() {
                    let what = (setting.name, *case, repetition);
                    let result = failover::death(stand, ends, what);
                    let of = (setting.name, Free, repetition);
                    let death = self.record.measured(self.flag, of, result)?;
                    self.record.line(&death)?;
                    deaths.push(death);
                }
            }
            (self.tell)(&format!("failover with {}: measured", setting.name));
        }
        Ok(deaths)
    }
}
