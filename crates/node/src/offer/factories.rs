//! Calls to factories that applications run (FT-CORBA §23.3.11), and what these may leave behind.
//!
//! A factory is told by FT_REQUEST which call it is: the same one, whichever node makes it. One
//! that heeds it makes one object, however often it is called; any other may have made one that
//! nobody knows of, if a node or its answer was lost: that is told.
//!
//! What it is not: a decision whether to call. Invariants: a call is sent once by this node;
//! factories of both flavours (`FT`, and TAO's `PortableGroup`) are understood.

use super::DomainObject;
use crate::admin::Question;
use crate::offer::Asked;
use quorba_corba::{Any, Object, call};
use quorba_giop::corbaloc::HostPort;
use quorba_giop::ior::Endpoint;
use quorba_giop::{Completion, Endian, FtRequest, SystemException};
use quorba_idl::quorba::domain as raised;
use quorba_idl::{ft, portable_group as pg};
use quorba_orb::{Client, ClientOptions, Reference, time_t};
use std::time::Duration;

/// How long a factory may take.
const FACTORY_WITHIN: Duration = Duration::from_secs(20);
/// The same, as CORBA counts it.
const FACTORY_WITHIN_TICKS: u64 = FACTORY_WITHIN.as_secs() * 10_000_000;
/// So many addresses of a factory are told.
const PLACES_MAX: usize = 4;

quorba_corba::raises! {
    /// What `create_object` of a factory raises, in either flavour.
    pub enum CreateError {
        NoFactory(ft::NoFactory),
        ObjectNotCreated(ft::ObjectNotCreated),
        InvalidCriteria(ft::InvalidCriteria),
        InvalidProperty(ft::InvalidProperty),
        CannotMeetCriteria(ft::CannotMeetCriteria),
        TaoNoFactory(pg::NoFactory),
        TaoObjectNotCreated(pg::ObjectNotCreated),
        TaoInvalidCriteria(pg::InvalidCriteria),
        TaoInvalidProperty(pg::InvalidProperty),
        TaoCannotMeetCriteria(pg::CannotMeetCriteria),
    }
}

quorba_corba::raises! {
    /// What `delete_object` of a factory raises, in either flavour.
    pub enum DeleteError {
        ObjectNotFound(ft::ObjectNotFound),
        TaoObjectNotFound(pg::ObjectNotFound),
    }
}

impl From<CreateError> for raised::CreateByFactoryError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::NoFactory(it) => it.into(),
            CreateError::ObjectNotCreated(it) => it.into(),
            CreateError::InvalidCriteria(it) => it.into(),
            CreateError::InvalidProperty(it) => it.into(),
            CreateError::CannotMeetCriteria(it) => it.into(),
            CreateError::TaoNoFactory(it) => {
                ft::NoFactory { the_location: it.the_location, type_id: it.type_id }.into()
            }
            CreateError::TaoObjectNotCreated(_) => ft::ObjectNotCreated {}.into(),
            CreateError::TaoInvalidCriteria(it) => {
                ft::InvalidCriteria { invalid_criteria: it.invalid_criteria }.into()
            }
            CreateError::TaoInvalidProperty(it) => {
                ft::InvalidProperty { nam: it.nam, val: it.val }.into()
            }
            CreateError::TaoCannotMeetCriteria(it) => {
                ft::CannotMeetCriteria { unmet_criteria: it.unmet_criteria }.into()
            }
            CreateError::System(it) => it.into(),
        }
    }
}

impl From<DeleteError> for raised::DeleteByFactoryError {
    fn from(error: DeleteError) -> Self {
        match error {
            DeleteError::ObjectNotFound(it) => it.into(),
            DeleteError::TaoObjectNotFound(_) => ft::ObjectNotFound {}.into(),
            DeleteError::System(it) => it.into(),
        }
    }
}

/// Whose call is being executed, and whether another node may have executed it before.
#[derive(Clone, Debug, Default)]
pub(super) struct Caller {
    pub(super) request: Option<FtRequest>,
    pub(super) is_in_doubt: bool,
}

