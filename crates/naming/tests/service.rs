//! The naming service, called through its stubs: every operation and every exception.

use quorba_corba::giop::{Completion, ExceptionKind, SystemException};
use quorba_corba::{Home, Local, Object};
use quorba_idl::cos_naming::naming_context::{
    AlreadyBound, BindContextError, BindError, BindNewContextError, CannotProceed, DestroyError,
    InvalidName, NotEmpty, NotFound, NotFoundReason, RebindContextError, RebindError, ResolveError,
    UnbindError,
};
use quorba_idl::cos_naming::naming_context_ext::{InvalidAddress, ResolveStrError, ToUrlError};
use quorba_idl::cos_naming::{
    Binding, BindingIteratorStub, BindingType, Name, NameComponent, NamingContextExtStub,
};
use quorba_idl::ft::CheckpointableStub;
use quorba_naming::{Clock, Limits, NamingService, ROOT_KEY, STATE_KEY};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn home() -> Home {
    let address = |host: &str| (host.to_owned(), 2809);
    Home { addresses: vec![address("n1"), address("n2")], prefix: b"QRB/names/".to_vec() }
}

fn service() -> NamingService {
    NamingService::new(home(), Limits::default())
}

/// `a/b.kind` as a name, without the parser under test.
fn name(text: &str) -> Name {
    let part = |part: &str| {
        let (id, kind) = part.split_once('.').unwrap_or((part, ""));
        NameComponent { id: id.to_owned(), kind: kind.to_owned() }
    };
    text.split('/').map(part).collect()
}

fn object(number: u16) -> Object {
    let home = Home { addresses: vec![("elsewhere".to_owned(), number)], prefix: Vec::new() };
    home.object("IDL:Thing:1.0", b"thing")
}

/// A context of another naming service: it has our key, at another place.
fn foreign() -> Object {
    let home = Home { addresses: vec![("elsewhere".to_owned(), 2809)], ..home() };
    home.object("IDL:omg.org/CosNaming/NamingContext:1.0", ROOT_KEY.as_bytes())
}

/// The key under which an object of the service is called by its server.
fn key(object: &Object) -> Vec<u8> {
    home().key_of(object).expect("one of ours")
}

