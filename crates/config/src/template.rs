//! Texts with placeholders: `-ORBendPoint giop:tcp:127.0.0.1:{port}`.
//!
//! Invariant: a [`Template`] holds only placeholders that exist, so filling one cannot fail.
//! `{{` and `}}` stand for the braces themselves.

use std::fmt;

/// What a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// The private port on which the server shall listen, chosen by the node.
    Port,
    /// The private socket file on which the server shall listen, chosen by the node.
    Socket,
    /// The node's address as others see it.
    Host,
    /// The gateway's port on this node.
    Listen,
    /// The node's name.
    Node,
    /// The group's name.
    Group,
    /// The program of the node itself.
    Quorba,
    /// A reference to the node's news, for services.
    News,
    /// A reference to who leads the node's groups, for services.
    Leaders,
    /// The node's state directory.
    StateDir,
    /// A reference to the group's ordered time on this node.
    Time,
    /// The group's gateways on all nodes, the same at every member: `h1:p1,h2:p2`.
    Gateways,
    /// The same as omniORB publishes addresses: `giop:tcp:h1:p1,giop:tcp:h2:p2`.
    GatewaysOfOmniorb,
}

/// Every placeholder with its name.
pub const PLACEHOLDERS: [(&str, Placeholder); 13] = [
    ("port", Placeholder::Port),
    ("socket", Placeholder::Socket),
    ("host", Placeholder::Host),
    ("listen", Placeholder::Listen),
    ("node", Placeholder::Node),
    ("group", Placeholder::Group),
    ("quorba", Placeholder::Quorba),
    ("news", Placeholder::News),
    ("leaders", Placeholder::Leaders),
    ("state_dir", Placeholder::StateDir),
    ("time", Placeholder::Time),
    ("gateways", Placeholder::Gateways),
    ("gateways.omniorb", Placeholder::GatewaysOfOmniorb),
];

/// `{call.NAME}` stands for `host:port`, where the server calls the group of that name.
const CALL: &str = "call.";
/// `{url.NAME}` stands for a corbaloc URL, with which the server calls the one outside.
const URL: &str = "url.";

/// A text with placeholders, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Placeholder),
    /// Where the group of this name is called.
    Call(String),
    /// The same as a reference, where the object is known.
    Url(String),
}

