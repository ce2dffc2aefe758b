//! Groups that waited for a node's memory when the log ended, and the domain file of today.
//!
//! What it is not: the rule by which they wait, which is the replica's. Invariant: a node whose
//! file declares others as such groups does not start.

use crate::NodeError;
use crate::groups::Groups;
use crate::settings::style;
use quorba_config::Group;
use quorba_engine::replica::{GroupId, lives_in_memory};
use std::path::Path;

/// Groups that waited when the log ended are those that are not durable: it must be the same ones
/// that go on, because nodes may know different things of them.
pub(super) fn check(
    groups: &Groups,
    waiting: Option<Vec<GroupId>>,
    path: &Path,
) -> Result<(), NodeError> {
    let Some(waiting) = waiting else { return Ok(()) };
    let waited = |id: GroupId| waiting.contains(&id);
    let lives = |group: &Group| {
        lives_in_memory(group.durable, style(group.style), group.state_object.is_some())
    };
    let groups = groups.iter();
    if groups.clone().all(|(id, group)| waited(id) == lives(group)) {
        return Ok(());
    }
    let names = |is_one: &dyn Fn(GroupId, &Group) -> bool| {
        let those = groups.clone().filter(|(id, group)| is_one(*id, group));
        those.map(|(_, group)| group.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    Err(NodeError::GroupsWait {
        path: path.to_path_buf(),
        waiting: names(&|id, _| waited(id)),
        declared: names(&|_, group| lives(group)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_config::{DomainKey, check_text};

    const FILE: &str = r#"
[domain]
id = "plant"
key_file = "key"
[node.n1]
host = "127.0.0.1"
admin = "127.0.0.1:4721"
[group.bank]
listen = 5000
members = ["n1"]
server = ["./bank", "{port}"]
state_object = "State"
durable = true
[group.meter]
listen = 5001
members = ["n1"]
server = ["./meter", "{port}"]
state_object = "State"
"#;

    fn checked(text: &str, waiting: &[u16]) -> Result<(), NodeError> {
        let read = check_text(Path::new("quorba.toml"), text, |_| {
            Ok(vec![DomainKey::from_bytes([7; 32])])
        });
        let domain = read.domain.unwrap_or_else(|| panic!("{}", read.report));
        let waiting = waiting.iter().map(|group| GroupId(*group)).collect();
        check(&Groups::of_domain(&domain), Some(waiting), Path::new("log"))
    }

    #[test]
    fn what_waited_must_be_what_is_not_durable_now() {
        assert!(checked(FILE, &[1]).is_ok());
        let durable = FILE.replace(
            "server = [\"./meter\", \"{port}\"]",
            "server = [\"./meter\", \"{port}\"]\ndurable = true",
        );
        let refused = checked(&durable, &[1]).expect_err("it waited").to_string();
        assert!(refused.contains("(meter)"), "{refused}");
        let refused = checked(&FILE.replace("durable = true", ""), &[1]).expect_err("one more");
        assert!(refused.to_string().contains("bank, meter"), "{refused}");
    }
}