fn at<R>(
    service: &mut NamingService,
    key: &[u8],
    with: impl FnOnce(&mut NamingContextExtStub<'_>) -> R,
) -> R {
    let mut local = Local::new(service, key);
    with(&mut NamingContextExtStub(&mut local))
}

fn root<R>(
    service: &mut NamingService,
    with: impl FnOnce(&mut NamingContextExtStub<'_>) -> R,
) -> R {
    at(service, ROOT_KEY.as_bytes(), with)
}

fn not_found(why: NotFoundReason, rest: &str) -> NotFound {
    NotFound { why, rest_of_name: name(rest) }
}

const NO: Completion = Completion::No;

fn system(kind: ExceptionKind) -> SystemException {
    SystemException { kind, minor: 0, completed: NO }
}

#[test]
fn what_is_bound_is_resolved_until_it_is_unbound() {
    let mut service = service();
    root(&mut service, |root| {
        root.bind(&name("a.x"), &object(1)).expect("bound");
        root.bind(&name("a.y"), &object(2)).expect("another kind is another name");
        assert_eq!(root.resolve(&name("a.x")), Ok(object(1)));
        assert_eq!(root.resolve(&name("a.y")), Ok(object(2)));
        let again = root.bind(&name("a.x"), &object(3));
        assert_eq!(again, Err(BindError::AlreadyBound(AlreadyBound {})));
        root.rebind(&name("a.x"), &object(3)).expect("bound again");
        assert_eq!(root.resolve(&name("a.x")), Ok(object(3)));
        root.unbind(&name("a.x")).expect("unbound");
        let missing = not_found(NotFoundReason::MissingNode, "a.x");
        assert_eq!(root.resolve(&name("a.x")), Err(ResolveError::NotFound(missing.clone())));
        assert_eq!(root.unbind(&name("a.x")), Err(UnbindError::NotFound(missing)));
    });
    assert_eq!(service.bindings(), 1);
}

#[test]
fn names_lead_through_contexts() {
    let mut service = service();
    root(&mut service, |root| {
        let a = root.bind_new_context(&name("a")).expect("a context");
        root.bind_new_context(&name("a/b")).expect("a context in it");
        root.bind(&name("a/b/c"), &object(1)).expect("bound");
        assert_eq!(root.resolve(&name("a/b/c")), Ok(object(1)));
        assert_eq!(root.resolve_str(&"a/b/c".to_owned()), Ok(object(1)));
        assert_eq!(root.resolve(&name("a")), Ok(a.clone()));
        let missing = not_found(NotFoundReason::MissingNode, "x/c");
        assert_eq!(root.resolve(&name("a/x/c")), Err(ResolveError::NotFound(missing)));
        let missing = not_found(NotFoundReason::MissingNode, "x");
        assert_eq!(root.resolve(&name("a/b/x")), Err(ResolveError::NotFound(missing)));
        let no_context = not_found(NotFoundReason::NotContext, "c/d");
        assert_eq!(root.resolve(&name("a/b/c/d")), Err(ResolveError::NotFound(no_context)));
        // The same context under two names, and in itself.
        root.bind_context(&name("again"), &a).expect("bound");
        root.bind_context(&name("again/self"), &a).expect("bound");
        assert!(root.resolve(&name("a/self/again/b/c")).is_err(), "bound in the root only");
        assert_eq!(root.resolve(&name("a/self/self/b/c")), Ok(object(1)));
    });
}

#[test]
fn contexts_are_called_by_their_references() {
    let mut service = service();
    let new = root(&mut service, |root| root.new_context().expect("a context"));
    at(&mut service, &key(&new), |new| {
        new.bind(&name("x"), &object(1)).expect("bound");
        assert_eq!(new.destroy(), Err(DestroyError::NotEmpty(NotEmpty {})));
    });
    root(&mut service, |root| {
        root.bind_context(&name("n"), &new).expect("bound");
        assert_eq!(root.resolve(&name("n/x")), Ok(object(1)));
        root.unbind(&name("n/x")).expect("unbound");
    });
    at(&mut service, &key(&new), |new| new.destroy().expect("it is empty"));
    at(&mut service, &key(&new), |new| {
        let gone = system(ExceptionKind::ObjectNotExist);
        assert_eq!(new.list(&1), Err(gone));
    });
    root(&mut service, |root| {
        assert_eq!(root.resolve(&name("n")), Ok(new.clone()), "still bound");
        let missing = not_found(NotFoundReason::MissingNode, "n/x");
        assert_eq!(root.resolve(&name("n/x")), Err(ResolveError::NotFound(missing)));
        root.unbind(&name("n")).expect("unbound");
        let refused = DestroyError::System(system(ExceptionKind::NoPermission));
        assert_eq!(root.destroy(), Err(refused), "the root stays");
        let another = root.new_context().expect("a context");
        assert_ne!(another, new, "no key is given out twice");
    });
}

#[test]
fn objects_and_contexts_do_not_replace_each_other() {
    let mut service = service();
    root(&mut service, |root| {
        let a = root.bind_new_context(&name("a")).expect("a context");
        root.bind(&name("o"), &object(1)).expect("bound");
        let rebound = root.rebind(&name("a"), &object(1));
        let why = not_found(NotFoundReason::NotObject, "a");
        assert_eq!(rebound, Err(RebindError::NotFound(why)));
        let why = not_found(NotFoundReason::NotContext, "o");
        let rebound = root.rebind_context(&name("o"), &a);
        assert_eq!(rebound, Err(RebindContextError::NotFound(why)));
        let b = root.new_context().expect("a context");
        root.rebind_context(&name("a"), &b).expect("another context");
        assert_eq!(root.resolve(&name("a")), Ok(b.clone()));
        root.rebind_context(&name("c"), &b).expect("a new name");
        let bound = root.bind_context(&name("a"), &b);
        assert_eq!(bound, Err(BindContextError::AlreadyBound(AlreadyBound {})));
        let bound = root.bind_new_context(&name("a"));
        assert_eq!(bound, Err(BindNewContextError::AlreadyBound(AlreadyBound {})));
        let nil = BindContextError::System(system(ExceptionKind::BadParam));
        assert_eq!(root.bind_context(&name("nil"), &Object::nil()), Err(nil));
        root.bind(&name("nil"), &Object::nil()).expect("an object may be nothing");
        assert_eq!(root.resolve(&name("nil")), Ok(Object::nil()));
    });
}

#[test]
fn a_name_that_goes_on_elsewhere_is_handed_back() {
    let mut service = service();
    root(&mut service, |root| {
        root.bind_context(&name("far"), &foreign()).expect("bound");
        assert_eq!(root.resolve(&name("far")), Ok(foreign()));
        let there = CannotProceed { cxt: foreign(), rest_of_name: name("x/y") };
        let there = || there.clone();
        let far = name("far/x/y");
        assert_eq!(root.resolve(&far), Err(ResolveError::CannotProceed(there())));
        assert_eq!(root.unbind(&far), Err(UnbindError::CannotProceed(there())));
        assert_eq!(root.bind(&far, &object(1)), Err(BindError::CannotProceed(there())));
        let created = root.bind_new_context(&far);
        assert_eq!(created, Err(BindNewContextError::CannotProceed(there())));
        let resolved = root.resolve_str(&"far/x/y".to_owned());
        assert_eq!(resolved, Err(ResolveStrError::CannotProceed(there())));
    });
}

#[test]
fn a_reference_to_ourselves_by_any_of_our_addresses_is_ours() {
    let mut service = service();
    let new = root(&mut service, |root| root.new_context().expect("a context"));
    // As a client knows it that was given one gateway only.
    let only = Home { addresses: vec![("N2".to_owned(), 2809)], ..home() };
    let known = only.object("", &key(&new));
    root(&mut service, |root| {
        root.bind_context(&name("n"), &known).expect("bound");
        root.bind(&name("n/x"), &object(1)).expect("gone through");
        assert_eq!(root.resolve(&name("n")), Ok(new.clone()), "with all addresses");
    });
}

#[test]
fn names_as_text() {
    let mut service = service();
    root(&mut service, |root| {
        assert_eq!(root.to_string(&name("a/b.c")).expect("a text"), "a/b.c");
        assert_eq!(root.to_name(&"a/b.c".to_owned()).expect("a name"), name("a/b.c"));
        assert!(root.to_string(&Vec::new()).is_err());
        assert!(root.to_name(&"a//b".to_owned()).is_err());
        let url = root.to_url(&":n1:2809".to_owned(), &"a/b c".to_owned());
        assert_eq!(url.expect("a URL"), "corbaname::n1:2809#a/b%20c");
        let url = root.to_url(&"what?".to_owned(), &"a".to_owned());
        assert_eq!(url, Err(ToUrlError::InvalidAddress(InvalidAddress {})));
        let resolved = root.resolve_str(&"a.".to_owned());
        assert_eq!(resolved, Err(ResolveStrError::InvalidName(InvalidName {})));
        let resolved = root.resolve(&Vec::new());
        assert_eq!(resolved, Err(ResolveError::InvalidName(InvalidName {})));
    });
}

fn names(list: &[Binding]) -> Vec<&str> {
    list.iter().map(|binding| binding.binding_name[0].id.as_str()).collect()
}

#[test]
fn what_is_bound_is_listed_in_one_order_in_parts() {
    let mut service = service();
    let iterator = root(&mut service, |root| {
        for number in (0..10).rev() {
            root.bind(&name(&format!("n{number}")), &object(number)).expect("bound");
        }
        root.bind_new_context(&name("c")).expect("a context");
        let (list, iterator) = root.list(&11).expect("a list");
        assert!(iterator.is_nil(), "that was all");
        assert_eq!(list.len(), 11);
        assert_eq!(list[0].binding_type, BindingType::Ncontext);
        assert_eq!(list[1].binding_type, BindingType::Nobject);
        let (list, iterator) = root.list(&4).expect("a list");
        assert_eq!(names(&list), ["c", "n0", "n1", "n2"]);
        iterator
    });
    root(&mut service, |root| {
        root.unbind(&name("n3")).expect("unbound meanwhile");
        root.bind(&name("n3a"), &object(1)).expect("bound meanwhile");
        root.bind(&name("a"), &object(1)).expect("bound where the iterator has been");
    });
    let mut local = Local::new(&mut service, &key(&iterator));
    let mut stub = BindingIteratorStub(&mut local);
    let (more, one) = stub.next_one().expect("one");
    assert_eq!((more, names(&[one])), (true, vec!["n3a"]));
    assert_eq!(stub.next_n(&0), Err(system(ExceptionKind::BadParam)));
    let (more, list) = stub.next_n(&3).expect("three");
    assert_eq!((more, names(&list)), (true, vec!["n4", "n5", "n6"]));
    let (more, list) = stub.next_n(&100).expect("the rest");
    assert_eq!((more, list.len()), (true, 3));
    let (more, list) = stub.next_n(&100).expect("nothing");
    assert_eq!((more, list.len()), (false, 0));
    assert!(!stub.next_one().expect("nothing").0);
    stub.destroy().expect("destroyed");
    assert_eq!(stub.next_one(), Err(system(ExceptionKind::ObjectNotExist)));
}

/// Ordered time that the test tells.
struct Told(Arc<AtomicU64>);

impl Clock for Told {
    fn now(&mut self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|now| *now > 0)
    }
}

#[test]
fn an_iterator_that_nobody_uses_ends_by_ordered_time() {
    let time = Arc::new(AtomicU64::new(1_000));
    let limits = Limits { iterator_idle: 100, ..Limits::default() };
    let mut service = NamingService::new(home(), limits).with_clock(Told(Arc::clone(&time)));
    let (one, other) = root(&mut service, |root| {
        for text in ["a", "b", "c"] {
            root.bind(&name(text), &object(1)).expect("bound");
        }
        let mut iterator = || root.list(&0).expect("a list").1;
        (iterator(), iterator())
    });
    let next = |service: &mut NamingService, iterator: &Object| {
        let mut local = Local::new(service, &key(iterator));
        BindingIteratorStub(&mut local).next_one().map(|(is_one, _)| is_one)
    };
    time.store(1_080, Ordering::Relaxed);
    assert_eq!(next(&mut service, &one), Ok(true), "it is used");
    // A replica that takes over knows when each was used.
    let mut taken = NamingService::new(home(), limits).with_clock(Told(Arc::clone(&time)));
    taken.take_over(&service.state()).expect("a state");
    time.store(1_150, Ordering::Relaxed);
    for service in [&mut service, &mut taken] {
        let gone = next(service, &other).expect_err("it has rested for 150");
        assert_eq!(gone.kind, ExceptionKind::ObjectNotExist);
        assert_eq!(next(service, &one), Ok(true), "it has rested for 70");
    }
    assert_eq!(service.state(), taken.state());
    time.store(0, Ordering::Relaxed);
    assert_eq!(next(&mut service, &one), Ok(true), "nobody says the time: nothing ends");
}

#[test]
fn iterators_and_lists_are_bounded() {
    let limits = Limits { iterators_max: 3, listed_max: 2, ..Limits::default() };
    let mut service = NamingService::new(home(), limits);
    let iterators = root(&mut service, |root| {
        for number in 0..5 {
            root.bind(&name(&number.to_string()), &object(1)).expect("bound");
        }
        let list = |root: &mut NamingContextExtStub<'_>| {
            let (list, iterator) = root.list(&u32::MAX).expect("a list");
            assert_eq!(list.len(), 2);
            iterator
        };
        (0..4).map(|_| list(root)).collect::<Vec<_>>()
    });
    for (index, iterator) in iterators.iter().enumerate() {
        let mut local = Local::new(&mut service, &key(iterator));
        let next = BindingIteratorStub(&mut local).next_n(&u32::MAX);
        if index == 0 {
            assert_eq!(next, Err(system(ExceptionKind::ObjectNotExist)), "the oldest ended");
        } else {
            assert_eq!(next.expect("two").1.len(), 2);
        }
    }
}

