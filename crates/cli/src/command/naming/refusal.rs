//! What a naming service raises, as failures that say what to do.
//!
//! Invariant: every exception of CosNaming has a text of its own, and its fields in the JSON.

use quorba_corba::Object;
use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_idl::cos_naming::Name;
use quorba_idl::cos_naming::naming_context::{
    BindContextError, BindError, BindNewContextError, DestroyError, NotFoundReason,
    RebindContextError, RebindError, ResolveError, UnbindError,
};
use serde_json::json;

use super::names;
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// An exception of any operation of a naming context.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    NotFound(NotFoundReason, Name),
    CannotProceed(Object, Name),
    InvalidName,
    AlreadyBound,
    NotEmpty,
    System(SystemException),
}

macro_rules! refusal_of {
    ($($error:ident: $($more:ident)*;)*) => {
        $(impl From<$error> for Refusal {
            fn from(error: $error) -> Self {
                match error {
                    $error::NotFound(it) => Self::NotFound(it.why, it.rest_of_name),
                    $error::CannotProceed(it) => Self::CannotProceed(it.cxt, it.rest_of_name),
                    $error::InvalidName(_) => Self::InvalidName,
                    $($error::$more(_) => Self::$more,)*
                    $error::System(exception) => Self::System(exception),
                }
            }
        })*
    };
}

refusal_of! {
    BindError: AlreadyBound;
    BindContextError: AlreadyBound;
    BindNewContextError: AlreadyBound;
    RebindError: ;
    RebindContextError: ;
    ResolveError: ;
    UnbindError: ;
}

impl From<DestroyError> for Refusal {
    fn from(error: DestroyError) -> Self {
        match error {
            DestroyError::NotEmpty(_) => Self::NotEmpty,
            DestroyError::System(exception) => Self::System(exception),
        }
    }
}

impl From<SystemException> for Refusal {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl Refusal {
    /// As a failure of a command about `name` at the naming service that is called `place`.
    pub(super) fn failure(self, name: &Name, place: &str) -> Failure {
        let whole = names::text(name);
        let failed = |what: String, next: &str, exception: &str| {
            let failure = Failure::new(codes::NAMING, Exit::Failed, what, next);
            failure.data(json!({ "exception": exception, "name": whole }))
        };
        match self {
            Self::NotFound(why, rest) => not_found(name, why, &rest, place),
            Self::CannotProceed(_, rest) => failed(
                format!("{whole}: the naming service at {place} cannot go on with it"),
                "the rest of the name is in another naming service, through too many of them: look \
                 for contexts that lead back to each other",
                "CannotProceed",
            )
            .data(json!({ "exception": "CannotProceed", "name": whole,
                          "rest_of_name": names::text(&rest) })),
            Self::InvalidName => failed(
                format!("{whole:?}: the naming service at {place} takes it for no name"),
                "a name has components, as in a/b.kind; some services want no empty ones",
                "InvalidName",
            ),
            Self::AlreadyBound => failed(
                format!("{whole} is bound already at {place}"),
                "quorba naming rebind puts another object in its place; quorba naming unbind takes \
                 it away",
                "AlreadyBound",
            ),
            Self::NotEmpty => failed(
                format!("{whole} is a context with bindings in it"),
                "unbind them first: quorba naming ls shows them",
                "NotEmpty",
            ),
            Self::System(exception) => system(&whole, exception, place),
        }
    }
}

fn not_found(name: &Name, why: NotFoundReason, rest: &Name, place: &str) -> Failure {
    // What was found is what is left of the rest; some services give the whole name as the rest.
    let found = name.len().saturating_sub(rest.len().max(1));
    let (before, behind) = name.split_at(found);
    let part = names::text(&behind.iter().take(1).cloned().collect());
    let whole = names::text(name);
    let within = match before {
        [] => format!("the root context at {place}"),
        _ => format!("{} at {place}", names::text(&before.to_vec())),
    };
    let (word, what, next) = match why {
        NotFoundReason::MissingNode => (
            "missing_node",
            format!("{whole}: nothing is bound to {part} in {within}"),
            "quorba naming ls and quorba naming tree show what is bound",
        ),
        NotFoundReason::NotContext => (
            "not_context",
            format!("{whole}: {part} in {within} is an object, and no context"),
            "what stands before a / is a context: quorba naming ls shows which names are",
        ),
        NotFoundReason::NotObject => (
            "not_object",
            format!("{whole}: {part} in {within} is a context, and no object"),
            "unbind the context first, or take another name",
        ),
    };
    Failure::new(codes::NAMING, Exit::Failed, what, next).data(json!({
        "exception": "NotFound",
        "why": word,
        "name": whole,
        "rest_of_name": names::text(rest),
    }))
}

fn system(name: &str, exception: SystemException, place: &str) -> Failure {
    let about = if name.is_empty() { String::new() } else { format!("{name}: ") };
    let what = format!("{about}the naming service at {place} does not do it: {exception}");
    let (exit, next) = match exception.kind {
        ExceptionKind::Timeout => {
            (Exit::TimedOut, "see with quorba ping whether it answers; --timeout gives more time")
        }
        ExceptionKind::Transient | ExceptionKind::CommFailure | ExceptionKind::NoResponse => {
            (Exit::Failed, "see with quorba status and quorba ping whether it answers; try again")
        }
        ExceptionKind::ObjectNotExist => {
            (Exit::Failed, "the context or iterator is gone, or the key of --at names no context")
        }
        ExceptionKind::BadOperation | ExceptionKind::InvObjref => {
            (Exit::Failed, "what is bound there is no naming context")
        }
        ExceptionKind::ImpLimit | ExceptionKind::NoResources => {
            (Exit::Failed, "the service has a limit that this goes beyond: docs/how-to/naming.md")
        }
        _ => (Exit::Failed, "the exception says whose fault it is; quorba explain has minor codes"),
    };
    Failure::new(codes::NAMING, exit, what, next)
        .data(json!({ "exception": exception.kind.name(), "minor": exception.minor }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        quorba_naming::to_name(text).expect("a name")
    }

    #[test]
    fn what_was_not_found_is_named_with_the_context_that_it_was_looked_for_in() {
        let told = |why, rest: &str| {
            let failure = Refusal::NotFound(why, name(rest)).failure(&name("a/b.k/c"), "h:2809");
            failure.what
        };
        let missing = told(NotFoundReason::MissingNode, "b.k/c");
        assert_eq!(missing, "a/b.k/c: nothing is bound to b.k in a at h:2809");
        let object = told(NotFoundReason::NotContext, "a/b.k/c");
        let expected = "a/b.k/c: a in the root context at h:2809 is an object, and no context";
        assert_eq!(object, expected);
        let context = told(NotFoundReason::NotObject, "c");
        assert_eq!(context, "a/b.k/c: c in a/b.k at h:2809 is a context, and no object");
    }

    #[test]
    fn fields_of_exceptions_are_data() {
        let refusal = Refusal::NotFound(NotFoundReason::MissingNode, name("c"));
        let error = refusal.failure(&name("a/c"), "h:1").to_json();
        assert_eq!(error["error"]["exception"], "NotFound");
        assert_eq!(error["error"]["why"], "missing_node");
        assert_eq!(error["error"]["rest_of_name"], "c");
        let late = quorba_corba::raise_system(ExceptionKind::Timeout);
        assert_eq!(Refusal::System(late).failure(&name("a"), "h:1").exit, Exit::TimedOut);
    }
}