impl Caller {
    /// What is the same in a repetition.
    pub(super) fn identity(&self) -> Vec<u8> {
        let Some(request) = &self.request else { return Vec::new() };
        [&request.client_id, &request.retention_id.to_be_bytes()[..]].concat()
    }

    /// By what name a factory is called.
    fn name(&self) -> Option<FtRequest> {
        let FtRequest { client_id, retention_id, .. } = self.request.as_ref()?;
        let client_id = [client_id, format!("/{retention_id}/factory").as_bytes()].concat();
        let expiration_time = time_t().saturating_add(FACTORY_WITHIN_TICKS);
        Some(FtRequest { client_id, retention_id: 1, expiration_time })
    }
}

/// Why an object may have been made that nobody knows of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doubt {
    /// Another node called the factory, and its answer was lost with that node.
    Repeated,
    /// The factory was called, and its answer did not come.
    Unanswered,
}

impl Doubt {
    const fn words(self) -> &'static str {
        match self {
            Self::Repeated => {
                "a node was lost while it waited for the factory, which was called \
                               again"
            }
            Self::Unanswered => "its answer did not come",
        }
    }
}

/// What an operator is told.
fn left_behind(factory: &Reference, type_id: &str, doubt: Doubt) -> String {
    let place = |at: &Endpoint| HostPort(&at.host, at.port).to_string();
    let places: Vec<String> = factory.addresses().iter().take(PLACES_MAX).map(place).collect();
    let (places, type_id) = (places.join(", "), type_id.escape_debug());
    format!(
        "the factory of an application at {places} may have made an object of type {type_id} that \
         nobody knows of: {}; delete it there if it is in the way",
        doubt.words()
    )
}

impl DomainObject {
    fn factory(&self, factory: &Object) -> Option<(Client, Reference)> {
        let reference = Reference::parse(&factory.0.stringify(Endian::Big)).ok()?;
        let options = ClientOptions {
            call_timeout: Some(FACTORY_WITHIN),
            passes_on: self.caller.name(),
            ..ClientOptions::default()
        };
        Some((Client::new(&reference, options), reference))
    }

    fn doubt(&self, factory: &Reference, type_id: &str, doubt: Doubt) {
        let told = Asked::LeftBehind(left_behind(factory, type_id, doubt));
        // A node that ends tells nobody.
        let _is_told = (self.ask)(Question::Service(told));
    }

    pub(super) fn create(
        &self,
        factory: &Object,
        type_id: &str,
        criteria: &ft::Criteria,
    ) -> Result<(Object, Any), raised::CreateByFactoryError> {
        let (mut client, reference) = self.factory(factory).ok_or(ft::ObjectNotCreated {})?;
        if self.caller.is_in_doubt {
            self.doubt(&reference, type_id, Doubt::Repeated);
        }
        let made: Result<_, CreateError> = call(
            &mut client,
            "create_object",
            &|to| {
                to.write(&type_id.to_owned());
                to.write(criteria);
            },
            |from| Ok((from.read()?, from.read()?)),
        );
        if let Err(CreateError::System(SystemException { completed, .. })) = made
            && completed != Completion::No
        {
            self.doubt(&reference, type_id, Doubt::Unanswered);
        }
        made.map_err(Into::into)
    }

