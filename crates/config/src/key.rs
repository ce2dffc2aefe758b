//! The domain key: 32 secret bytes, kept in a file as 64 hexadecimal digits and a newline. While
//! the key is being changed, the file has several, one a line, the oldest first.
//!
//! What it is not: a key that anything is encrypted with. Ring keys are derived from it.
//!
//! Invariants: it is never printed, not by `Debug` either; its memory is wiped when dropped; a
//! key file that other users can read or change is refused.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Length of the key in bytes.
pub const KEY_BYTES: usize = 32;

/// The most keys that a file may have.
pub const KEYS_MAX: usize = 4;

/// A key file is a few lines of 64 digits; more than this is read of none.
const FILE_BYTES_MAX: u64 = 1024;

/// Permission bits that a key file must not have: write for the group, anything for others.
/// Reading by the group is left to the operator (a service account in a group of its own).
const MODE_FORBIDDEN: u32 = 0o027;

/// The secret that admits a node to a domain.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct DomainKey([u8; KEY_BYTES]);

impl DomainKey {
    /// A key of these bytes. They must come from a source of secure randomness.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// The key's bytes, to derive other keys from.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Reads a key from a line of a key file.
    ///
    /// # Errors
    /// [`KeyError::Malformed`] if the text is not 64 hexadecimal digits and white space.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let digits = text.trim_ascii();
        if digits.len() != 2 * KEY_BYTES {
            let found = format!("{} characters", digits.chars().count());
            return Err(KeyError::Malformed { found });
        }
        let mut bytes = [0; KEY_BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            let nibble = |digit: u8| char::from(digit).to_digit(16);
            let (Some(high), Some(low)) = (nibble(pair[0]), nibble(pair[1])) else {
                let found = "a character that is no hexadecimal digit".to_owned();
                return Err(KeyError::Malformed { found });
            };
            *byte = u8::try_from(high << 4 | low).expect("two hexadecimal digits fit a byte");
        }
        Ok(Self(bytes))
    }

    /// A line of a key file: 64 hexadecimal digits and a newline.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(2 * KEY_BYTES + 1);
        for byte in self.0 {
            let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
            text.extend([digit(byte >> 4), digit(byte & 15)]);
        }
        text.push('\n');
        text
    }

    /// Reads the keys in the file at `path`: at least one, the oldest first.
    ///
    /// # Errors
    /// [`KeyError`] if it cannot be read, is open to other users, or does not hold 1 to
    /// [`KEYS_MAX`] different keys.
    pub fn read_file(path: &Path) -> Result<Vec<Self>, KeyError> {
        let unreadable = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => KeyError::Missing,
            _ => KeyError::Unreadable { reason: plain(&error) },
        };
        let file = File::open(path).map_err(unreadable)?;
        refuse_open_modes(&file).map_err(|mode| KeyError::TooOpen { mode })?;
        let mut text = String::new();
        file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| {
            match error.kind() {
                std::io::ErrorKind::InvalidData => {
                    KeyError::Malformed { found: "bytes that are no text".to_owned() }
                }
                _ => KeyError::Unreadable { reason: plain(&error) },
            }
        })?;
        let keys = Self::from_lines(&text);
        text.zeroize();
        keys
    }

    fn from_lines(text: &str) -> Result<Vec<Self>, KeyError> {
        let mut keys: Vec<Self> = Vec::new();
        for line in text.trim_ascii().split('\n') {
            let key = Self::from_text(line)?;
            if keys.contains(&key) {
                return Err(KeyError::Malformed { found: "one of them twice".to_owned() });
            }
            keys.push(key);
        }
        match keys.len() {
            1..=KEYS_MAX => Ok(keys),
            count => Err(KeyError::Malformed { found: format!("{count} of them") }),
        }
    }
}

impl fmt::Debug for DomainKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DomainKey(secret)")
    }
}

/// What an I/O error says, without the number that the standard library adds.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((said, _)) => said.to_owned(),
        None => text,
    }
}

#[cfg(unix)]
fn refuse_open_modes(file: &File) -> Result<(), u32> {
    use std::os::unix::fs::PermissionsExt;
    let Ok(metadata) = file.metadata() else { return Ok(()) };
    let mode = metadata.permissions().mode() & 0o777;
    if mode & MODE_FORBIDDEN == 0 { Ok(()) } else { Err(mode) }
}

#[cfg(not(unix))]
fn refuse_open_modes(_file: &File) -> Result<(), u32> {
    Ok(())
}

/// Why a key file gave no key. Always the operator's to repair; retrying does not help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// There is no such file.
    Missing,
    /// The system refuses to give its content.
    Unreadable {
        /// What the system said.
        reason: String,
    },
    /// Other users can read or change it.
    TooOpen {
        /// Its permission bits.
        mode: u32,
    },
    /// Its content is no key.
    Malformed {
        /// What stands there instead, without repeating it.
        found: String,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no such file"),
            Self::Unreadable { reason } => write!(f, "it cannot be read: {reason}"),
            Self::TooOpen { mode } => {
                write!(f, "other users can read or change it (mode {mode:04o})")
            }
            Self::Malformed { found } => {
                write!(f, "a key is {} hexadecimal digits, found {found}", 2 * KEY_BYTES)
            }
        }
    }
}

impl std::error::Error for KeyError {}