#[test]
fn nothing_grows_beyond_its_limit() {
    let limits = Limits {
        bindings_max: 2,
        contexts_max: 2,
        components_max: 2,
        component_bytes_max: 4,
        reference_bytes_max: 200,
        ..Limits::default()
    };
    let mut service = NamingService::new(home(), limits);
    root(&mut service, |root| {
        let full = system(ExceptionKind::NoResources);
        let large = system(ExceptionKind::ImpLimit);
        root.bind(&name("a"), &object(1)).expect("bound");
        root.bind_new_context(&name("b")).expect("a context");
        assert_eq!(root.bind(&name("c"), &object(1)), Err(BindError::System(full)));
        root.rebind(&name("a"), &object(2)).expect("not one more");
        assert_eq!(root.rebind(&name("c"), &object(1)), Err(RebindError::System(full)));
        assert_eq!(root.new_context(), Err(full));
        assert_eq!(root.resolve(&name("a/b/c")), Err(ResolveError::System(large)));
        assert_eq!(root.resolve(&name("abc.de")), Err(ResolveError::System(large)));
        let mut much = object(1);
        much.0.type_id = vec![b'x'; 300];
        assert_eq!(root.rebind(&name("a"), &much), Err(RebindError::System(large)));
        assert_eq!(root.resolve(&name("a")), Ok(object(2)), "as it was");
    });
}

