//! What processes may rely on, checked over everything that they were told.

use super::{Host, Told};
use quorba_groups::{GroupName, GroupNumber, GroupView, GroupViewId, ProcessId};
use quorba_order::ViewKind;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a process was told in one regular view, up to the next.
#[derive(Debug)]
struct Stay {
    process: ProcessId,
    group: GroupNumber,
    view: Arc<GroupView>,
    regular: Vec<Vec<u8>>,
    /// Members of each transitional view, with what came behind it.
    transitional: Vec<(Vec<ProcessId>, Vec<Vec<u8>>)>,
    next: Option<Arc<GroupView>>,
}

impl Stay {
    fn messages(&self) -> Vec<Vec<u8>> {
        let later = self.transitional.iter().flat_map(|(_, messages)| messages);
        self.regular.iter().chain(later).cloned().collect()
    }
}

fn stays(host: &Host) -> Vec<(GroupName, Stay)> {
    let mut all = Vec::new();
    for ((number, group), told) in &host.told {
        let process = host.id(*number);
        let mut mine: Vec<Stay> = Vec::new();
        for told in told {
            match told {
                Told::View(view) if view.kind == ViewKind::Regular => {
                    if let Some(last) = mine.last_mut() {
                        last.next = Some(Arc::clone(view));
                    }
                    let (regular, transitional) = (Vec::new(), Vec::new());
                    let view = Arc::clone(view);
                    let group = *group;
                    mine.push(Stay { process, group, view, regular, transitional, next: None });
                }
                Told::View(view) => {
                    let stay = mine.last_mut().expect("a transitional view follows a regular one");
                    assert_eq!(view.id, stay.view.id);
                    stay.transitional.push((view.members.to_vec(), Vec::new()));
                }
                Told::Message { view, from, payload } => {
                    let stay = mine.last_mut().expect("a view comes before messages");
                    assert_eq!(*view, stay.view.id, "messages name their view");
                    assert!(stay.view.members.contains(from), "only members are heard");
                    let list = stay.transitional.last_mut().map(|(_, list)| list);
                    list.unwrap_or(&mut stay.regular).push(payload.clone());
                }
            }
        }
        // Who has left is told so, and is in no view.
        mine.retain(|stay| stay.view.members.contains(&stay.process));
        let name = host.names[group].clone();
        all.extend(mine.into_iter().map(|stay| (name.clone(), stay)));
    }
    all
}

/// Everything that holds at any time.
pub fn safety(hosts: &[Host]) {
    let mut all: BTreeMap<GroupName, Vec<Stay>> = BTreeMap::new();
    for host in hosts {
        assert_eq!(host.malformed, 0);
        for (name, stay) in stays(host) {
            all.entry(name).or_default().push(stay);
        }
    }
    for stays in all.values() {
        views_agree(stays);
        views_follow(stays);
        together(stays);
        prefixes(stays);
        at_most_once(stays);
    }
}

/// One id, one membership.
fn views_agree(stays: &[Stay]) {
    let mut first: BTreeMap<GroupViewId, &Arc<GroupView>> = BTreeMap::new();
    for stay in stays {
        let known = first.entry(stay.view.id).or_insert(&stay.view);
        assert_eq!(known.members, stay.view.members, "{:?}", stay.view.id);
    }
}

/// A view is the one before it, without those who left, with those who joined; ids ascend.
fn views_follow(stays: &[Stay]) {
    for stay in stays {
        let mut had = stay.view.members.iter().copied().collect::<BTreeSet<_>>();
        for (members, _) in &stay.transitional {
            let now = members.iter().copied().collect::<BTreeSet<_>>();
            assert!(now.is_subset(&had) && now.contains(&stay.process));
            assert!(now.len() < had.len(), "a transitional view loses somebody");
            had = now;
        }
        let Some(next) = &stay.next else { continue };
        assert!(stay.view.id < next.id, "ids ascend");
        let mut members = stay.view.members.iter().copied().collect::<BTreeSet<_>>();
        for (process, _) in &next.left {
            assert!(members.remove(process), "{process:?} was not there");
        }
        assert!(had.is_superset(&members), "whom a transitional view lost has left");
        for (process, _) in &next.joined {
            assert!(members.insert(*process), "{process:?} was there");
        }
        let given = next.members.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(members, given);
        assert!(!next.left.is_empty() || !next.joined.is_empty(), "no view without a change");
    }
}

