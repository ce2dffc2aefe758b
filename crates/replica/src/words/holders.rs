//! Whose names of requests a group remembers, and how many more each may have.
//!
//! What it is not: when names are forgotten.
//! Invariant: whoever has come first never has everything. A client may have as many more as would
//! be free with as many taken from its whole address, and an address as many as are free: one
//! client gets a third of all, one address half, and each further one a share of what is left.
//! It depends on what is remembered alone, so all members decide alike.

use alloc::collections::BTreeMap;
use bytes::Bytes;

/// The most names that a group remembers; beyond its share of it, a client's new ones are refused
/// (NO_RESOURCES).
pub(crate) const NAMES_MAX: usize = 300_000;

type Subject = [u8; 16];

/// See the module's text.
#[derive(Default)]
pub(crate) struct Holders {
    /// Per address, or certificate, and client id.
    clients: BTreeMap<(Subject, Bytes), usize>,
    subjects: BTreeMap<Subject, usize>,
    names: usize,
}

impl Holders {
    /// Whether there is room for one more name.
    pub(crate) fn has_room(&self, subject: &Subject, client_id: &Bytes) -> bool {
        let free = NAMES_MAX - self.names.min(NAMES_MAX);
        let of_subject = self.subjects.get(subject).copied().unwrap_or(0);
        let of_client = || self.clients.get(&(*subject, client_id.clone())).copied().unwrap_or(0);
        of_subject < free && of_client() < free - of_subject
    }

    /// Nobody has a name here, and nobody is remembered.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let Self { clients, subjects, names } = self;
        clients.is_empty() && subjects.is_empty() && *names == 0
    }

    pub(crate) fn add(&mut self, subject: Subject, client_id: &Bytes) {
        self.names += 1;
        *self.subjects.entry(subject).or_default() += 1;
        *self.clients.entry((subject, client_id.clone())).or_default() += 1;
    }

    pub(crate) fn remove(&mut self, subject: Subject, client_id: &Bytes) {
        fn take<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
            let Some(count) = counts.get_mut(key) else { return };
            *count -= 1;
            if *count == 0 {
                counts.remove(key);
            }
        }
        self.names = self.names.saturating_sub(1);
        take(&mut self.subjects, &subject);
        take(&mut self.clients, &(subject, client_id.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREEDY: Subject = [1; 16];
    const HONEST: Subject = [2; 16];

    fn fill(holders: &mut Holders, subject: Subject, client_id: impl Fn(usize) -> Bytes) -> usize {
        let mut count = 0;
        while holders.has_room(&subject, &client_id(count)) {
            holders.add(subject, &client_id(count));
            count += 1;
            assert!(count <= NAMES_MAX);
        }
        count
    }

    fn numbered(number: usize) -> Bytes {
        Bytes::copy_from_slice(&number.to_be_bytes())
    }

    #[test]
    fn one_client_leaves_room_for_others_of_its_address_and_for_other_addresses() {
        let mut holders = Holders::default();
        let one = fill(&mut holders, GREEDY, |_| Bytes::from_static(b"greedy"));
        assert_eq!(one, NAMES_MAX / 3);
        let other = fill(&mut holders, GREEDY, |_| Bytes::from_static(b"other"));
        assert!(other > 10_000, "{other}");
        let honest = fill(&mut holders, HONEST, |_| Bytes::from_static(b"honest"));
        assert!(honest > 10_000, "{honest}");
    }

    #[test]
    fn one_address_with_many_client_ids_leaves_room_for_other_addresses() {
        let mut holders = Holders::default();
        assert_eq!(fill(&mut holders, GREEDY, numbered), NAMES_MAX / 2);
        assert!(fill(&mut holders, HONEST, |_| Bytes::from_static(b"honest")) > 10_000);
    }

    #[test]
    fn what_is_forgotten_makes_room() {
        let mut holders = Holders::default();
        let id = Bytes::from_static(b"c");
        let count = fill(&mut holders, GREEDY, |_| id.clone());
        holders.remove(GREEDY, &id);
        assert!(holders.has_room(&GREEDY, &id));
        (1..count).for_each(|_| holders.remove(GREEDY, &id));
        assert!(holders.is_empty());
    }
}