/// What the placeholders stand for at one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values<'a> {
    /// The private port on which the server shall listen.
    pub port: u16,
    /// The private socket file on which the server shall listen.
    pub socket: &'a str,
    /// The node's address as others see it.
    pub host: &'a str,
    /// The gateway's port on this node.
    pub listen: u16,
    /// The node's name.
    pub node: &'a str,
    /// The group's name.
    pub group: &'a str,
    /// The program of the node itself.
    pub quorba: &'a str,
    /// A reference to the node's news.
    pub news: &'a str,
    /// A reference to who leads its groups.
    pub leaders: &'a str,
    /// The node's state directory.
    pub state_dir: &'a str,
    /// A reference to the group's ordered time, if something of it [`Template::uses`] that.
    pub time: &'a str,
    /// The group's gateways, as `host:port`, in the order of the nodes.
    pub gateways: &'a [String],
    /// By name of a group: the port of this host on which the server calls it.
    pub calls: &'a [(String, u16)],
    /// By name of a server outside: its object, at that port.
    pub urls: &'a [(String, String)],
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// A placeholder of this name does not exist.
    Unknown(String),
    /// A brace without its partner.
    Unbalanced,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// [`TemplateError`] for the first placeholder that does not exist or is not closed.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            match char {
                '{' | '}' if chars.peek() == Some(&char) => {
                    chars.next();
                    plain.push(char);
                }
                '{' => {
                    let name: String = chars.by_ref().take_while(|&char| char != '}').collect();
                    // take_while swallowed the closing brace; if there was none, the text ended
                    // and its last character is not a brace.
                    if chars.peek().is_none() && !text.ends_with('}') {
                        return Err(TemplateError::Unbalanced);
                    }
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(part(name)?);
                }
                '}' => return Err(TemplateError::Unbalanced),
                _ => plain.push(char),
            }
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self(parts))
    }

    /// Whether it is the path of a file, from a folder that is not said.
    #[must_use]
    pub fn is_relative_path(&self) -> bool {
        match self.0.first() {
            Some(Part::Text(first)) => {
                let mut texts = self.0.iter().filter_map(|part| match part {
                    Part::Text(text) => Some(text),
                    Part::Value(_) | Part::Call(_) | Part::Url(_) => None,
                });
                !first.starts_with('/') && texts.any(|text| text.contains('/'))
            }
            // A folder stands in front, such as {state_dir}.
            Some(Part::Value(_) | Part::Call(_) | Part::Url(_)) | None => false,
        }
    }

    /// The same path below a folder.
    #[must_use]
    pub fn below(&self, folder: &str) -> Self {
        let mut parts = self.0.clone();
        let front = match folder {
            "" => "./".to_owned(),
            folder => format!("{}/", folder.trim_end_matches('/')),
        };
        if let Some(Part::Text(first)) = parts.first_mut() {
            *first = format!("{front}{}", first.trim_start_matches("./"));
        }
        Self(parts)
    }

    /// Whether the placeholder stands in it.
    #[must_use]
    pub fn uses(&self, placeholder: Placeholder) -> bool {
        self.0.contains(&Part::Value(placeholder))
    }

    /// The groups, and servers outside, that it wants to call.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Call(name) | Part::Url(name) => Some(name.as_str()),
            Part::Text(_) | Part::Value(_) => None,
        })
    }

    /// The servers outside whose objects it wants to know.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Url(name) => Some(name.as_str()),
            Part::Text(_) | Part::Value(_) | Part::Call(_) => None,
        })
    }

    /// The text with its placeholders replaced.
    #[must_use]
    pub fn fill(&self, values: &Values<'_>) -> String {
        let mut text = String::new();
        for (index, part) in self.0.iter().enumerate() {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Value(Placeholder::Port) => text.push_str(&values.port.to_string()),
                Part::Value(Placeholder::Socket) => text.push_str(values.socket),
                Part::Value(Placeholder::Host) => {
                    let next = self.0.get(index + 1);
                    let has_port =
                        matches!(next, Some(Part::Text(plain)) if plain.starts_with(':'));
                    text.push_str(&in_address(values.host, has_port));
                }
                Part::Value(Placeholder::Listen) => text.push_str(&values.listen.to_string()),
                Part::Value(Placeholder::Node) => text.push_str(values.node),
                Part::Value(Placeholder::Group) => text.push_str(values.group),
                Part::Value(Placeholder::Quorba) => text.push_str(values.quorba),
                Part::Value(Placeholder::News) => text.push_str(values.news),
                Part::Value(Placeholder::Leaders) => text.push_str(values.leaders),
                Part::Value(Placeholder::StateDir) => text.push_str(values.state_dir),
                Part::Value(Placeholder::Time) => text.push_str(values.time),
                Part::Value(Placeholder::Gateways) => text.push_str(&values.gateways.join(",")),
                Part::Value(Placeholder::GatewaysOfOmniorb) => {
                    let each = values.gateways.iter().map(|gateway| format!("giop:tcp:{gateway}"));
                    text.push_str(&each.collect::<Vec<_>>().join(","));
                }
                Part::Call(group) => {
                    let port = values.calls.iter().find(|(name, _)| name == group);
                    let port = port.map_or(0, |(_, port)| *port);
                    text.push_str(&format!("127.0.0.1:{port}"));
                }
                Part::Url(name) => {
                    let url = values.urls.iter().find(|(known, _)| known == name);
                    text.push_str(url.map_or("", |(_, url)| url));
                }
            }
        }
        text
    }
}

/// An IPv6 address in front of a port stands in brackets (RFC 3986 §3.2.2).
fn in_address(host: &str, has_port: bool) -> String {
    match has_port && host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                Part::Text(plain) => {
                    f.write_str(&plain.replace('{', "{{").replace('}', "}}"))?;
                }
                Part::Value(value) => {
                    let named = PLACEHOLDERS.iter().find(|(_, placeholder)| placeholder == value);
                    write!(f, "{{{}}}", named.map_or("", |(name, _)| name))?;
                }
                Part::Call(group) => write!(f, "{{{CALL}{group}}}")?,
                Part::Url(name) => write!(f, "{{{URL}{name}}}")?,
            }
        }
        Ok(())
    }
}