    pub(super) fn delete(
        &self,
        factory: &Object,
        creation_id: &Any,
    ) -> Result<(), raised::DeleteByFactoryError> {
        let (mut client, _) = self.factory(factory).ok_or(ft::ObjectNotFound {})?;
        let deleted: Result<(), DeleteError> =
            call(&mut client, "delete_object", &|to| to.write(creation_id), |_| Ok(()));
        deleted.map_err(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_corba::{Call, Home, Interface, Objects};
    use quorba_orb::{Server, ServerOptions};
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::{Arc, Mutex};
    use std::thread;

    /// What was told, and an object that tells it.
    fn domain(is_in_doubt: bool) -> (Arc<Mutex<Vec<String>>>, DomainObject) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let ask = move |question| {
            if let Question::Service(Asked::LeftBehind(what)) = question {
                heard.lock().expect("no holder panics").push(what);
            }
            true
        };
        let request =
            FtRequest { client_id: b"plant/1/7".into(), retention_id: 3, expiration_time: 0 };
        let caller = Caller { request: Some(request), is_in_doubt };
        let (id, types) = ("d".to_owned(), Arc::default());
        (told, DomainObject { ask: Arc::new(ask), id, types, caller })
    }

    /// A factory that makes nothing, in the form of clients that are linked with TAO.
    struct OfTao;

    impl pg::GenericFactory for OfTao {
        fn create_object(
            &mut self,
            type_id: ft::TypeId,
            unmet_criteria: ft::Criteria,
        ) -> Result<(Object, Any), pg::generic_factory::CreateObjectError> {
            if unmet_criteria.is_empty() {
                let the_location = ft::Location::new();
                return Err(pg::NoFactory { the_location, type_id }.into());
            }
            Err(pg::CannotMeetCriteria { unmet_criteria }.into())
        }

        fn delete_object(&mut self, _: Any) -> Result<(), pg::generic_factory::DeleteObjectError> {
            Err(pg::ObjectNotFound {}.into())
        }
    }

    impl Objects for OfTao {
        fn interface(&self, _: &[u8]) -> Option<Interface> {
            Some(pg::GENERIC_FACTORY)
        }

        fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
            pg::dispatch_generic_factory(self, call)
        }
    }

    #[test]
    fn what_a_factory_of_tao_raises_is_said_in_the_standards_form() {
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
        let server = server.expect("a port").with_objects(OfTao).start().expect("threads");
        let address = server.address();
        let addresses = vec![(address.ip().to_string(), address.port())];
        let home = Home { addresses, prefix: Vec::new() };
        let factory = home.object(pg::GENERIC_FACTORY.id(), b"factory");

        let thing = "IDL:Thing:1.0".to_owned();
        let (told, domain) = domain(false);
        let refused = domain.create(&factory, &thing, &Vec::new());
        let none = ft::NoFactory { the_location: ft::Location::new(), type_id: thing.clone() };
        assert_eq!(refused, Err(none.into()));
        let val = Any::new(&7_u16).expect("a number");
        let criteria = vec![ft::Property { nam: ft::Name::new(), val }];
        let refused = domain.create(&factory, &thing, &criteria);
        let Err(raised::CreateByFactoryError::CannotMeetCriteria(found)) = refused else {
            panic!("it says {refused:?}")
        };
        let unmet: Vec<_> = found.unmet_criteria.iter().map(|one| one.val.get::<u16>()).collect();
        assert_eq!(unmet, [Some(7)]);
        assert_eq!(domain.delete(&factory, &Any::default()), Err(ft::ObjectNotFound {}.into()));
        assert!(told.lock().expect("no holder panics").is_empty(), "it answered");
    }

    /// Who is called keeps what it was sent, and answers nothing.
    #[test]
    fn an_object_that_nobody_knows_of_is_told_and_the_call_has_a_name_of_its_own() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let heard = thread::spawn(move || {
            let of_call = || {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut octets = vec![0; 4_096];
                let count = stream.read(&mut octets).expect("a request");
                octets.truncate(count);
                octets
            };
            [of_call(), of_call()]
        });
        let addresses = vec![(Ipv4Addr::LOCALHOST.to_string(), port)];
        let home = Home { addresses, prefix: Vec::new() };
        let factory = home.object(ft::GENERIC_FACTORY.id(), b"factory");
        for (is_in_doubt, count) in [(false, 1), (true, 2)] {
            let (told, domain) = domain(is_in_doubt);
            let made = domain.create(&factory, "IDL:Thing:1.0", &Vec::new());
            assert!(matches!(made, Err(raised::CreateByFactoryError::System(_))), "{made:?}");
            let told = told.lock().expect("no holder panics");
            assert_eq!(told.len(), count, "{told:?}");
            assert!(told.iter().all(|what| what.contains("IDL:Thing:1.0")), "{told:?}");
        }
        let name = b"plant/1/7/3/factory";
        for octets in heard.join().expect("it heard both") {
            assert!(octets.windows(name.len()).any(|some| some == name), "the same name in both");
        }
    }
}
