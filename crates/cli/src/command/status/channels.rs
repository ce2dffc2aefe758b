//! What `quorba status events` says of the event service's channels.
//!
//! What it is not: all that there is to say; `quorba events` asks the service itself.

use quorba_admin::status::{ChannelStatus, GroupStatus};

use crate::command::events::HEADINGS;
use crate::text::{grouped, size, table};

/// How many channels are shown; those in trouble stand in the reasons and notes in any case.
const SHOWN_MAX: usize = 20;

/// The channels of a service, as the node of the member that leads says; nothing if there are none.
pub(super) fn text(here: &GroupStatus) -> String {
    if here.channels.is_empty() {
        return String::new();
    }
    let headings = [&HEADINGS[..], &["MOST OF IT FOR"]].concat();
    let shown = here.channels.iter().take(SHOWN_MAX);
    let mut text = table(&headings, shown.map(row).collect());
    if let Some(more) = here.channels.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        text.push_str(&format!("and {more} more channels: quorba events ls\n"));
    }
    for channel in here.channels.iter().take(SHOWN_MAX) {
        let last = channel.ended.last();
        text.extend(last.map(|last| format!("{}: the last that ended: {last}\n", channel.name)));
    }
    text
}

fn row(channel: &ChannelStatus) -> Vec<String> {
    let waiting = match channel.waiting {
        0 => "0".to_owned(),
        waiting => format!("{} ({})", grouped(waiting), size(channel.waiting_bytes)),
    };
    vec![
        channel.name.clone(),
        if channel.reliable { "yes" } else { "no" }.to_owned(),
        grouped(channel.consumers),
        grouped(channel.suppliers),
        grouped(channel.pushed),
        grouped(channel.refused),
        grouped(channel.delivered),
        grouped(channel.dropped),
        waiting,
        channel.slowest.as_ref().map_or("-", |one| one.at.as_str()).to_owned(),
    ]
}