/// One with everything that a state can have.
fn full() -> NamingService {
    let mut service = service();
    root(&mut service, |root| {
        root.bind(&name("o.k"), &object(1)).expect("bound");
        root.bind(&name("nil"), &Object::nil()).expect("bound");
        root.bind_context(&name("far"), &foreign()).expect("bound");
        root.bind_new_context(&name("a")).expect("a context");
        let gone = root.bind_new_context(&name("a/gone")).expect("a context");
        root.bind_context(&name("again"), &gone).expect("bound");
        root.bind(&name("a/\u{e9}"), &object(2)).expect("bound");
        root.list(&2).expect("an iterator");
        root.list(&0).expect("an iterator that has not begun");
    });
    service
}

#[test]
fn a_state_taken_over_is_the_same_service() {
    let mut service = full();
    let state = service.state();
    let mut local = Local::new(&mut service, STATE_KEY.as_bytes());
    assert_eq!(CheckpointableStub(&mut local).get_state().expect("a state"), state);
    let mut other = NamingService::new(home(), Limits::default());
    let mut local = Local::new(&mut other, STATE_KEY.as_bytes());
    CheckpointableStub(&mut local).set_state(&state).expect("taken over");
    assert_eq!(other.state(), state);
    assert_eq!(other.bindings(), service.bindings());
    // And both answer alike from here on, to the octet.
    for service in [&mut service, &mut other] {
        root(service, |root| {
            root.bind_new_context(&name("a/new")).expect("a context");
            root.list(&1).expect("an iterator");
        });
    }
    assert_eq!(other.state(), service.state());
}

