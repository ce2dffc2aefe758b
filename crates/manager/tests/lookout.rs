//! When the process beside a replica has its manager look.

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use quorba_idl::quorba::NewsItem;
use quorba_manager::{Lookout, Tidings};
use stage::calls::{INITIAL, MINIMUM, create, name, property, with};
use stage::{domain, manager};
use std::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn what_is_left_to_do_is_looked_for_soon_and_then_less_often() {
    let way = domain();
    let mut manager = manager(&way);
    let mut lookout = Lookout::default();
    let (group, _) =
        create(&mut manager, vec![property(INITIAL, &2_u16), property(MINIMUM, &2_u16)]);
    assert!(!lookout.look(&manager, ms(0)));
    assert!(!lookout.look(&manager, ms(9_000)), "nothing is known to be left");
    way.0.borrow_mut().busy_after = Some(1);
    with(&mut manager, |it| it.remove_member(&group, &name("n1"))).expect("removed");
    assert!(manager.has_work());
    assert!(!lookout.look(&manager, ms(9_100)));
    let mut looks = Vec::new();
    for now in (9_100..60_000).step_by(100) {
        if lookout.look(&manager, ms(now)) {
            assert!(!lookout.look(&manager, ms(now)), "one at a time");
            lookout.looked(ms(now));
            looks.push(now);
        }
    }
    let pauses: Vec<u64> = looks.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(looks[0] < 10_100 && pauses[0] <= 1_000, "{looks:?}");
    assert!(pauses.is_sorted() && pauses.last() == Some(&10_000), "{pauses:?}");
    // Another one does it.
    lookout.follow_another();
    assert!(!lookout.look(&manager, ms(60_000)));
}

#[test]
fn a_manager_is_told_who_has_gone_and_which_nodes_have_come() {
    let item = |group: &str, is_up| NewsItem {
        number: 1,
        node: "n1".to_owned(),
        group: group.to_owned(),
        is_up,
        type_id: String::new(),
        group_id: 0,
        incident: String::new(),
        is_monitored: true,
    };
    assert_eq!(Tidings::of(&item("", true)), Some(Tidings::Look));
    assert_eq!(Tidings::of(&item("", false)), Some(Tidings::Fault));
    assert_eq!(Tidings::of(&item("bank", false)), Some(Tidings::Fault));
    assert_eq!(Tidings::of(&item("bank", true)), None);
}