fn part(name: String) -> Result<Part, TemplateError> {
    if let Some(group) = name.strip_prefix(CALL).filter(|group| !group.is_empty()) {
        return Ok(Part::Call(group.to_owned()));
    }
    if let Some(server) = name.strip_prefix(URL).filter(|server| !server.is_empty()) {
        return Ok(Part::Url(server.to_owned()));
    }
    let found = PLACEHOLDERS.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| Part::Value(*value)).ok_or(TemplateError::Unknown(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls() -> Vec<(String, u16)> {
        vec![("bank".to_owned(), 6100)]
    }

    const VALUES: Values<'_> = Values {
        port: 6001,
        socket: "/var/lib/quorba/bank.sock",
        host: "10.0.0.1",
        listen: 5000,
        node: "n1",
        group: "bank",
        quorba: "/usr/bin/quorba",
        news: "corbaloc::2",
        leaders: "corbaloc::3",
        state_dir: "/var/lib/quorba",
        time: "corbaloc::1",
        gateways: &[],
        calls: &[],
        urls: &[],
    };

    fn filled(text: &str) -> Result<String, TemplateError> {
        Template::parse(text).map(|template| template.fill(&VALUES))
    }

    #[test]
    fn every_placeholder_is_replaced() {
        let text = "{host}:{listen} 127.0.0.1:{port} {socket} {group}@{node} {state_dir}/x {time} \
                    {quorba}";
        let expected = "10.0.0.1:5000 127.0.0.1:6001 /var/lib/quorba/bank.sock bank@n1 \
                        /var/lib/quorba/x corbaloc::1 /usr/bin/quorba";
        assert_eq!(filled(text).as_deref(), Ok(expected));
        assert_eq!(Template::parse(text).expect("a template").to_string(), text);
    }

    #[test]
    fn gateways_are_the_same_everywhere_and_addresses_of_ipv6_stand_in_brackets() {
        let gateways = ["10.0.0.1:5000".to_owned(), "[fd00::2]:5000".to_owned()];
        let values = Values { host: "fd00::1", gateways: &gateways, ..VALUES };
        let filled = |text: &str| Template::parse(text).expect("a template").fill(&values);
        assert_eq!(filled("{gateways}"), "10.0.0.1:5000,[fd00::2]:5000");
        let published = "giop:tcp:10.0.0.1:5000,giop:tcp:[fd00::2]:5000";
        assert_eq!(filled("{gateways.omniorb}"), published);
        assert_eq!(filled("giop:tcp:{host}:{listen}"), "giop:tcp:[fd00::1]:5000");
        assert_eq!(filled("--host {host} -p {port}"), "--host fd00::1 -p 6001");
    }

    #[test]
    fn a_group_to_call_is_an_address_of_this_host() {
        let text = "corbaloc::{call.bank}/ledger";
        let template = Template::parse(text).expect("a template");
        let values = Values { calls: &calls(), ..VALUES };
        assert_eq!(template.fill(&values), "corbaloc::127.0.0.1:6100/ledger");
        assert_eq!(template.calls().collect::<Vec<_>>(), ["bank"]);
        assert_eq!(template.to_string(), text);
        assert_eq!(filled("{call.}"), Err(TemplateError::Unknown("call.".to_owned())));
    }

    #[test]
    fn doubled_braces_are_braces() {
        assert_eq!(filled("a {{x}} {{{port}}}").as_deref(), Ok("a {x} {6001}"));
    }

    #[test]
    fn wrong_placeholders_are_refused() {
        assert_eq!(filled("{prot}"), Err(TemplateError::Unknown("prot".to_owned())));
        assert_eq!(filled("{}"), Err(TemplateError::Unknown(String::new())));
        for text in ["{port", "port}", "{", "}", "{port}{", "a{b{c"] {
            assert_eq!(filled(text), Err(TemplateError::Unbalanced), "{text}");
        }
    }
}
