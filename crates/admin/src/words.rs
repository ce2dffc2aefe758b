//! Closed sets of words that stand in the JSON texts of the admin API.
//!
//! What they are not: texts for people. Invariants: a word is a variant's name in lower case with
//! hyphens; a word that a newer node sends and this reader does not know is [`Unknown`], and makes
//! nothing else unreadable.
//!
//! [`Unknown`]: crate::status::RingState::Unknown

/// Defines an enum of words, with `Unknown` besides.
macro_rules! words {
    ($(#[$about:meta])* $name:ident {
        $($(#[$of:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $variant,)*
            /// A word that this reader does not know.
            #[default]
            #[serde(rename = "unknown", other)]
            Unknown,
        }

        impl $name {
            /// The word that stands in the JSON text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Unknown => "unknown",
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::status::ServerState;

    #[test]
    fn a_word_of_a_newer_node_is_unknown_and_harms_nothing() {
        let read = |text| serde_json::from_str::<ServerState>(text).expect("a word");
        assert_eq!(read("\"running\""), ServerState::Running);
        assert_eq!(read("\"hibernating\""), ServerState::Unknown);
        assert_eq!(serde_json::to_string(&ServerState::Quarantined).unwrap(), "\"quarantined\"");
        assert_eq!(format!("[{:12}]", ServerState::Down), "[down        ]");
    }
}
