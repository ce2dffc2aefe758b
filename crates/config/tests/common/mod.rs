//! The beginning of a domain file, and what is said of one. The file and its key are not on disk.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use std::path::Path;

use quorba_config::{Checked, Code, Domain, DomainKey, check_text};

/// A domain of three nodes; groups follow. For texts that are put together when they are compiled.
macro_rules! beginning {
    () => {
        r#"
[domain]
id = "d"
key_file = "k"
[node.n1]
host = "10.0.0.1"
[node.n2]
host = "10.0.0.2"
[node.n3]
host = "10.0.0.3"
"#
    };
}
#[allow(unused_imports, reason = "each test uses a part of it")]
pub(crate) use beginning;

/// The same.
pub const BEGINNING: &str = beginning!();

/// Where groups listen that say nothing of it.
pub const GATEWAY: &str = "[gateway]\nlisten = 5000\n";

/// What is found in a whole file.
pub fn check(text: &str) -> Checked {
    let key = |_: &Path| Ok(vec![DomainKey::from_bytes([7; 32])]);
    check_text(Path::new("/etc/d/quorba.toml"), text, key)
}

/// What a whole file says, which is right.
pub fn domain(text: &str) -> Domain {
    let checked = check(text);
    checked.domain.unwrap_or_else(|| panic!("{}", checked.report))
}

/// What is wrong; warnings are not.
pub fn errors(checked: &Checked) -> Vec<(Code, String)> {
    let problems = checked.report.problems().iter().filter(|one| !one.is_warning());
    problems.map(|one| (one.code, one.message.clone())).collect()
}
