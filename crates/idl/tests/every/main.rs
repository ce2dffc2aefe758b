//! What the generator makes of every kind of declaration: values travel through whole messages,
//! from a stub to an implementation and back, and as anys.

#[allow(missing_docs, dead_code, reason = "generated from every.idl")]
mod generated;
mod recorded;

pub use generated::every;

use every::deep::{Both, BothStub};
use every::thing::{EchoError, Pair};
use every::{
    All, ByChar, ByNumber, Choice, Colour, Empty, Maybe, Named, NamedStub, Numbers, Precise,
    Refused, Thing, ThingStub, Tree, by_char,
};
use quorba_corba::giop::{Completion, Endian, ExceptionKind, SystemException, Version};
use quorba_corba::{
    Any, Bounded, BoundedString, Call, Char, Interface, Local, LongDouble, Object, Objects, WChar,
    WString,
};

/// One object that is everything.
#[derive(Default)]
struct Server {
    name: String,
    notified: Vec<String>,
}

impl Thing for Server {
    fn count(&mut self) -> Result<i32, SystemException> {
        Ok(i32::try_from(self.notified.len()).expect("few"))
    }

    fn name(&mut self) -> Result<String, SystemException> {
        Ok(self.name.clone())
    }

    fn set_name(&mut self, name: String) -> Result<(), SystemException> {
        self.name = name;
        Ok(())
    }

    fn echo(&mut self, it: All) -> Result<All, EchoError> {
        match it.narrow.as_str() {
            "refuse" => Err(Refused { why: it.narrow, number: -7 }.into()),
            "nothing" => Err(Empty {}.into()),
            "system" => Err(EchoError::System(SystemException {
                kind: ExceptionKind::NoResources,
                minor: 3,
                completed: Completion::Yes,
            })),
            _ => Ok(it),
        }
    }

    fn mix(
        &mut self,
        a: i32,
        b: Pair,
        self_: WString,
    ) -> Result<(i32, Pair, String), SystemException> {
        Ok((a + 1, Pair { x: b.y, y: b.x }, self_.to_string()))
    }

    fn nothing(&mut self) -> Result<(), SystemException> {
        Ok(())
    }

    fn notify(&mut self, what: String) -> Result<(), SystemException> {
        self.notified.push(what);
        Ok(())
    }
}

impl Named for Server {
    fn whoami(&mut self) -> Result<String, SystemException> {
        Ok("both".to_owned())
    }
}

impl Both for Server {
    fn swap(&mut self, it: Pair) -> Result<Pair, every::deep::both::SwapError> {
        Ok(Pair { x: it.y, y: it.x })
    }
}

impl Objects for Server {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        match key {
            b"both" => Some(every::deep::BOTH),
            b"thing" => Some(every::THING),
            _ => None,
        }
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        match key {
            b"both" => every::deep::dispatch_both(self, call),
            _ => every::dispatch_thing(self, call),
        }
    }
}

