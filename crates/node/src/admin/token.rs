//! The token that whoever asks has to show, and its file.
//!
//! What it is not: the endpoint; the server compares. Invariants: made anew at every start, and
//! nobody but the node's user can read the file.

use crate::filesystem::is_shortage;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// How often a token that the disk has no room for is tried again.
const OFFER_AGAIN: Duration = Duration::from_secs(5);

pub(super) fn new_token() -> String {
    let mut bytes = [0u8; 24];
    getrandom::fill(&mut bytes).expect("the kernel has randomness");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the token's file if it could not be at the start; never ends.
pub(super) async fn offer(path: &Path, token: &str, is_offered: bool) {
    let mut waits = !is_offered;
    while waits {
        tokio::time::sleep(OFFER_AGAIN).await;
        let written = write_token(path, token);
        waits = written.as_ref().is_err_and(is_shortage);
        if let Err(error) = written
            && !waits
        {
            tracing::error!(%error, "commands cannot ask this node: its token has no file");
        }
    }
    std::future::pending().await
}

/// On a full disk an old file, which is as long, is written over if only its owner can have opened
/// it; else it is made anew, because who has it open could read on.
pub(super) fn write_token(path: &Path, token: &str) -> std::io::Result<()> {
    let text = format!("{token}\n");
    let no_links = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let old = OpenOptions::new().write(true).custom_flags(no_links).open(path);
    if let Ok(mut old) = old
        && let Ok(meta) = old.metadata()
        && meta.is_file()
        && meta.mode() & 0o7777 == 0o600
        && meta.uid() == rustix::process::geteuid().as_raw()
        && meta.len() == text.len() as u64
    {
        return old.write_all(text.as_bytes());
    }
    // An old file may have kept wider permissions.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
