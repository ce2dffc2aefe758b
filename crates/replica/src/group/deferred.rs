//! Which of a group's server's replies may be deferred.

use super::Group;
use crate::member::Member;

impl Group {
    pub(crate) fn calls_under_way(&self) -> usize {
        self.member.as_deref().map_or(0, Member::calls_under_way)
    }

    /// See [`crate::Replica::reply_wanted`].
    pub(crate) fn reply_wanted(&self) -> Option<bool> {
        self.member.as_deref()?.reply_wanted()
    }
}
