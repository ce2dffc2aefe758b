//! Groups and servers outside that come, change and go: each room is told.
//!
//! What it is not: the catalog, which is the replica's. Invariant: a room knows of each what the
//! catalog says, from the place in the order on at which it was said.

use super::Node;
use crate::definitions::Settings;
use crate::external::OutsideSettings;
use crate::gateway::Submission;
use crate::pending::Executed;
use bytes::Bytes;
use quorba_base::{Instant, Position};
use quorba_order::Guarantee;
#[cfg(doc)]
use quorba_replica::DriverOutput;
use quorba_replica::{Ack, Catalog, CatalogChange, DefinitionNews, GroupId, Reach};

impl Node {
    /// What the domain's groups are now.
    #[must_use]
    pub const fn catalog(&self) -> &Catalog {
        self.replica.catalog()
    }

    /// An operator wants to change the catalog; [`DriverOutput::CatalogChanged`] with the same `id`
    /// says what became of it. See [`quorba_replica::Replica::handle_define`].
    pub fn handle_define(
        &mut self,
        now: Instant,
        id: u64,
        operation: Bytes,
        change: CatalogChange,
    ) {
        self.replica.handle_define(id, operation, change);
        self.unsettled = Some(now);
    }

    /// What [`DriverOutput::Catalog`] asked for is on disk, up to this one.
    pub fn handle_catalog_saved(&mut self, now: Instant, version: Position) {
        self.replica.handle_catalog_saved(version);
        self.unsettled = Some(now);
    }

    /// How safe what is ordered for a group must be.
    pub(super) fn guarantee(&self, group: GroupId) -> Guarantee {
        self.guarantees.get(group).copied().unwrap_or(Guarantee::Agreed)
    }

    /// Whether so many members are in as the caller of the request wants to have it; if not, the
    /// caller was told. Its reply waits until they have it. Nothing that is ordered behind it does,
    /// so no client can slow down others.
    pub(super) fn meets_depth(&mut self, submission: &Submission) -> bool {
        let depth = self.gateway.pending_of(submission).map_or(0, |pending| pending.depth.members);
        // The first one that has it is whoever replies.
        if depth < 2 {
            return true;
        }
        let reach = self.replica.reach(submission.group, depth);
        let executed = match reach {
            Reach::Executed => Executed::Awaited,
            Reach::Holders | Reach::View | Reach::TooFew => Executed::NotAsked,
        };
        let (ack, is_short) = match reach {
            Reach::Holders | Reach::Executed => (Ack::Majority, false),
            Reach::View => (Ack::Safe, false),
            Reach::TooFew => {
                // Whether what a client has named was as deep once, nobody knows: its gateway may
                // have ended before it was.
                let asked = self.gateway.pending_of(submission).map(|pending| &pending.request);
                let named = asked.filter(|request| request.ft.is_some());
                let is_new = named.is_none_or(|named| self.replica.knows(named) == Some(false));
                if self.gateway.too_deep(submission, is_new) {
                    return false;
                }
                // Some may have executed it before the others went away.
                (Ack::Safe, true)
            }
        };
        self.gateway.demand(submission, ack, is_short, executed);
        true
    }

    /// The rooms hear of it before the driver does.
    pub(super) fn defined(&mut self, id: GroupId, news: DefinitionNews) {
        match news {
            DefinitionNews::Created | DefinitionNews::Changed => self.define(id),
            DefinitionNews::Deleted => {
                self.gateway.dissolve(id);
                self.external.forget(id);
                self.guarantees.remove(id);
            }
        }
    }

    /// The rooms learn what the catalog says of it. What cannot be read is the replica's to tell.
    pub(super) fn define(&mut self, id: GroupId) {
        let catalog = self.replica.catalog();
        let Some(definition) = catalog.get(id) else { return };
        let settings = self.settings.settings_of(definition, &|name| catalog.id_of(name));
        let settings = match settings {
            Ok(Settings::Group(settings)) => *settings,
            Ok(Settings::Outside(server)) => return self.define_outside(id, server),
            Err(_) => return,
        };
        let guarantee = match settings.replica.ack {
            Ack::Safe => Guarantee::Safe,
            Ack::Majority | Ack::Agreed => Guarantee::Agreed,
        };
        self.guarantees.insert(id, guarantee);
        let counted = catalog.reference_version(id);
        self.gateway.define((id, counted), &definition.name, settings);
    }

    /// The gateway learns how often references have become others.
    pub(super) fn renumber(&mut self) {
        let catalog = self.replica.catalog();
        for (id, _) in catalog.iter() {
            self.gateway.renumber(id, catalog.reference_version(id));
        }
    }

    fn define_outside(&mut self, id: GroupId, server: OutsideSettings) {
        self.external.define(id, server);
        self.gateway.define_outside(id);
    }
}