#[test]
fn a_state_that_is_not_whole_changes_nothing() {
    let state = full().state();
    let mut other = service();
    root(&mut other, |root| root.bind(&name("mine"), &object(1)).expect("bound"));
    let before = other.state();
    for cut in 0..state.len() {
        assert!(other.take_over(&state[..cut]).is_err(), "{cut}");
    }
    let mut longer = state.clone();
    longer.push(0);
    assert!(other.take_over(&longer).is_err());
    assert_eq!(other.state(), before);
    // Whatever one octet is, it is read or refused, and what is read is written as it was.
    for at in 0..state.len() {
        for bit in [1, 0x80] {
            let mut changed = state.clone();
            changed[at] ^= bit;
            let mut third = service();
            if third.take_over(&changed).is_ok() {
                let again = third.state();
                let mut fourth = service();
                fourth.take_over(&again).expect("its own state");
                assert_eq!(fourth.state(), again, "{at}");
            }
        }
    }
    let mut local = Local::new(&mut other, STATE_KEY.as_bytes());
    assert!(CheckpointableStub(&mut local).set_state(&b"nonsense".to_vec()).is_err());
    assert_eq!(other.state(), before);
}

#[test]
fn a_binding_costs_little_more_than_its_name_and_object_key() {
    let mut service = service();
    let reference = object(7);
    let mut local = Local::new(&mut service, ROOT_KEY.as_bytes());
    let mut root = NamingContextExtStub(&mut local);
    let count = 50_000_u32;
    for number in 0..count {
        let id = format!("service-{number:07}");
        root.bind(&vec![NameComponent { id, kind: String::new() }], &reference).expect("bound");
    }
    let (list, iterator) = root.list(&10).expect("a list");
    assert_eq!((list.len(), iterator.is_nil()), (10, false));
    assert_eq!(service.bindings(), u64::from(count));
    let state = service.state();
    let octets = state.len() / count as usize;
    // Its name, its object key, and a few numbers; what all references have in common once.
    assert!(octets < 60, "{octets} octets for a binding in a state");
}
