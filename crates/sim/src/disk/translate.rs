//! What the engine writes down, as the log has it, and back.

use quorba_engine::replica::{LogRecord, ViewId};
use quorba_journal::{ComponentId, Position, Record};

pub(super) fn position(view: ViewId, prefix: u64) -> Position {
    let ViewId { seq, representative } = view;
    Position { component: ComponentId { seq, representative }, prefix }
}

pub(super) fn of_engine(record: LogRecord) -> Record {
    match record {
        LogRecord::Component { view, payload } => {
            Record::Component { component: position(view, 0).component, payload }
        }
        LogRecord::Message { view, prefix, origin, incarnation, ticket, payload } => {
            let position = position(view, prefix);
            Record::Message { origin, incarnation, ticket, position, payload }
        }
    }
}

pub(super) fn to_engine(record: Record) -> LogRecord {
    let view = |ComponentId { seq, representative }: ComponentId| ViewId { seq, representative };
    match record {
        Record::Component { component, payload } => {
            LogRecord::Component { view: view(component), payload }
        }
        Record::Message { origin, incarnation, ticket, position, payload } => {
            let Position { component, prefix } = position;
            let view = view(component);
            LogRecord::Message { view, prefix, origin, incarnation, ticket, payload }
        }
    }
}
