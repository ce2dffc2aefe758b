//! `[service.events.channel.NAME]`: the channels of the event service.
//!
//! What it is not: a channel. What a rule may say is defined in `base`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use quorba_base::channel::{
    Bounds, CHANNELS_BYTES, ChannelRule, FLAGS, NUMBERS, PUSHES_AT_ONCE, PUSHES_AT_ONCE_USUAL,
    RT_CRITICAL, RT_INFO_MAX, RT_INFOS_MAX, RT_NUMBERS, RtRule, rt_info_number,
};
use quorba_base::policy::{Full, Scheduling, Style};

use crate::codes::Code;
use crate::problem::Problem;
use crate::walk::Section;

/// Channels of one file; clients can make more.
const CHANNELS_MAX: usize = 100;

/// Real-time priorities of Linux, and 0.
const PRIORITIES: RangeInclusive<u64> = 0..=99;

/// Every channel, in the order of the file.
pub(super) fn read_all(service: &Section<'_>) -> Vec<(String, ChannelRule)> {
    let sections = service.named("channel");
    if sections.len() > CHANNELS_MAX {
        let message = format!("{} has {} channels", service.title, sections.len());
        let problem = Problem::at(Code::TooMany, service.header.clone(), message);
        service.problems.add(problem.help(format!("at most {CHANNELS_MAX} are possible")));
    }
    let mut rules = Vec::new();
    for (name, section) in sections {
        rules.push((name.value.to_owned(), read_one(&section)));
        section.finish();
    }
    rules
}

/// How much all channels may hold together, and whether those of the file are within that.
pub(super) fn read_bounds(
    service: &Section<'_>,
    state_bytes: u32,
    rules: &[(String, ChannelRule)],
) -> Bounds {
    let usual = Bounds::default().channels_bytes;
    let channels_bytes = service.number_or("channels_bytes", "bytes", CHANNELS_BYTES, usual);
    let bounds = Bounds { channels_bytes, ..Bounds::of_state(state_bytes.into()) };
    if let Err(why) = bounds.check(rules.iter().map(|(_, rule)| rule)) {
        let key = service.value("channels_bytes").map_or(service.header.clone(), |it| it.span());
        service.problems.add(Problem::at(Code::Conflict, key, why));
    }
    bounds
}

/// The priority of threads that pass events on; 0: they have none.
pub(super) fn read_priority(service: &Section<'_>) -> u8 {
    service.number_or("real_time_priority", "", PRIORITIES, 0)
}

/// How many pushes are under way at a time.
pub(super) fn read_pushes(service: &Section<'_>) -> u32 {
    service.number_or("pushes_at_once", "", PUSHES_AT_ONCE, PUSHES_AT_ONCE_USUAL)
}

fn read_one(section: &Section<'_>) -> ChannelRule {
    let mut rule = ChannelRule::new(section.boolean_or("reliable", false));
    rule.full = section.word_or("full", Full::WORDS, &[], rule.full);
    rule.strategy = section.word_or("strategy", Scheduling::WORDS, &[], rule.strategy);
    for (key, value) in NUMBERS.iter().zip(rule.numbers()) {
        *value = section.number_or(key.name, key.unit, key.range.clone(), key.default);
    }
    for (key, value) in FLAGS.iter().zip(rule.flags()) {
        *value = section.boolean_or(key, false);
    }
    rule.rt_infos = read_rt_infos(section);
    if let Err(why) = rule.check() {
        let full = section.value("full").map_or(section.header.clone(), |value| value.span());
        section.problems.add(Problem::at(Code::Conflict, full, why));
    }
    rule
}

/// `[service.events.channel.NAME.rt_info.NUMBER]`: what each one means.
fn read_rt_infos(section: &Section<'_>) -> BTreeMap<u32, RtRule> {
    let sections = section.named("rt_info");
    if sections.len() > RT_INFOS_MAX {
        let message = format!("{} has {} tables rt_info", section.title, sections.len());
        let problem = Problem::at(Code::TooMany, section.header.clone(), message);
        section.problems.add(problem.help(format!("at most {RT_INFOS_MAX} are possible")));
    }
    let mut rules = BTreeMap::new();
    for (name, section) in sections {
        let mut rule = RtRule::default();
        for (key, value) in RT_NUMBERS.iter().zip(rule.numbers()) {
            *value = section.number_or(key.name, key.unit, key.range.clone(), key.default);
        }
        rule.critical = section.boolean_or(RT_CRITICAL, false);
        if let Err(why) = rule.check() {
            let key = section.value("execution_us").map_or(section.header.clone(), |it| it.span());
            section.problems.add(Problem::at(Code::Conflict, key, why));
        }
        match rt_info_number(name.value) {
            Some(number) => drop(rules.insert(number, rule)),
            None => {
                let message = format!("{} is of no rt_info", section.title);
                let help = format!("its name is a number from 0 to {RT_INFO_MAX}, such as 1");
                section.problems.add(Problem::at(Code::BadName, name.span, message).help(help));
            }
        }
        section.finish();
    }
    rules
}

/// One member has to lead, and the others have to execute what it does.
pub(super) fn check_style(service: &Section<'_>) {
    let Some(style) = service.value("style") else { return };
    let word = style.get_ref().as_str().unwrap_or_default();
    if word == Style::SemiActive.as_str() || Style::from_word(word).is_none() {
        return;
    }
    let message = format!("the event service cannot have the style \"{word}\"");
    let help = "one member dispatches and all know the subscriptions: style = \"semi-active\", \
                which it has if you leave the key out";
    service.problems.add(Problem::at(Code::Conflict, style.span(), message).help(help));
}
