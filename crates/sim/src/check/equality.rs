//! Replicas that serve are equal when all is quiet.

use super::Serving;

pub(super) fn check(serving: &[Serving<'_>]) -> Vec<(&'static str, String)> {
    let Some((first, others)) = serving.split_first() else { return Vec::new() };
    others
        .iter()
        .filter(|other| other.log.end() != first.log.end())
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
