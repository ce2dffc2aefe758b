//! The fuzzer's targets over criteria and states that make sense and mutations of them, the same
//! ones every time.

#[path = "../../giop/tests/dice/mod.rs"]
mod dice;
#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use dice::Dice;
use quorba_corba::giop::Endian;
use quorba_corba::{Any, Coding, Encoder, Local};
use quorba_idl::cos_naming::NameComponent;
use quorba_idl::ft::{self, FactoryInfo, Property, ReplicationManagerStub};
use quorba_manager::{MANAGER_KEY, fuzzing};

const RUNS: usize = 10_000;
const NAMES: [&str; 10] = [
    "org.omg.ft.ReplicationStyle",
    "org.omg.ft.MembershipStyle",
    "org.omg.PortableGroup.MembershipStyle",
    "org.omg.ft.FaultMonitoringGranularity",
    "org.omg.ft.Factories",
    "org.omg.PortableGroup.InitialNumberMembers",
    "org.omg.ft.MinimumNumberReplicas",
    "org.omg.ft.FaultMonitoringIntervalAndTimeout",
    "org.omg.ft.CheckpointInterval",
    "org.omg.ft.ObjectLocation",
];

fn name(id: &str) -> ft::Name {
    vec![NameComponent { id: id.to_owned(), kind: String::new() }]
}

fn property(dice: &mut Dice) -> Property {
    let number = u16::try_from(dice.roll(7)).expect("small");
    let info = FactoryInfo {
        the_factory: quorba_corba::Object::nil(),
        the_location: name("n1"),
        the_criteria: Vec::new(),
    };
    let times = ft::FaultMonitoringIntervalAndTimeoutValue {
        monitoring_interval: u64::from(number),
        timeout: 5,
    };
    let val = match dice.roll(7) {
        0 => Any::new(&i32::from(number)),
        1 => Any::new(&u64::from(number)),
        2 => Any::new(&vec![info]),
        3 => Any::new(&times),
        4 => Any::new(&name("n2")),
        _ => Any::new(&number),
    };
    Property { nam: name(NAMES[dice.roll(NAMES.len())]), val: val.expect("a value") }
}

#[test]
fn mutated_criteria_and_states_keep_the_promises() {
    let mut dice = Dice(0x00A1_1CE5_0000_0029);
    for _ in 0..RUNS {
        let mut criteria: ft::Properties = (0..dice.roll(4)).map(|_| property(&mut dice)).collect();
        if dice.roll(3) > 0 {
            let val = Any::new(&criteria).expect("a value");
            criteria = vec![Property { nam: name("org.omg.ft.FTProperties"), val }];
        }
        let mut to = Encoder::new(Endian::Little, Coding::plain(quorba_corba::giop::Version::V1_2));
        to.write(&criteria);
        let mut input = vec![1];
        input.extend(to.into_writer().finish());
        if dice.roll(2) == 0 {
            let at = dice.roll(input.len());
            input[at] ^= 1 << dice.roll(8);
        }
        fuzzing::criteria(&input);
    }
}

#[test]
fn mutated_states_keep_the_promises() {
    let way = stage::domain();
    let mut manager = stage::manager(&way);
    let mut local = Local::new(&mut manager, MANAGER_KEY.as_bytes());
    let mut it = ReplicationManagerStub(&mut local);
    for _ in 0..3 {
        it.create_object(&stage::BANK.to_owned(), &Vec::new()).expect("created");
    }
    let times = vec![Property { nam: name(NAMES[8]), val: Any::new(&7_u64).expect("a value") }];
    it.set_type_properties(&stage::BANK.to_owned(), &times).expect("set");
    let state = manager.state();
    fuzzing::state(&state);
    let mut dice = Dice(0x00A1_1CE5_0000_0030);
    for _ in 0..RUNS {
        let mut state = state.clone();
        for _ in 0..=dice.roll(3) {
            let at = dice.roll(state.len());
            state[at] ^= 1 << dice.roll(8);
        }
        fuzzing::state(&state);
    }
}
