//! Factories that an application runs, called for the replication manager.
//!
//! What it is not: a judge of what they say. Invariant: a factory whose reference says that it is
//! TAO's is understood in TAO's form, whose exceptions have other ids; every other one in the
//! standard's.

use std::time::Duration;

use quorba_corba::{Any, Object};
use quorba_giop::Endian;
use quorba_idl::quorba::domain as raised;
use quorba_idl::{ft, portable_group};
use quorba_orb::{Client, ClientOptions, Reference};

/// How long a factory may take.
const FACTORY_WITHIN: Duration = Duration::from_secs(20);

fn client(factory: &Object) -> Option<Client> {
    let text = factory.0.stringify(Endian::Big);
    let reference = Reference::parse(&text).ok()?;
    let call_timeout = Some(FACTORY_WITHIN);
    Some(Client::new(&reference, ClientOptions { call_timeout, ..ClientOptions::default() }))
}

fn is_of_tao(factory: &Object) -> bool {
    factory.0.type_id == portable_group::GENERIC_FACTORY.id().as_bytes()
}

/// Has an object made.
pub(crate) fn create(
    factory: &Object,
    type_id: &ft::TypeId,
    criteria: &ft::Criteria,
) -> Result<(Object, Any), raised::CreateByFactoryError> {
    let mut client = client(factory).ok_or(ft::ObjectNotCreated {})?;
    if is_of_tao(factory) {
        use portable_group::generic_factory::CreateObjectError as Error;
        let mut stub = portable_group::GenericFactoryStub(&mut client);
        return stub.create_object(type_id, criteria).map_err(|error| match error {
            Error::NoFactory(it) => {
                ft::NoFactory { the_location: it.the_location, type_id: it.type_id }.into()
            }
            Error::ObjectNotCreated(_) => ft::ObjectNotCreated {}.into(),
            Error::InvalidCriteria(it) => {
                ft::InvalidCriteria { invalid_criteria: it.invalid_criteria }.into()
            }
            Error::InvalidProperty(it) => ft::InvalidProperty { nam: it.nam, val: it.val }.into(),
            Error::CannotMeetCriteria(it) => {
                ft::CannotMeetCriteria { unmet_criteria: it.unmet_criteria }.into()
            }
            Error::System(it) => it.into(),
        });
    }
    use ft::generic_factory::CreateObjectError as Error;
    let created = ft::GenericFactoryStub(&mut client).create_object(type_id, criteria);
    created.map_err(|error| match error {
        Error::NoFactory(it) => it.into(),
        Error::ObjectNotCreated(it) => it.into(),
        Error::InvalidCriteria(it) => it.into(),
        Error::InvalidProperty(it) => it.into(),
        Error::CannotMeetCriteria(it) => it.into(),
        Error::System(it) => it.into(),
    })
}

/// Has an object deleted.
pub(crate) fn delete(factory: &Object, id: &Any) -> Result<(), raised::DeleteByFactoryError> {
    let mut client = client(factory).ok_or(ft::ObjectNotFound {})?;
    if is_of_tao(factory) {
        use portable_group::generic_factory::DeleteObjectError as Error;
        let deleted = portable_group::GenericFactoryStub(&mut client).delete_object(id);
        return deleted.map_err(|error| match error {
            Error::ObjectNotFound(_) => ft::ObjectNotFound {}.into(),
            Error::System(it) => it.into(),
        });
    }
    use ft::generic_factory::DeleteObjectError as Error;
    let deleted = ft::GenericFactoryStub(&mut client).delete_object(id);
    deleted.map_err(|error| match error {
        Error::ObjectNotFound(it) => it.into(),
        Error::System(it) => it.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use quorba_corba::{Call, Home, Interface, Objects};
    use quorba_giop::SystemException;
    use quorba_orb::{Server, ServerOptions};

    use super::*;

    /// A factory that makes nothing, in the form of clients that are linked with TAO.
    struct OfTao;

    impl portable_group::GenericFactory for OfTao {
        fn create_object(
            &mut self,
            type_id: ft::TypeId,
            unmet_criteria: ft::Criteria,
        ) -> Result<(Object, Any), portable_group::generic_factory::CreateObjectError> {
            if unmet_criteria.is_empty() {
                let the_location = ft::Location::new();
                return Err(portable_group::NoFactory { the_location, type_id }.into());
            }
            Err(portable_group::CannotMeetCriteria { unmet_criteria }.into())
        }

        fn delete_object(
            &mut self,
            _: Any,
        ) -> Result<(), portable_group::generic_factory::DeleteObjectError> {
            Err(portable_group::ObjectNotFound {}.into())
        }
    }

    impl Objects for OfTao {
        fn interface(&self, _: &[u8]) -> Option<Interface> {
            Some(portable_group::GENERIC_FACTORY)
        }

        fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
            portable_group::dispatch_generic_factory(self, call)
        }
    }

    #[test]
    fn what_a_factory_of_tao_raises_is_said_in_the_standards_form() {
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
        let server = server.expect("a port").with_objects(OfTao).start().expect("threads");
        let address = server.address();
        let addresses = vec![(address.ip().to_string(), address.port())];
        let home = Home { addresses, prefix: Vec::new() };
        let factory = home.object(portable_group::GENERIC_FACTORY.id(), b"factory");

        let thing = "IDL:Thing:1.0".to_owned();
        let refused = create(&factory, &thing, &Vec::new());
        let none = ft::NoFactory { the_location: ft::Location::new(), type_id: thing.clone() };
        assert_eq!(refused, Err(none.into()));
        let val = Any::new(&7_u16).expect("a number");
        let refused = create(&factory, &thing, &vec![ft::Property { nam: ft::Name::new(), val }]);
        let Err(raised::CreateByFactoryError::CannotMeetCriteria(found)) = refused else {
            panic!("it says {refused:?}")
        };
        let unmet: Vec<_> = found.unmet_criteria.iter().map(|one| one.val.get::<u16>()).collect();
        assert_eq!(unmet, [Some(7)]);
        assert_eq!(delete(&factory, &Any::default()), Err(ft::ObjectNotFound {}.into()));
    }
}
