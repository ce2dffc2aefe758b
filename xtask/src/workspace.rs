//! Where things are: the source tree, the build folder, and programs on the search path.
//!
//! What it is not: a search. The places follow from where this crate was built.

use std::env;
use std::path::{Path, PathBuf};

/// The root of the source tree.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

/// Where cargo builds, and everything else too.
pub(crate) fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        // Relative to where cargo was called, as cargo itself takes it.
        Some(path) => env::current_dir().unwrap_or_default().join(path),
        None => root().join("target"),
    }
}

/// The program `name` on the search path.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH")?;
    env::split_paths(&paths).map(|folder| folder.join(name)).find(|path| path.is_file())
}
