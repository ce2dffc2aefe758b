//! Replicas that serve are equal when all is quiet.

use super::Serving;
use crate::servant::{Log, OBJECTS};

pub(super) fn check(serving: &[Serving<'_>], in_parts: bool) -> Vec<(&'static str, String)> {
    let Some((first, others)) = serving.split_first() else { return Vec::new() };
    others
        .iter()
        .filter(|other| !equal(first.log, other.log, in_parts))
        .map(|other| {
            let (a, b) = (first.log.references(), other.log.references());
            let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
            let text = format!(
                "n{} has {} references, n{} has {}; the first {same} are the same",
                first.node,
                a.len(),
                other.node,
                b.len()
            );
            ("equality", text)
        })
        .collect()
}

/// Equal as a whole, or object by object.
fn equal(one: &Log, other: &Log, in_parts: bool) -> bool {
    if in_parts {
        (0..OBJECTS).all(|object| one.part(object).eq(other.part(object)))
    } else {
        one.end() == other.end() && one.names_state() == other.names_state()
    }
}
