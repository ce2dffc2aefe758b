//! The criteria of `create_object` and `create_member` (FT-CORBA §23.3.11).
//!
//! What it is not: a factory's judgement. Criteria that are not ours are passed on to factories of
//! the application; our own factories know none but these.

use alloc::string::String;
use alloc::vec::Vec;

use quorba_corba::giop::ExceptionKind;
use quorba_corba::raise_system;
use quorba_idl::{ft, portable_group as pg};

use crate::fault::Fault;
use crate::property::{id_of, name, of_tao};

/// Properties of the object group alone.
const PROPERTIES: &str = "org.omg.ft.FTProperties";
/// Where the object is to be; the manager says it to a factory that it calls.
const LOCATION: &str = "org.omg.ft.ObjectLocation";
/// More criteria than a caller may have.
const CRITERIA_MAX: usize = 64;

/// What criteria say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) properties: ft::Properties,
    pub(crate) location: Option<String>,
    /// For factories of the application.
    pub(crate) rest: ft::Criteria,
}

pub(crate) fn read(criteria: &ft::Criteria) -> Result<Wanted, Fault> {
    if criteria.len() > CRITERIA_MAX {
        return Err(raise_system(ExceptionKind::ImpLimit).into());
    }
    let mut wanted = Wanted::default();
    let mut invalid = Vec::new();
    for (index, criterion) in criteria.iter().enumerate() {
        let earlier = criteria.iter().take(index);
        let is_repeated = earlier.clone().any(|before| before.nam == criterion.nam);
        let is_sound = !is_repeated
            && match id_of(&criterion.nam) {
                Some(PROPERTIES) => properties(criterion).map(|it| wanted.properties = it),
                Some(LOCATION) => location(criterion).map(|it| wanted.location = Some(it)),
                _ if criterion.nam.is_empty() => None,
                _ => {
                    wanted.rest.push(criterion.clone());
                    Some(())
                }
            }
            .is_some();
        if !is_sound {
            invalid.push(criterion.clone());
        }
    }
    if invalid.is_empty() { Ok(wanted) } else { Err(Fault::InvalidCriteria(invalid)) }
}

fn properties(criterion: &ft::Property) -> Option<ft::Properties> {
    let tao = || criterion.val.get::<pg::Properties>();
    let ours = criterion.val.get::<ft::Properties>();
    ours.or_else(|| Some(tao()?.into_iter().map(of_tao).collect()))
}

fn location(criterion: &ft::Property) -> Option<String> {
    let location: ft::Location = criterion.val.get()?;
    id_of(&location).map(String::from)
}

/// What a factory at a location is told: what the caller, and who registered it, say, and where.
pub(crate) fn for_factory(
    wanted: &ft::Criteria,
    of_factory: &ft::Criteria,
    location: &str,
) -> ft::Criteria {
    let mut criteria = wanted.clone();
    let is_new = |one: &&ft::Property| !wanted.iter().any(|other| other.nam == one.nam);
    criteria.extend(of_factory.iter().filter(is_new).cloned());
    let at = quorba_corba::Any::new(&name(location)).unwrap_or_default();
    criteria.push(ft::Property { nam: name(LOCATION), val: at });
    criteria
}
