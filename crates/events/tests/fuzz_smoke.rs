//! The fuzzer's targets over inputs that make sense and mutations of them, the same ones every
//! time.

#[path = "../../giop/tests/dice/mod.rs"]
mod dice;
#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use dice::Dice;
use quorba_corba::giop::{Endian, Version};
use quorba_corba::{Coding, Encoder, Object};
use quorba_events::filter::designator as d;
use quorba_events::{Full, Settings, Updates, fuzzing};
use quorba_idl::rtec_event_channel_admin::ConsumerQOS;
use stage::{Stage, entry, event, offers, wants, wants_all};

const RUNS: usize = 10_000;

fn octets(write: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut to = Encoder::new(Endian::Little, Coding::plain(Version::V1_2));
    write(&mut to);
    to.into_writer().finish()
}

fn mutate(dice: &mut Dice, input: &mut [u8]) {
    for _ in 0..dice.roll(4) {
        let at = dice.roll(input.len());
        if let Some(octet) = input.get_mut(at) {
            *octet ^= 1 << dice.roll(8);
        }
    }
}

#[test]
fn mutated_filters_keep_the_promises() {
    let mut dice = Dice(0x00A1_1CE5_0000_0131);
    for _ in 0..RUNS * 4 {
        let count = dice.roll(12);
        let mut input = vec![u8::try_from(count).expect("few")];
        for _ in 0..count {
            let event_type = [dice.roll(20), 8, 9, 11, 16][dice.roll(5)];
            input.push(u8::try_from(event_type).expect("small"));
            input.push(u8::try_from(dice.roll(4)).expect("small"));
            input.push(u8::try_from(dice.roll(9)).expect("small"));
            input.push(0);
        }
        for _ in 0..2 * dice.roll(40) {
            input.push(u8::try_from(14 + dice.roll(6)).expect("small"));
        }
        mutate(&mut dice, &mut input);
        fuzzing::filter(&input);
    }
}

#[test]
fn mutated_subscriptions_keep_the_promises() {
    let mut dice = Dice(0x00A1_1CE5_0000_0132);
    for _ in 0..RUNS {
        let dependencies = (0..dice.roll(6))
            .map(|_| {
                let event_type = i32::try_from(dice.roll(20)).expect("small");
                entry(event_type, i32::try_from(dice.roll(3)).expect("small"), 100_000, 0)
            })
            .collect();
        let qos = ConsumerQOS { dependencies, is_gateway: dice.roll(2) == 0 };
        let mut input = [vec![1], octets(|to| to.write(&qos))].concat();
        mutate(&mut dice, &mut input);
        fuzzing::subscription(&input);
    }
}

#[test]
fn mutated_states_and_updates_keep_the_promises() {
    let mut dice = Dice(0x00A1_1CE5_0000_0133);
    let mut inputs = Vec::new();
    for is_reliable in [false, true] {
        let full = Full::BackPressure;
        let mut stage = Stage::new(Settings { is_reliable, full, ..Settings::default() });
        stage.rtec_consumer(&wants(&[(d::CONJUNCTION, 2), (16, 0), (17, 0)]));
        stage.rtec_consumer(&wants_all());
        stage.rtec_supplier(&offers(&[(16, 1)]));
        stage.channel.push(vec![event(16, 1, 0)]).expect("pushed");
        stage.channel.push(vec![event(17, 1, 0), event(16, 3, 0)]).expect("pushed");
        inputs.push(stage.channel.state());
        let Updates::Changes(changes) = stage.channel.updates_since(0) else { panic!("changes") };
        inputs.extend(changes);
    }
    inputs.iter().for_each(|input| fuzzing::state(input));
    for _ in 0..RUNS {
        let mut input = inputs[dice.roll(inputs.len())].clone();
        mutate(&mut dice, &mut input);
        fuzzing::state(&input);
    }
}

/// A call: operation, place, arguments.
fn call(operation: usize, place: usize, arguments: &[u8]) -> Vec<u8> {
    let octet = |number: usize| u8::try_from(number).expect("small");
    [&[octet(operation), octet(place), octet(arguments.len())], arguments].concat()
}

/// Proxies 1 to 5, of each kind that needs one, and who connects to them.
fn prologue(of_consumer: &[u8], with_peer: &[u8], nobody: &[u8], offered: &[u8]) -> Vec<u8> {
    [
        call(1, 4, &[]),
        call(1, 1, &[]),
        call(2, 1, &[]),
        call(3, 5, &[]),
        call(3, 2, &[]),
        call(5, 18, of_consumer),
        call(5, 10, with_peer),
        call(6, 20, nobody),
        call(7, 21, offered),
        call(7, 13, nobody),
    ]
    .concat()
}

#[test]
fn mutated_calls_keep_the_promises() {
    let mut dice = Dice(0x00A1_1CE5_0000_0134);
    let home = quorba_corba::Home { addresses: vec![("p".to_owned(), 1)], prefix: Vec::new() };
    let mut peer = home.object("IDL:P:1.0", b"p");
    // Small enough for the length of one call here.
    peer.0.profiles.truncate(1);
    let qos = wants(&[(16, 0)]);
    let of_consumer = octets(|to| {
        to.write(&peer);
        to.write(&qos);
    });
    let with_peer = octets(|to| to.write(&peer));
    let nobody = octets(|to| to.write(&Object::nil()));
    let events = octets(|to| to.write(&vec![event(16, 1, 0)]));
    // The facade's ids are those of proxies.
    let by_id = |number: u8| {
        octets(|to| {
            to.write(&[b"QRBEVENT".as_slice(), &u64::from(number).to_be_bytes()].concat());
            to.write(&vec![event(16, 1, 0)]);
        })
    };
    let offered = octets(|to| {
        to.write(&Object::nil());
        to.write(&offers(&[]));
    });
    let any = octets(|to| to.write(&quorba_corba::Any::new(&5_u32).expect("a number")));
    let prologue = prologue(&of_consumer, &with_peer, &nobody, &offered);
    for round in 0..RUNS {
        let mut input = vec![u8::try_from(round % 2).expect("small")];
        if dice.roll(2) == 0 {
            input.extend(&prologue);
        }
        for _ in 0..1 + dice.roll(30) {
            let proxy = 9 + dice.roll(18);
            input.extend(match dice.roll(19) {
                0 => call(1 + dice.roll(2), 1, &[]),
                1 => call(3 + dice.roll(2), 2, &[]),
                2 => call(1, 4, &[]),
                3 => call(3, 5, &[]),
                4 => {
                    call(5 + dice.roll(4), proxy, if round % 3 == 0 { &nobody } else { &with_peer })
                }
                5 => call(5, proxy, &of_consumer),
                6 | 7 => call(0, proxy, if round % 3 == 0 { &events } else { &any }),
                8 => call(9 + dice.roll(4), proxy, &[]),
                11 => call(5, 6, &of_consumer),
                12 => call(7, 6, &offered),
                13 => call(19, 7, &of_consumer),
                14 => call(0, 6, &by_id(u8::try_from(1 + dice.roll(4)).expect("small"))),
                15 | 16 => call(0, 21, &events),
                17 => call(0, 13, &any),
                18 => call(9 + dice.roll(2), 20, &[]),
                9 => call(200 + dice.roll(40), dice.roll(3), &[]),
                10 => call(240 + dice.roll(15), dice.roll(200), &[]),
                _ => call(dice.roll(22), dice.roll(30), &nobody),
            });
        }
        mutate(&mut dice, &mut input);
        let checked = std::panic::catch_unwind(|| fuzzing::calls(&input));
        assert!(checked.is_ok(), "calls {input:02x?}");
    }
}
