//! Names as text (Naming Service §2.4, §2.5): `a/b.kind/c`, and `corbaname:` references.
//!
//! Invariants: what is written is read as the same; text that could be read in two ways is refused.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use quorba_corba::giop::corbaloc;
use quorba_idl::cos_naming::{Name, NameComponent};

/// Why a text is no name, or a name none that has a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidName;

/// Why there is no URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UrlFault {
    Address,
    Name,
}

/// The text of a name.
///
/// # Errors
/// Of a name without a component.
pub fn to_string(name: &Name) -> Result<String, InvalidName> {
    if name.is_empty() {
        return Err(InvalidName);
    }
    let mut text = String::new();
    for (index, component) in name.iter().enumerate() {
        if index > 0 {
            text.push('/');
        }
        escape(&component.id, &mut text);
        // A point alone is the component of which both are empty.
        if !component.kind.is_empty() || component.id.is_empty() {
            text.push('.');
            escape(&component.kind, &mut text);
        }
    }
    Ok(text)
}

fn escape(part: &str, text: &mut String) {
    for char in part.chars() {
        if matches!(char, '/' | '.' | '\\') {
            text.push('\\');
        }
        text.push(char);
    }
}

/// The name that a text says.
///
/// # Errors
/// If it says none.
pub fn to_name(text: &str) -> Result<Name, InvalidName> {
    let mut name = Vec::new();
    let mut chars = text.chars();
    loop {
        let (component, is_last) = component(&mut chars)?;
        name.push(component);
        if is_last {
            return Ok(name);
        }
    }
}

/// Reads up to a slash or to the end; whether it was the end.
fn component(chars: &mut core::str::Chars<'_>) -> Result<(NameComponent, bool), InvalidName> {
    let (mut id, mut kind) = (String::new(), String::new());
    let mut has_kind = false;
    let is_last = loop {
        let part = if has_kind { &mut kind } else { &mut id };
        match chars.next() {
            None => break true,
            Some('/') => break false,
            Some('.') if has_kind => return Err(InvalidName),
            Some('.') => has_kind = true,
            Some('\\') => match chars.next() {
                Some(char @ ('/' | '.' | '\\')) => part.push(char),
                _ => return Err(InvalidName),
            },
            Some(char) => part.push(char),
        }
    };
    let is_nothing = id.is_empty() && !has_kind;
    // A point at the end says nothing (§2.4).
    let ends_with_point = has_kind && kind.is_empty() && !id.is_empty();
    if is_nothing || ends_with_point {
        return Err(InvalidName);
    }
    Ok((NameComponent { id, kind }, is_last))
}

/// The `corbaname:` of a name at an address, such as `:host:2809` (§2.5.3).
pub(crate) fn to_url(address: &str, text: &str) -> Result<String, UrlFault> {
    if !text.is_empty() {
        to_name(text).map_err(|_| UrlFault::Name)?;
    }
    let mut url = String::from("corbaloc:");
    url.push_str(address);
    if !address.contains('/') {
        url.push_str("/NameService");
    }
    if address.is_empty() || address.contains('#') || corbaloc::parse(&url).is_err() {
        return Err(UrlFault::Address);
    }
    let mut url = String::from("corbaname:");
    url.push_str(address);
    url.push('#');
    for octet in text.bytes() {
        // What RFC 2396 lets stand in a fragment, as §2.5.3 has it.
        if octet.is_ascii_alphanumeric() || b";/:?@&=+$,-_.!~*'()".contains(&octet) {
            url.push(char::from(octet));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(url, "%{octet:02x}");
        }
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn component(id: &str, kind: &str) -> NameComponent {
        NameComponent { id: id.into(), kind: kind.into() }
    }

    #[test]
    fn names_are_written_and_read_as_the_same() {
        let cases = [
            (vec![component("a", "")], "a"),
            (vec![component("a", "b")], "a.b"),
            (vec![component("", "b")], ".b"),
            (vec![component("", "")], "."),
            (vec![component("a", ""), component("", ""), component("c", "d")], "a/./c.d"),
            (vec![component("a/b", "c.d"), component("\\", "")], "a\\/b.c\\.d/\\\\"),
            (vec![component("na\u{ef}ve \u{20ac}", "")], "na\u{ef}ve \u{20ac}"),
        ];
        for (name, text) in cases {
            assert_eq!(to_string(&name).as_deref(), Ok(text));
            assert_eq!(to_name(text), Ok(name));
        }
    }

    #[test]
    fn text_that_is_no_name_is_refused() {
        for text in ["", "/", "a/", "/a", "a//b", "a.", "a.b.c", "..", "a\\b", "a\\", "a./b"] {
            assert_eq!(to_name(text), Err(InvalidName), "{text}");
        }
        assert_eq!(to_string(&vec![]), Err(InvalidName));
    }

    #[test]
    fn urls_are_escaped() {
        let url = |address, text| to_url(address, text);
        assert_eq!(url(":a:2809", "x/y.z").as_deref(), Ok("corbaname::a:2809#x/y.z"));
        assert_eq!(url("rir:", "x").as_deref(), Ok("corbaname:rir:#x"));
        let two = "iiop:1.2@a:1,:b:2/Key";
        assert_eq!(
            url(two, "a b\\.c").as_deref(),
            Ok("corbaname:iiop:1.2@a:1,:b:2/Key#a%20b%5c.c")
        );
        assert_eq!(url(":a", "").as_deref(), Ok("corbaname::a#"));
        for address in ["", "a b", "http://x", ":a:99999", ":a#b"] {
            assert_eq!(url(address, "x"), Err(UrlFault::Address), "{address}");
        }
        assert_eq!(url(":a", "x//y"), Err(UrlFault::Name));
    }
}