/// Virtual synchrony: who goes together from one view to the next got the same in between.
fn together(stays: &[Stay]) {
    let stayed = |stay: &Stay, other: ProcessId| {
        let next = stay.next.as_ref().expect("filtered");
        next.members.contains(&other) && !next.joined.iter().any(|(joined, _)| *joined == other)
    };
    let mut classes: BTreeMap<(GroupViewId, GroupViewId), Vec<&Stay>> = BTreeMap::new();
    for stay in stays {
        if let Some(next) = &stay.next {
            classes.entry((stay.view.id, next.id)).or_default().push(stay);
        }
    }
    for stays in classes.values() {
        for (a, b) in stays.iter().zip(&stays[1..]) {
            if stayed(a, b.process) {
                let left = a.next.as_ref().is_some_and(|next| !next.members.contains(&a.process));
                assert!(left || stayed(b, a.process), "together is mutual");
                assert_eq!(a.regular, b.regular, "{:?} {:?}", a.process, b.process);
                assert_eq!(a.transitional, b.transitional, "{:?} {:?}", a.process, b.process);
            }
        }
    }
}

/// In a regular view everybody gets the same messages from the first on.
fn prefixes(stays: &[Stay]) {
    let mut longest: BTreeMap<GroupViewId, Vec<Vec<u8>>> = BTreeMap::new();
    for stay in stays {
        let longest = longest.entry(stay.view.id).or_default();
        let common = longest.len().min(stay.regular.len());
        assert_eq!(longest[..common], stay.regular[..common], "{:?}", stay.view.id);
        if stay.regular.len() > longest.len() {
            longest.clone_from(&stay.regular);
        }
    }
}

/// No process gets a message twice; all that get it, get it in the order of its sender.
fn at_most_once(stays: &[Stay]) {
    let mut got: BTreeMap<ProcessId, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for stay in stays {
        for message in stay.messages() {
            assert!(got.entry(stay.process).or_default().insert(message), "twice");
        }
    }
}

/// What holds when the network is whole and everything has settled: `up` are the lives that run.
pub fn settled(hosts: &[Host], up: &[usize]) {
    safety(hosts);
    let mut wanted: BTreeMap<GroupName, Vec<ProcessId>> = BTreeMap::new();
    for host in up.iter().map(|life| &hosts[*life]) {
        for (number, group) in &host.wants {
            let process = host.id(*number);
            wanted.entry(host.names[group].clone()).or_default().push(process);
        }
    }
    wanted.values_mut().for_each(|members| members.sort_unstable());
    for host in up.iter().map(|life| &hosts[*life]) {
        let groups = host.groups.groups().map(|(name, members)| (name.clone(), members.to_vec()));
        assert_eq!(groups.collect::<BTreeMap<_, _>>(), wanted, "nobody lacks, no ghosts");
        for (name, stay) in stays(host).into_iter().filter(|(_, stay)| stay.next.is_none()) {
            if host.wants.contains(&(stay.process.number, stay.group)) {
                assert_eq!(*stay.view.members, wanted[&name], "the last view of {name}");
            }
        }
        for ((number, group), sent) in &host.sent {
            let process = host.id(*number);
            let told = host.told[&(*number, *group)].iter();
            let own = told.filter_map(|told| match told {
                Told::Message { from, payload, .. } if *from == process => Some(payload),
                _ => None,
            });
            let own: Vec<_> = own.cloned().collect();
            let all = host.gone.contains(number) || own.len() == sent.len();
            assert!(all, "self-delivery: {own:?} of {sent:?}");
            assert_eq!(own[..], sent[..own.len()], "own messages in their order");
        }
    }
}
