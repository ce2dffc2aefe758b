//! What may be sent again after which outcome: table 23-1 of FT-CORBA (§23.2.6).
//!
//! What it is not: where a request is sent, and until when; that is `call`'s. It does no I/O.

use quorba_giop::{Completion, ExceptionKind};

/// What a request says of itself: the columns of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Its reference names no group, and it carries no FT_REQUEST. CORBA allows to send it again
    /// after COMPLETED_NO; like omniORB and JacORB this client leaves that to the application.
    Plain,
    /// Its reference has TAG_FT_GROUP; it carries no FT_REQUEST.
    Group,
    /// It carries FT_REQUEST. The table wants TAG_FT_GROUP, too. Here the application says by the
    /// identity that it gives that the object remembers requests: a corbaloc names no group.
    Named,
}

/// What became of a request: the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// LOCATION_FORWARD, LOCATION_FORWARD_PERM.
    Forward,
    /// A system exception, of the server's or of this ORB's own.
    Raised(ExceptionKind, Completion),
}

/// What is done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It is sent to where the reply says.
    Follow,
    /// It is sent to the next address, as long as there is time.
    Elsewhere,
    /// The application is told.
    Raise,
}

impl Column {
    pub(super) const fn of(is_group: bool, is_named: bool) -> Self {
        match (is_group, is_named) {
            (_, true) => Self::Named,
            (true, false) => Self::Group,
            (false, false) => Self::Plain,
        }
    }
}

/// What the table says.
pub(super) const fn next(column: Column, row: Row) -> Next {
    let Row::Raised(kind, completed) = row else { return Next::Follow };
    // OBJ_ADAPTER was struck out by the task force (issue 3516) and is sent again by TAO. It does
    // no harm: the two other conditions hold for it, too.
    let is_of_the_way = matches!(
        kind,
        ExceptionKind::CommFailure
            | ExceptionKind::Transient
            | ExceptionKind::NoResponse
            | ExceptionKind::ObjAdapter
    );
    let may_be_repeated = match (column, completed) {
        (Column::Plain, _) | (_, Completion::Yes) | (Column::Group, Completion::Maybe) => false,
        (Column::Group, Completion::No) | (Column::Named, Completion::No | Completion::Maybe) => {
            true
        }
    };
    if is_of_the_way && may_be_repeated { Next::Elsewhere } else { Next::Raise }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column::Plain, Column::Group, Column::Named];
    const OF_THE_WAY: [ExceptionKind; 4] = [
        ExceptionKind::CommFailure,
        ExceptionKind::Transient,
        ExceptionKind::NoResponse,
        ExceptionKind::ObjAdapter,
    ];

    #[test]
    fn every_request_follows_a_forward() {
        for column in COLUMNS {
            assert_eq!(next(column, Row::Forward), Next::Follow);
        }
    }

    #[test]
    fn completed_no_goes_elsewhere_for_groups_and_completed_maybe_only_under_a_name() {
        for kind in OF_THE_WAY {
            let by_column =
                |completed| COLUMNS.map(|column| next(column, Row::Raised(kind, completed)));
            let (raise, elsewhere) = (Next::Raise, Next::Elsewhere);
            assert_eq!(by_column(Completion::No), [raise, elsewhere, elsewhere], "{kind:?}");
            assert_eq!(by_column(Completion::Maybe), [raise, raise, elsewhere], "{kind:?}");
            assert_eq!(by_column(Completion::Yes), [raise; 3], "{kind:?}");
        }
    }

    #[test]
    fn every_other_exception_is_the_applications() {
        let others = ExceptionKind::ALL.iter().filter(|kind| !OF_THE_WAY.contains(kind));
        for kind in others.chain([&ExceptionKind::Other]) {
            for column in COLUMNS {
                for completed in [Completion::No, Completion::Maybe, Completion::Yes] {
                    let row = Row::Raised(*kind, completed);
                    assert_eq!(next(column, row), Next::Raise, "{column:?} {row:?}");
                }
            }
        }
    }

    #[test]
    fn the_column_is_of_what_the_request_carries() {
        assert_eq!(Column::of(false, false), Column::Plain);
        assert_eq!(Column::of(true, false), Column::Group);
        assert_eq!(Column::of(true, true), Column::Named);
        assert_eq!(Column::of(false, true), Column::Named);
    }
}
