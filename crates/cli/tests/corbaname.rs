//! `corbaname:` references as arguments: a naming service that runs is asked for the object.

mod stage;

use stage::Domain;

fn said(domain: &Domain, arguments: &[&str]) -> Result<String, String> {
    let output = domain.quorba(arguments);
    let text = |octets: Vec<u8>| String::from_utf8(octets).expect("a text");
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

#[test]
fn an_object_is_found_by_its_name_wherever_a_reference_is_taken() {
    let ports = stage::free_ports(21_500, 3);
    let domain = Domain::start_group(&format!("[service.naming]\nlisten = {ports}\n"));
    domain.wait_healthy();
    let object = "corbaloc:iiop:1.2@robot.example:7/hand";
    said(&domain, &["naming", "mkctx", "plant"]).expect("made");
    said(&domain, &["naming", "bind", "plant/ro bot.arm", object]).expect("bound");
    let (one, other) = (format!("127.0.0.1:{ports}"), format!("127.0.0.1:{}", ports + 1));
    // The first address has nobody.
    let nobody = stage::free_ports(30_500, 1);
    let name = format!("corbaname::127.0.0.1:{nobody},:{other}#plant/ro%20bot.arm");
    let shown = said(&domain, &["ior", "show", &name]).expect("found");
    assert!(shown.contains("robot.example") && shown.contains("hand"), "{shown}");

    // Names of names, and contexts by name.
    said(&domain, &["naming", "bind", "hand", &name]).expect("bound");
    let resolve = ["naming", "resolve", "--corbaloc", "hand"];
    assert_eq!(said(&domain, &resolve).expect("resolved").trim(), object);
    let context = format!("corbaname::{one}/NameService#plant");
    let listed = said(&domain, &["naming", "--at", &context, "ls"]).expect("listed");
    assert!(listed.contains("ro bot"), "{listed}");
    let pinged = said(&domain, &["ping", &format!("corbaname::{one}")]);
    assert!(pinged.is_ok(), "the naming service itself: {pinged:?}");

    let missing = said(&domain, &["ior", "show", &format!("corbaname::{one}#nobody")]);
    assert!(missing.as_ref().is_err_and(|text| text.contains("has no \"nobody\"")), "{missing:?}");
    let wrong = said(&domain, &["ior", "show", &format!("corbaname::{one}#a//b")]);
    assert!(wrong.as_ref().is_err_and(|text| text.contains("for no name")), "{wrong:?}");
}
