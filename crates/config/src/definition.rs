//! What a file says of one group, or of one server outside, as a text that is equal exactly if the
//! same is said.
//!
//! What it is not: the group as it is read. Nothing is in it that the file does not say, no
//! default, and paths are as they were written: each node finds them from its own file's folder.
//!
//! Invariants: the text is TOML with the one table `[group.NAME]` or `[outside.NAME]`, keys sorted,
//! numbers in decimal, each list whose order means nothing sorted; written down again it is the
//! same text.

use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// Lists of a group in which the order means nothing.
const SETS: [&str; 4] = ["calls", "members", "readonly", "state_operations"];

/// The longest definition: it is ordered in one piece.
pub const DEFINITION_BYTES_MAX: usize = 64 << 10;

/// What a definition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A group of the domain.
    Group,
    /// A server outside of it, which groups call.
    Outside,
}

impl Kind {
    /// The name of its table in a domain file.
    #[must_use]
    pub const fn table(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Outside => "outside",
        }
    }

    /// What people call it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Outside => "server outside",
        }
    }
}

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name, unique among groups and servers outside.
    pub name: String,
    /// What is said of it.
    pub text: String,
}

impl Definition {
    /// Of the table of a group or server outside; `None`: it is no table.
    pub(crate) fn of(kind: Kind, name: &str, table: Option<&DeTable<'_>>) -> Self {
        Self::new(kind, name, table.map(plain).unwrap_or_default())
    }

    /// A server outside with these keys, whose values are TOML; one without a value is taken away.
    ///
    /// # Errors
    /// What is no TOML.
    pub fn of_outside(name: &str, keys: &[(String, String)]) -> Result<Self, String> {
        Ok(Self::new(Kind::Outside, name, with(Table::new(), keys)?))
    }

    /// The same with these keys changed.
    ///
    /// # Errors
    /// What is no TOML.
    pub fn changed(&self, keys: &[(String, String)]) -> Result<Self, String> {
        Ok(Self::new(self.kind(), &self.name, with(self.keys(), keys)?))
    }

    fn new(kind: Kind, name: &str, mut keys: Table) -> Self {
        for key in SETS {
            if let Some(Value::Array(list)) = keys.get_mut(key) {
                list.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
            }
        }
        let named = Table::from_iter([(name.to_owned(), Value::Table(keys))]);
        let root = Table::from_iter([(kind.table().to_owned(), Value::Table(named))]);
        Self { name: name.to_owned(), text: root.to_string() }
    }

    /// The group of this name that `base` describes, with `settings` on top of it: keys with their
    /// values as TOML; one without a value is taken away. With `connect` nobody starts servers.
    ///
    /// # Errors
    /// What is no TOML.
    pub fn made_of(name: &str, base: &str, settings: &[(String, String)]) -> Result<Self, String> {
        let base: Table = base.parse().map_err(|error| format!("its type: {error}"))?;
        let mut keys = with(base, settings)?;
        if keys.contains_key("connect") {
            let of_servers = ["server", "env", "cwd", "pull_monitorable"];
            keys.retain(|key, _| !of_servers.contains(&key));
        }
        Ok(Self::new(Kind::Group, name, keys))
    }

    /// What it is about.
    #[must_use]
    pub fn kind(&self) -> Kind {
        let is_outside = || self.text.parse().is_ok_and(|root: Table| root.contains_key("outside"));
        // Most are groups, and there may be many.
        match self.text.contains("outside") && is_outside() {
            true => Kind::Outside,
            false => Kind::Group,
        }
    }

    /// Its name, with what it is.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.kind().text(), self.name)
    }

    /// Whether the replication manager has made the group.
    #[must_use]
    pub fn is_of_manager(&self) -> bool {
        self.text.contains("ft_group") && self.keys().contains_key("ft_group")
    }

    /// The same with what a service has written into the definition that runs.
    pub(crate) fn with_note_of(&self, running: &Self) -> Self {
        if !running.text.contains("note") {
            return self.clone();
        }
        let mut keys = self.keys();
        if let Some(note) = running.keys().remove("note") {
            keys.insert("note".to_owned(), note);
        }
        Self::new(Kind::Group, &self.name, keys)
    }

    /// The same without what a service has written into it.
    #[must_use]
    pub fn without_note(&self) -> Self {
        let mut keys = self.keys();
        match keys.remove("note") {
            Some(_) => Self::new(Kind::Group, &self.name, keys),
            None => self.clone(),
        }
    }

    /// Its keys as TOML.
    #[must_use]
    pub fn keys_toml(&self) -> String {
        self.keys().to_string()
    }

    /// The keys with their values, each as it stands in the text, sorted; those of tables are
    /// apart, such as `env.PATH`.
    #[must_use]
    pub fn entries(&self) -> Vec<(String, String)> {
        let mut entries = Vec::new();
        list("", &self.keys(), &mut entries);
        entries
    }

    /// The groups, and servers outside, that it calls.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        // Most call nobody, and there may be many.
        if !self.text.contains("calls") {
            return Vec::new();
        }
        let keys = self.keys();
        let list = keys.get("calls").and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Its table; an empty one if the text is none.
    pub(crate) fn keys(&self) -> Table {
        let mut root: Table = self.text.parse().unwrap_or_default();
        let mut named = |kind: Kind| match root.remove(kind.table()) {
            Some(Value::Table(mut named)) => named.remove(&self.name),
            _ => None,
        };
        match named(Kind::Group).or_else(|| named(Kind::Outside)) {
            Some(Value::Table(keys)) => keys,
            _ => Table::new(),
        }
    }
}

/// `keys` with `settings` on top: keys with their values as TOML; one without a value is taken
/// away.
fn with(mut keys: Table, settings: &[(String, String)]) -> Result<Table, String> {
    for (key, value) in settings {
        if value.is_empty() {
            keys.remove(key);
            continue;
        }
        let said: Table =
            format!("x = {value}").parse().map_err(|error| format!("{key}: {error}"))?;
        match said.into_iter().next() {
            Some((_, value)) => keys.insert(key.clone(), value),
            None => keys.remove(key),
        };
    }
    Ok(keys)
}

/// A table as the text of its keys.
pub(crate) fn keys_text(table: &DeTable<'_>) -> String {
    plain(table).to_string()
}

fn list(before: &str, keys: &Table, entries: &mut Vec<(String, String)>) {
    for (key, value) in keys {
        let key = format!("{before}{key}");
        match value {
            Value::Table(inner) if !inner.is_empty() => list(&format!("{key}."), inner, entries),
            value => entries.push((key, value.to_string())),
        }
    }
}

fn plain(table: &DeTable<'_>) -> Table {
    let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let key: &std::borrow::Cow<'_, str> = key.get_ref();
        (key.to_string(), plain_value(value.get_ref()))
    };
    table.iter().map(entry).collect()
}

/// What no right group has, such as a number that does not fit, is written down as a text.
fn plain_value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::String(digits.as_str().to_owned()),
        },
        DeValue::Float(number) => Value::String(number.as_str().to_owned()),
        DeValue::Boolean(boolean) => Value::Boolean(*boolean),
        DeValue::Datetime(date) => Value::String(date.to_string()),
        DeValue::Array(list) => {
            Value::Array(list.iter().map(|value| plain_value(value.get_ref())).collect())
        }
        DeValue::Table(table) => Value::Table(plain(table)),
    }
}
