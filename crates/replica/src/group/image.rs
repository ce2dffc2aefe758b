//! What the node writes down of its member, so that it needs less of its log.
//!
//! What it is not: when; that is for all groups together. Invariant: nothing here changes the
//! table.

use super::Group;
use crate::log::Place;
use crate::output::{Outbox, Output};
use crate::table::MemberState;

/// Whether the log can go on, for a group, from now on alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depictable {
    /// It has nothing of it, or nothing that a start would use.
    NotNeeded,
    /// With an image of the member.
    Yes,
    /// Not now, or never.
    No,
}

impl Group {
    /// See [`Depictable`].
    pub(crate) fn depictable(&self) -> Depictable {
        let Some(member) = self.member.as_ref().filter(|_| !self.config.foreign) else {
            return Depictable::NotNeeded;
        };
        if self.is_stateless() {
            return Depictable::NotNeeded;
        }
        let can = match self.table.state(self.here) {
            Some(MemberState::In { attempt }) => member.can_be_depicted(attempt),
            // What was lost with all nodes of a group that is not durable was never promised.
            _ if !self.config.durable => return Depictable::NotNeeded,
            _ => false,
        };
        if can && self.config.state_object.is_some() { Depictable::Yes } else { Depictable::No }
    }

    /// Has the member depicted as it is now.
    pub(crate) fn depict(&mut self, place: Place) {
        let history = self.table.history;
        if let Some(member) = &mut self.member {
            member.begin_image(place, history);
        }
    }

    /// An image that is complete goes to disk.
    pub(super) fn save_image(&mut self, out: &mut Outbox) {
        let image = self.member.as_mut().and_then(crate::member::Member::take_image);
        let Some((place, parts)) = image else { return };
        out.push_back(Output::Save { group: self.id, place, parts });
    }
}
