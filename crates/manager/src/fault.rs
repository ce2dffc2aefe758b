//! Why an operation is refused, before it is said in the form that its caller knows.
//!
//! Invariant: what an operation's IDL does not name becomes UNKNOWN there, and nowhere else.

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::raise_system;
use quorba_idl::{ft, portable_group as pg};

/// See the module's text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    ObjectGroupNotFound,
    MemberNotFound,
    MemberAlreadyPresent,
    ObjectNotFound,
    ObjectNotCreated,
    ObjectNotAdded,
    PrimaryNotSet,
    BadReplicationStyle,
    InterfaceNotFound,
    TypeConflict,
    InvalidProperty(ft::Property),
    UnsupportedProperty(ft::Property),
    NoFactory(ft::Location, ft::TypeId),
    InvalidCriteria(ft::Criteria),
    CannotMeetCriteria(ft::Criteria),
    System(SystemException),
}

impl From<SystemException> for Fault {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl Fault {
    /// Something was refused that is passing.
    pub(crate) const fn passing() -> Self {
        Self::System(raise_system(ExceptionKind::Transient))
    }

    /// What does not fit an operation's IDL.
    pub(crate) const fn unknown(&self) -> SystemException {
        match self {
            Self::System(exception) => *exception,
            _ => raise_system(ExceptionKind::Unknown),
        }
    }
}

macro_rules! exception {
    ($module:ident, ObjectGroupNotFound, $fault:ident) => {
        matches!($fault, Fault::ObjectGroupNotFound).then(|| $module::ObjectGroupNotFound {})
    };
    ($module:ident, MemberNotFound, $fault:ident) => {
        matches!($fault, Fault::MemberNotFound).then(|| $module::MemberNotFound {})
    };
    ($module:ident, MemberAlreadyPresent, $fault:ident) => {
        matches!($fault, Fault::MemberAlreadyPresent).then(|| $module::MemberAlreadyPresent {})
    };
    ($module:ident, ObjectNotFound, $fault:ident) => {
        matches!($fault, Fault::ObjectNotFound).then(|| $module::ObjectNotFound {})
    };
    ($module:ident, ObjectNotCreated, $fault:ident) => {
        matches!($fault, Fault::ObjectNotCreated).then(|| $module::ObjectNotCreated {})
    };
    ($module:ident, ObjectNotAdded, $fault:ident) => {
        matches!($fault, Fault::ObjectNotAdded).then(|| $module::ObjectNotAdded {})
    };
    ($module:ident, PrimaryNotSet, $fault:ident) => {
        matches!($fault, Fault::PrimaryNotSet).then(|| ft::PrimaryNotSet {})
    };
    ($module:ident, BadReplicationStyle, $fault:ident) => {
        matches!($fault, Fault::BadReplicationStyle).then(|| ft::BadReplicationStyle {})
    };
    ($module:ident, InterfaceNotFound, $fault:ident) => {
        matches!($fault, Fault::InterfaceNotFound).then(|| $module::InterfaceNotFound {})
    };
    ($module:ident, TypeConflict, $fault:ident) => {
        matches!($fault, Fault::TypeConflict).then(|| $module::TypeConflict {})
    };
    ($module:ident, InvalidProperty, $fault:ident) => {
        match &$fault {
            Fault::InvalidProperty(ft::Property { nam, val }) => {
                Some($module::InvalidProperty { nam: nam.clone(), val: val.clone() })
            }
            _ => None,
        }
    };
    ($module:ident, UnsupportedProperty, $fault:ident) => {
        match &$fault {
            Fault::UnsupportedProperty(ft::Property { nam, val }) => {
                Some($module::UnsupportedProperty { nam: nam.clone(), val: val.clone() })
            }
            _ => None,
        }
    };
    ($module:ident, NoFactory, $fault:ident) => {
        match &$fault {
            Fault::NoFactory(location, type_id) => Some($module::NoFactory {
                the_location: location.clone(),
                type_id: type_id.clone(),
            }),
            _ => None,
        }
    };
    ($module:ident, InvalidCriteria, $fault:ident) => {
        match &$fault {
            Fault::InvalidCriteria(criteria) => {
                Some($module::InvalidCriteria { invalid_criteria: criteria.clone() })
            }
            _ => None,
        }
    };
    ($module:ident, CannotMeetCriteria, $fault:ident) => {
        match &$fault {
            Fault::CannotMeetCriteria(criteria) => {
                Some($module::CannotMeetCriteria { unmet_criteria: criteria.clone() })
            }
            _ => None,
        }
    };
}

macro_rules! said_as {
    ($($module:ident :: $interface:ident :: $error:ident { $($name:ident),* })*) => { $(
        impl From<Fault> for $module::$interface::$error {
            fn from(fault: Fault) -> Self {
                $(
                    if let Some(exception) = exception!($module, $name, fault) {
                        return exception.into();
                    }
                )*
                fault.unknown().into()
            }
        }
    )* };
}

macro_rules! said_in_both {
    ($($interface:ident :: $error:ident { $($name:ident),* })*) => { $(
        said_as! {
            ft::$interface::$error { $($name),* }
            pg::$interface::$error { $($name),* }
        }
    )* };
}

/// What `create_by_factory` of the domain tells of an application's factory.
impl From<quorba_idl::quorba::domain::CreateByFactoryError> for Fault {
    fn from(error: quorba_idl::quorba::domain::CreateByFactoryError) -> Self {
        use quorba_idl::quorba::domain::CreateByFactoryError as Error;
        match error {
            Error::NoFactory(it) => Self::NoFactory(it.the_location, it.type_id),
            Error::ObjectNotCreated(_) => Self::ObjectNotCreated,
            Error::InvalidCriteria(it) => Self::InvalidCriteria(it.invalid_criteria),
            Error::InvalidProperty(it) => {
                Self::InvalidProperty(ft::Property { nam: it.nam, val: it.val })
            }
            Error::CannotMeetCriteria(it) => Self::CannotMeetCriteria(it.unmet_criteria),
            // A factory that cannot be reached creates nothing.
            Error::System(_) => Self::ObjectNotCreated,
        }
    }
}

said_in_both! {
    property_manager::SetDefaultPropertiesError { InvalidProperty, UnsupportedProperty }
    property_manager::RemoveDefaultPropertiesError { InvalidProperty, UnsupportedProperty }
    property_manager::SetTypePropertiesError { InvalidProperty, UnsupportedProperty }
    property_manager::RemoveTypePropertiesError { InvalidProperty, UnsupportedProperty }
    property_manager::SetPropertiesDynamicallyError {
        ObjectGroupNotFound, InvalidProperty, UnsupportedProperty
    }
    property_manager::GetPropertiesError { ObjectGroupNotFound }
    object_group_manager::CreateMemberError {
        ObjectGroupNotFound, MemberAlreadyPresent, NoFactory, ObjectNotCreated, InvalidCriteria,
        CannotMeetCriteria
    }
    object_group_manager::AddMemberError {
        ObjectGroupNotFound, MemberAlreadyPresent, ObjectNotAdded
    }
    object_group_manager::RemoveMemberError { ObjectGroupNotFound, MemberNotFound }
    object_group_manager::LocationsOfMembersError { ObjectGroupNotFound }
    object_group_manager::GetObjectGroupIdError { ObjectGroupNotFound }
    object_group_manager::GetObjectGroupRefError { ObjectGroupNotFound }
    object_group_manager::GetMemberRefError { ObjectGroupNotFound, MemberNotFound }
    generic_factory::CreateObjectError {
        NoFactory, ObjectNotCreated, InvalidCriteria, InvalidProperty, CannotMeetCriteria
    }
    generic_factory::DeleteObjectError { ObjectNotFound }
}

said_as! {
    ft::object_group_manager::SetPrimaryMemberError {
        ObjectGroupNotFound, MemberNotFound, PrimaryNotSet, BadReplicationStyle
    }
    ft::replication_manager::GetFaultNotifierError { InterfaceNotFound }
    pg::object_group_manager::GetObjectGroupRefFromIdError { ObjectGroupNotFound }
    pg::factory_registry::RegisterFactoryError { MemberAlreadyPresent, TypeConflict }
    pg::factory_registry::UnregisterFactoryError { MemberNotFound }
}

impl From<Fault> for quorba_idl::tao_ft::replication_manager::GetFaultNotifierError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::InterfaceNotFound => pg::InterfaceNotFound {}.into(),
            other => other.unknown().into(),
        }
    }
}

impl From<Fault> for quorba_idl::tao_ft::ft_object_group_manager::SetPrimaryMemberError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::ObjectGroupNotFound => pg::ObjectGroupNotFound {}.into(),
            Fault::MemberNotFound => pg::MemberNotFound {}.into(),
            Fault::PrimaryNotSet => ft::PrimaryNotSet {}.into(),
            Fault::BadReplicationStyle => ft::BadReplicationStyle {}.into(),
            other => other.unknown().into(),
        }
    }
}