fn tree() -> Tree {
    let leaf = |name: &str| Tree { r#type: name.to_owned(), kids: Vec::new() };
    let inner = Tree { r#type: "inner".to_owned(), kids: vec![leaf("a"), leaf("b")] };
    Tree { r#type: "root".to_owned(), kids: vec![inner, leaf("c")] }
}

fn all(choice: Choice, by_number: ByNumber, maybe: Maybe) -> All {
    All {
        some_numbers: Numbers {
            a: -1,
            b: 2,
            c: -3,
            d: 4,
            e: -5,
            f: 6,
            g: 0.5,
            h: -0.25,
            j: true,
            k: 7,
            l: Char(b'l'),
            m: WChar(0x20ac),
        },
        narrow: "na\u{ef}ve".to_owned(),
        wide: WString::from("\u{1f600}"),
        short_text: BoundedString::new("four".to_owned()).expect("four"),
        some_words: Bounded::new(vec![BoundedString::default()]).expect("one"),
        colours: [[Colour::Red, Colour::Blue, Colour::LightGreen], [Colour::Red; 3]],
        some_trees: vec![tree()],
        octets: vec![1, 2, 3],
        few_octets: Bounded::new(vec![4]).expect("one"),
        a_choice: choice,
        one_by_number: by_number,
        perhaps: maybe,
        anything: Any::new(&tree()).expect("a value"),
        who: Object::nil(),
    }
}

fn samples() -> Vec<All> {
    let digest = [3; 16];
    let something = || Any::new(&tree()).expect("a value");
    vec![
        all(Choice::Number(5), ByNumber::ATree(tree()), Maybe::It(Object::nil())),
        all(
            Choice::Text(Colour::Blue, "blue".to_owned()),
            ByNumber::ADigest(2, digest),
            Maybe::Nothing(false),
        ),
        all(
            Choice::Text(Colour::LightGreen, String::new()),
            ByNumber::Something(99, something()),
            Maybe::Nothing(false),
        ),
    ]
}

#[test]
fn everything_travels_in_every_version_and_byte_order() {
    for sample in samples() {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            for endian in [Endian::Big, Endian::Little] {
                let mut server = Server::default();
                let mut local = Local { version, endian, ..Local::new(&mut server, b"thing") };
                let echoed = ThingStub(&mut local).echo(&sample).expect("an echo");
                assert_same(&echoed, &sample);
            }
        }
    }
}

/// What an any has in it is the same, but not where in a message it was written.
fn assert_same(one: &All, other: &All) {
    assert_eq!(one.anything.get::<Tree>(), other.anything.get());
    assert_eq!(one.one_by_number.text(), other.one_by_number.text());
    let rest = |all: &All| All {
        anything: Any::default(),
        one_by_number: ByNumber::ADigest(1, [0; 16]),
        ..all.clone()
    };
    assert_eq!(rest(one), rest(other));
}

impl ByNumber {
    fn text(&self) -> String {
        match self {
            Self::Something(label, any) => format!("{label} {:?}", any.get::<Tree>()),
            other => format!("{other:?}"),
        }
    }
}

#[test]
fn types_say_what_they_are() {
    for sample in samples() {
        let any = Any::new(&sample).expect("a value");
        assert_eq!(any.type_code().id().as_deref(), Some("IDL:Every/All:1.0"));
        assert_same(&any.get::<All>().expect("the value"), &sample);
        assert_eq!(any.get::<Numbers>(), None);
    }
    for value in [ByChar::First(1), ByChar::Second(by_char::Inner { x: 2 })] {
        assert_eq!(Any::new(&value).expect("a value").get(), Some(value));
    }
    let precise = Precise { value: LongDouble([9; 16]) };
    assert_eq!(Any::new(&precise).expect("a value").get(), Some(precise));
    let refused = Refused { why: "so".to_owned(), number: 1 };
    assert_eq!(refused.clone(), refused);
}

#[test]
fn exceptions_arrive_with_their_members() {
    let mut server = Server::default();
    let mut local = Local::new(&mut server, b"thing");
    let mut thing = ThingStub(&mut local);
    let mut echo = |narrow: &str| {
        thing.echo(&All { narrow: narrow.to_owned(), ..samples().remove(0) }).unwrap_err()
    };
    let refused = Refused { why: "refuse".to_owned(), number: -7 };
    assert_eq!(echo("refuse"), EchoError::Refused(refused));
    assert_eq!(echo("nothing"), EchoError::Empty(Empty {}));
    let kind = ExceptionKind::NoResources;
    let system = SystemException { kind, minor: 3, completed: Completion::Yes };
    assert_eq!(echo("system"), EchoError::System(system));
}

#[test]
fn attributes_oneways_and_several_results() {
    let mut server = Server::default();
    let mut local = Local::new(&mut server, b"thing");
    let mut thing = ThingStub(&mut local);
    thing.set_name(&"new".to_owned()).expect("set");
    assert_eq!(thing.name().expect("read"), "new");
    thing.notify(&"once".to_owned()).expect("sent");
    assert_eq!(thing.count().expect("read"), 1);
    thing.nothing().expect("nothing");
    let mixed = thing.mix(&1, &Pair { x: 2, y: 3 }, &WString::from("w")).expect("mixed");
    assert_eq!(mixed, (2, Pair { x: 3, y: 2 }, "w".to_owned()));
}

#[test]
fn an_interface_has_what_it_inherits() {
    let mut server = Server::default();
    let mut local = Local::new(&mut server, b"both");
    assert_eq!(BothStub(&mut local).whoami().expect("a name"), "both");
    assert_eq!(NamedStub(&mut local).whoami().expect("a name"), "both");
    assert_eq!(ThingStub(&mut local).count().expect("a count"), 0);
    let swapped = BothStub(&mut local).swap(&Pair { x: 1, y: 2 }).expect("swapped");
    assert_eq!(swapped, Pair { x: 2, y: 1 });
    for id in ["IDL:Every/Thing:1.0", "IDL:Every/Named:1.0", "IDL:Every/Deep/Both:1.0"] {
        assert!(every::deep::BOTH.is_a(id), "{id}");
    }
    assert!(!every::THING.is_a("IDL:Every/Named:1.0"));
}

fn raised(outcome: Result<impl Sized, SystemException>) -> (ExceptionKind, Completion) {
    match outcome {
        Ok(_) => panic!("nothing was raised"),
        Err(exception) => (exception.kind, exception.completed),
    }
}

/// What every object does, through an interface that declares it so.
fn ask(key: &[u8], operation: &str, id: Option<&str>) -> Result<bool, SystemException> {
    let mut server = Server::default();
    let mut local = Local::new(&mut server, key);
    let id = id.map(str::to_owned);
    let write = |to: &mut quorba_corba::Encoder| id.iter().for_each(|id| to.write(id));
    quorba_corba::call(&mut local, operation, &write, |from| from.read())
}

#[test]
fn every_object_says_what_it_is() {
    assert_eq!(ask(b"both", "_is_a", Some("IDL:Every/Named:1.0")), Ok(true));
    assert_eq!(ask(b"both", "_is_a", Some("IDL:omg.org/CORBA/Object:1.0")), Ok(true));
    assert_eq!(ask(b"both", "_is_a", Some("IDL:Every/Nothing:1.0")), Ok(false));
    assert_eq!(ask(b"both", "_non_existent", None), Ok(false));
    assert_eq!(ask(b"gone", "_non_existent", None), Ok(true));
    let no = Completion::No;
    assert_eq!(raised(ask(b"gone", "_is_a", Some("x"))), (ExceptionKind::ObjectNotExist, no));
    assert_eq!(raised(ask(b"both", "_interface", None)), (ExceptionKind::IntfRepos, no));
    assert_eq!(raised(ask(b"both", "unheard_of", None)), (ExceptionKind::BadOperation, no));
    assert_eq!(raised(ask(b"both", "notify", None)), (ExceptionKind::Marshal, no));
    let mut server = Server::default();
    let mut local = Local::new(&mut server, b"both");
    let id =
        quorba_corba::call(&mut local, "_repository_id", &|_| {}, |from| from.read::<String>());
    assert_eq!(id, Ok::<_, SystemException>("IDL:Every/Deep/Both:1.0".to_owned()));
    let component =
        quorba_corba::call(&mut local, "_component", &|_| {}, |from| from.read::<Object>());
    assert_eq!(component, Ok::<_, SystemException>(Object::nil()));
}

#[test]
fn what_the_client_cannot_read_is_not_sent() {
    let mut server = Server { name: "\u{20ac}".to_owned(), ..Server::default() };
    let mut local = Local { code_sets: None, ..Local::new(&mut server, b"thing") };
    let mut thing = ThingStub(&mut local);
    assert_eq!(raised(thing.name()), (ExceptionKind::DataConversion, Completion::Yes));
    assert_eq!(
        raised(thing.set_name(&"\u{20ac}".to_owned())),
        (ExceptionKind::DataConversion, Completion::No)
    );
    thing.set_name(&"\u{e9}".to_owned()).expect("it is in ISO 8859-1");
    assert_eq!(server.name, "\u{e9}");
}

#[test]
fn bounds_are_kept() {
    assert_eq!(Bounded::<u8, 8>::new(vec![0; 9]), None);
    assert_eq!(BoundedString::<4>::new("fives".to_owned()), None);
    assert_eq!(every::LIMIT, 3);
    assert_eq!(every::GREETING, "hello \"you\"");
    assert_eq!((every::YES, every::HALF), (true, 0.5));
    assert_eq!(every::FAVOURITE, Colour::LightGreen);
}
