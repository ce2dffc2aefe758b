//! `durable`: what it needs of its group and of the domain.

use crate::codes::Code;
use crate::domain::{Backend, Engine, Group};
use crate::problem::Problem;
use crate::walk::Section;
use quorba_base::policy::{OnTotalLoss, QuorumRule, Style};

/// Refuses what would make the promise of `durable` one that does not hold.
pub(super) fn check(section: &Section<'_>, group: &Group, quorum: QuorumRule, engine: Engine) {
    if !group.durable {
        return;
    }
    let refuse = |message: &str, help: &str| {
        let span = section.value("durable").map_or(section.header.clone(), |value| value.span());
        section.problems.add(Problem::at(Code::DurableNeeds, span, message).help(help));
    };
    if group.state_object.is_none() && !group.by_application {
        refuse(
            "`durable` without a `state_object`",
            "a member that was away is given the state of another, and keeps it on its disk",
        );
    }
    if matches!(group.backend, Backend::Connect(_)) {
        refuse(
            "`durable` with `connect`",
            "after a restart the server is given all requests again, so it must be a new one that \
             the node starts: use `server`",
        );
    }
    if group.on_total_loss == OnTotalLoss::Fresh {
        refuse(
            "`durable` with `on_total_loss` = \"fresh\"",
            "a group that may begin anew keeps nothing",
        );
    }
    if group.style == Style::Stateless {
        refuse("`durable` with the style \"stateless\"", "there is nothing to keep");
    }
    if quorum == QuorumRule::DynamicLinear {
        refuse(
            "`durable` with `quorum` = \"dynamic-linear\" is not in this version",
            "use the quorum \"majority\"",
        );
    }
    if engine == Engine::Corosync {
        refuse(
            "`durable` with the engine \"corosync\" is not in this version",
            "use the engine \"totem\"",
        );
    }
}
