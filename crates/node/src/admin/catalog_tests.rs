//! What clients ask of the catalog arrives as it was asked, and what is answered as it was said.

use super::*;
use crate::admin::server::{AdminServer, UnprovenConnections};
use crate::tunnel;
use quorba_admin::CatalogGroup;
use quorba_admin::{AdminError, Client};
use quorba_config::{Domain, DomainKey, check_text};
use std::path::Path as FilePath;
use std::sync::Mutex;

const WITHIN: Duration = Duration::from_secs(10);
const BANK: &str = "[group.bank]\nmembers = [\"n1\"]\n";

/// What the data plane heard.
type Heard = Arc<Mutex<Vec<(String, CatalogChange)>>>;

/// Runs a node's API whose data plane has one group, refuses deletions, and has no time for the
/// operation `later`.
fn with_api(test: impl FnOnce(&Client, &Heard)) {
    let folder = tempfile::tempdir().expect("a folder");
    let port = quorba_net::free_ports(1).expect("a port")[0];
    let text = format!(
        "[domain]\nid = \"d\"\nkey_file = \"key\"\n[node.n1]\nhost = \"127.0.0.1\"\n\
         admin = \"127.0.0.1:{port}\"\nstate_dir = {:?}\n",
        folder.path()
    );
    let key = |_: &FilePath| Ok(vec![DomainKey::from_bytes([7; 32])]);
    let read = check_text(&folder.path().join("quorba.toml"), &text, key);
    let domain: Domain = read.domain.unwrap_or_else(|| panic!("{}", read.report));
    let heard = Heard::default();
    let hears = Arc::clone(&heard);
    let (_news, comes) = tunnel::news();
    let ask = move |question| answer(question, &hears);
    let about = (Vec::new(), "the file".into());
    let node = &domain.nodes[0];
    let _server = AdminServer::start(node, UnprovenConnections::new(8), about, comes, ask)
        .expect("it starts");
    test(&Client::new(node.admin, node.admin_token_file()), &heard);
}

fn answer(question: Question, heard: &Heard) -> bool {
    match question {
        Question::Catalog(asker) => {
            let bank = CatalogGroup {
                id: "7".into(),
                name: "bank".into(),
                definition: BANK.into(),
                reference_version: 3,
            };
            let catalog = Catalog { version: "v1".into(), groups: vec![bank] };
            asker.send(Ok(catalog)).expect("it waits");
        }
        Question::Define { operation, change, asker } => {
            let defined = match &change {
                CatalogChange::Delete(_) => Err(Refusal::from("shop calls it".to_owned())),
                _ if operation == "later" => {
                    Err(Refusal { text: "a view is forming".into(), is_passing: true })
                }
                _ => Ok(Defined { id: "7".into(), existed: operation == "again" }),
            };
            heard.lock().expect("no holder panics").push((operation, change));
            asker.send(defined).expect("it waits");
        }
        _ => {}
    }
    true
}

#[test]
fn what_is_asked_arrives_and_what_is_answered_comes_back() {
    with_api(|client, heard| {
        let catalog = client.catalog(WITHIN).expect("it is given");
        assert_eq!((&*catalog.version, &*catalog.groups[0].id), ("v1", "7"));
        assert_eq!(catalog.groups[0].definition, BANK);
        assert_eq!(catalog.groups[0].reference_version, 3);
        assert_eq!(client.file(WITHIN).expect("it is given"), "the file");
        let bank = Definition::parse(BANK).expect("a definition");
        let create = CatalogChange::Create(bank.clone());
        let change = CatalogChange::Change(bank);
        let delete = CatalogChange::Delete("bank".into());
        let defined = client.define("one", &create, WITHIN).expect("it is done");
        assert_eq!(defined, Defined { id: "7".into(), existed: false });
        let again = client.define("again", &change, WITHIN).expect("it is done");
        assert!(again.existed);
        let refused = client.define("a b&c=d/é", &delete, WITHIN).expect_err("it is called");
        let is_told =
            matches!(&refused, AdminError::Conflict { refusal, .. } if refusal == "shop calls it");
        assert!(is_told, "{refused:?}");
        let later = client.define("later", &create, WITHIN).expect_err("not now");
        assert!(matches!(later, AdminError::NotNow { .. }), "{later:?}");
        let heard = heard.lock().expect("no holder panics").clone();
        let expected =
            [("one", create.clone()), ("again", change), ("a b&c=d/é", delete), ("later", create)];
        assert_eq!(heard, expected.map(|(name, change)| (name.to_owned(), change)));
    });
}

#[test]
fn what_is_no_definition_of_that_group_or_has_no_name_never_reaches_the_order() {
    with_api(|client, heard| {
        let other = Definition { name: "shop".into(), text: BANK.into() };
        let long = "x".repeat(OPERATION_BYTES_MAX + 1);
        let bank = Definition::parse(BANK).expect("a definition");
        let none = Definition { name: "bank".into(), text: "[node.n1]\n".into() };
        for (operation, change, why) in [
            ("one", CatalogChange::Change(other), "is that of group bank, and not of shop"),
            ("", CatalogChange::Create(bank.clone()), "1 to 64 octets"),
            (&long, CatalogChange::Create(bank), "1 to 64 octets"),
            ("one", CatalogChange::Create(none), "has no [group.NAME]"),
        ] {
            let refused = client.define(operation, &change, WITHIN).expect_err(why);
            assert!(matches!(refused, AdminError::Conflict { .. }), "{refused:?}");
            assert!(refused.to_string().contains(why), "{refused}");
        }
        assert!(heard.lock().expect("no holder panics").is_empty());
    });
}
