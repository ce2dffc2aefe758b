//! Calls that servers of real ORBs do not answer as usual: what all replicas do alike with a call
//! is no crash, and one such call costs its caller an exception and nobody else anything.
//!
//! What it is not: a test of each reaction in each style. Scripted servers are for that
//! (`crates/cli/tests/odd`); here it is seen what real ORBs do.
//!
//! Invariants: every case makes ordinary calls at all gateways before and behind the odd ones, and
//! what was acknowledged is in the end looked for in every server's own books, once.

pub(super) mod client;
mod connect;
mod deeds;
mod relay;
mod story;

use super::{Context, Orb, STATELESS, Verdict};
use story::Story;

/// What the odd thing is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// A client of a newer IDL: octets behind the arguments.
    NewerIdl,
    /// A context that is not what its id says, and arguments that end too soon.
    Malformed,
    /// A call that takes longer than `server_reply_ms`, at all servers.
    LongCall,
    /// A call at which each server's process ends.
    CrashAtCall,
    /// A client that offers its connection for calls back to it.
    Bidirectional,
    /// Servers that end connections which were idle for a moment, all at once.
    IdleEnds,
    /// Servers that somebody else runs: a newer IDL, then each way in which they are restarted.
    Connect,
    /// The same, behind a port that stays open when the server is restarted.
    ConnectActivated,
    /// The same two, under the load of both ORBs, with its accounting.
    ConnectKills { activated: bool },
}

impl Deed {
    const fn name(self) -> &'static str {
        match self {
            Self::NewerIdl => "newer-idl",
            Self::Malformed => "malformed",
            Self::LongCall => "long-call",
            Self::CrashAtCall => "crash-at-call",
            Self::Bidirectional => "bidirectional",
            Self::IdleEnds => "idle-ends",
            Self::Connect => "connect",
            Self::ConnectActivated => "connect-activated",
            Self::ConnectKills { activated: false } => "connect-kills",
            Self::ConnectKills { activated: true } => "connect-activated-kills",
        }
    }
}

/// What a case is made of.
#[derive(Clone, Copy)]
pub(super) struct Setting {
    deed: Deed,
    pub(super) server: Orb,
    style: &'static str,
    is_durable: bool,
    /// One member executes first, and the others when it is through.
    is_staggered: bool,
}

impl Setting {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let of = |deed, server, style, is_durable| Self {
            deed,
            server,
            style,
            is_durable,
            is_staggered: false,
        };
        let staggered =
            |deed, server, style| Self { is_staggered: true, ..of(deed, server, style, false) };
        let each = |deed| {
            let styles = ["active", "warm-passive"];
            let of_orb = move |orb| styles.map(move |style| of(deed, orb, style, false));
            Orb::BOTH.into_iter().flat_map(of_orb)
        };
        let others = [
            of(Deed::NewerIdl, Orb::Omniorb, "active-with-voting", false),
            of(Deed::NewerIdl, Orb::Omniorb, "semi-active", false),
            of(Deed::NewerIdl, Orb::Omniorb, "cold-passive", false),
            of(Deed::NewerIdl, Orb::Omniorb, STATELESS, false),
            of(Deed::NewerIdl, Orb::Omniorb, "active", true),
            of(Deed::NewerIdl, Orb::Omniorb, "warm-passive", true),
            staggered(Deed::LongCall, Orb::Omniorb, "active"),
            staggered(Deed::NewerIdl, Orb::Omniorb, "active"),
            of(Deed::Malformed, Orb::Omniorb, "active", false),
            of(Deed::Malformed, Orb::Jacorb, "active", false),
            staggered(Deed::CrashAtCall, Orb::Omniorb, "active"),
            of(Deed::CrashAtCall, Orb::Omniorb, "warm-passive", false),
            of(Deed::CrashAtCall, Orb::Jacorb, "active", true),
            of(Deed::Bidirectional, Orb::Omniorb, "active", false),
            of(Deed::IdleEnds, Orb::Omniorb, "active", false),
            of(Deed::IdleEnds, Orb::Omniorb, "warm-passive", false),
            of(Deed::Connect, Orb::Omniorb, "active", false),
            of(Deed::Connect, Orb::Omniorb, "warm-passive", false),
            of(Deed::Connect, Orb::Jacorb, "active", false),
            of(Deed::ConnectActivated, Orb::Omniorb, "active", false),
            of(Deed::ConnectKills { activated: false }, Orb::Omniorb, "active", false),
            of(Deed::ConnectKills { activated: true }, Orb::Omniorb, "active", false),
            of(Deed::ConnectKills { activated: false }, Orb::Omniorb, "warm-passive", false),
            of(Deed::ConnectKills { activated: true }, Orb::Omniorb, "warm-passive", false),
        ];
        each(Deed::NewerIdl).chain(each(Deed::LongCall)).chain(others)
    }

    pub(super) fn name(self) -> String {
        let Self { deed, server, style, is_durable, is_staggered } = self;
        let durable = if is_durable { "durable-" } else { "" };
        let staggered = if is_staggered { "staggered-" } else { "" };
        format!("{}-to-{}-{durable}{staggered}{style}", deed.name(), server.name())
    }
}

pub(super) fn run(context: &Context, setting: Setting) -> Verdict {
    let told = match setting.deed {
        Deed::Connect | Deed::ConnectActivated => connect::run(context, setting),
        Deed::ConnectKills { .. } => connect::kills(context, setting),
        _ => Story::start(context, setting).and_then(|story| deeds::run(story, setting)),
    };
    told.map_or_else(Verdict::Failed, Verdict::Passed)
}
