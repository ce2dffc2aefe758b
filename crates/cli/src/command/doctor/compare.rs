//! Two answers to one request, octet by octet, and what their difference looks like.
//!
//! What it is not: a proof. Without the IDL nobody knows which octets are padding, or a time; what
//! is said of causes is what the octets look like.
//!
//! Invariant: equal answers have no difference, and any other two have one.

use quorba_giop::{Body, Endian, Message, padding};
use serde::Serialize;

use super::causes::{self, Cause, Scene};
use super::replay::Answer;

/// Octets between two padded values are at most so many (GIOP §15.3.1), before values of 4.
const WORD_BYTES: usize = 4;

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Only octets that stand before the results to align them.
    Padding,
    /// Only octets that stand where CDR may have padding: such as are uninitialised in some ORBs.
    PerhapsPadding,
    /// Something that a client sees.
    Content,
}

/// Where two answers differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    pub kind: Kind,
    /// The first octet that differs, from the start of the message.
    pub offset: usize,
    /// Octets that differ, where both have some.
    pub octets: usize,
    /// `compare_replies = "ignore-padding"` takes both for the same.
    pub ignorable: bool,
    /// What it looks like; the most likely first.
    pub causes: Vec<Cause>,
}

/// Where the answers differ; `None` if they are equal.
pub fn compare(a: &Answer, b: &Answer, scene: &Scene) -> Option<Difference> {
    match (a, b) {
        (Answer::Reply(a), Answer::Reply(b)) => compare_replies(a, b, scene),
        _ if a == b => None,
        _ => {
            let causes = vec![Cause::Crash];
            Some(Difference { kind: Kind::Content, offset: 0, octets: 0, ignorable: false, causes })
        }
    }
}

fn compare_replies(a: &Message, b: &Message, scene: &Scene) -> Option<Difference> {
    let spans = spans(a.bytes(), b.bytes());
    let (first, _) = *spans.first()?;
    let octets = spans.iter().map(|(begin, end)| end - begin).sum();
    let kind = if a.bytes().len() == b.bytes().len() { kind(a, b, &spans) } else { Kind::Content };
    let causes = match kind {
        Kind::Padding | Kind::PerhapsPadding => vec![Cause::Padding],
        Kind::Content => {
            let mut found = causes::of(a.bytes(), b.bytes(), &spans, endian(a), scene);
            if let Some(cause) = causes::object_key(a, b) {
                found.retain(|one| *one != cause);
                found.insert(0, cause);
            }
            found
        }
    };
    let ignorable = is_ignorable(a, b);
    Some(Difference { kind, offset: first, octets, ignorable, causes })
}

/// Where two states differ.
pub fn compare_states(a: &[u8], b: &[u8], scene: &Scene) -> Option<Difference> {
    let spans = spans(a, b);
    let (first, _) = *spans.first()?;
    let octets = spans.iter().map(|(begin, end)| end - begin).sum();
    let causes = causes::of(a, b, &spans, Endian::Little, scene);
    Some(Difference { kind: Kind::Content, offset: first, octets, ignorable: false, causes })
}

/// Whether nodes that compare replies see no difference: the status and the results are the same,
/// but for what looks like padding behind texts.
fn is_ignorable(a: &Message, b: &Message) -> bool {
    let (Ok(Body::Reply(one)), Ok(Body::Reply(other))) = (a.parse(), b.parse()) else {
        return false;
    };
    let results = |message: &Message, reply: &quorba_giop::Reply<'_>| {
        padding::cleared(message.bytes(), reply.body_offset(), message.endian())
    };
    one.status() == other.status() && results(a, &one) == results(b, &other)
}

fn endian(message: &Message) -> Endian {
    message.endian()
}

/// Runs of octets that differ; what only one has is one that begins at the end of the other.
fn spans(a: &[u8], b: &[u8]) -> Vec<(usize, usize)> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (at, _) in a.iter().zip(b).enumerate().filter(|(_, (a, b))| a != b) {
        match spans.last_mut() {
            Some((_, end)) if *end == at => *end = at + 1,
            _ => spans.push((at, at + 1)),
        }
    }
    let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
    if short != long {
        spans.push((short, long));
    }
    spans
}

fn kind(a: &Message, b: &Message, spans: &[(usize, usize)]) -> Kind {
    let (Ok(Body::Reply(one)), Ok(Body::Reply(other))) = (a.parse(), b.parse()) else {
        return Kind::Content;
    };
    if one.status() != other.status() || one.body_offset() != other.body_offset() {
        return Kind::Content;
    }
    // The last octet of the header is that of its last context, or of their number.
    let body = one.body_offset();
    let contexts: Vec<_> = one.contexts().collect();
    let is_before_body =
        |end: usize| end <= body && contexts == other.contexts().collect::<Vec<_>>();
    if spans.iter().all(|(_, end)| is_before_body(*end)) {
        return Kind::Padding;
    }
    let may_be = |(begin, end): &(usize, usize)| {
        let aligns_body = is_before_body(*end);
        let aligns_value =
            *begin >= body && begin % WORD_BYTES != 0 && *end <= begin.next_multiple_of(WORD_BYTES);
        aligns_body || aligns_value
    };
    if spans.iter().all(may_be) { Kind::PerhapsPadding } else { Kind::Content }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_giop::{ReplyStatus, Version, build};

    const SCENE: Scene = Scene { ports: [40_001, 40_002], now_s: 1_790_000_000 };

    fn reply(octets: &[u8]) -> Answer {
        let (version, status) = (Version::V1_2, ReplyStatus::NoException);
        let write = |cdr: &mut quorba_giop::cdr::Writer| cdr.write_raw(octets);
        Answer::Reply(build::reply(version, Endian::Little, 7, status, write))
    }

    fn differ(a: &[u8], b: &[u8]) -> Difference {
        compare(&reply(a), &reply(b), &SCENE).expect("they differ")
    }

    #[test]
    fn equal_answers_do_not_differ() {
        assert_eq!(compare(&reply(b"alike"), &reply(b"alike"), &SCENE), None);
        assert_eq!(compare(&Answer::Ended, &Answer::Ended, &SCENE), None);
    }

    #[test]
    fn octets_between_a_short_value_and_a_long_one_may_be_padding() {
        let difference = differ(&[1, 9, 8, 7, 5, 0, 0, 0], &[1, 0, 0, 0, 5, 0, 0, 0]);
        assert_eq!((difference.kind, difference.octets), (Kind::PerhapsPadding, 3));
        assert_eq!(difference.offset, 24 + 1);
    }

    #[test]
    fn padding_behind_a_text_is_what_the_domain_file_may_ignore() {
        let text = |fill| [2, 0, 0, 0, b'a', 0, fill, fill, 5, 0, 0, 0];
        let difference = differ(&text(9), &text(0));
        assert!(difference.ignorable && difference.kind == Kind::PerhapsPadding);
        assert!(!differ(&[1, 9, 8, 7, 5, 0, 0, 0], &[1, 0, 0, 0, 5, 0, 0, 0]).ignorable);
    }

    #[test]
    fn keys_of_references_are_named() {
        let profile = |key: &str| quorba_giop::ior::IiopProfile {
            version: Version::V1_2,
            host: "h".into(),
            port: 1,
            object_key: key.into(),
            components: Vec::new(),
        };
        let reference = |key: &str| {
            let mut out = quorba_giop::cdr::Writer::new(Endian::Little);
            let profiles = vec![profile(key).encode(Endian::Little)];
            quorba_giop::Ior { type_id: b"IDL:T:1.0".to_vec(), profiles }.write(&mut out);
            out.finish()
        };
        let difference = differ(&reference("POA/1234"), &reference("POA/9876"));
        assert_eq!(difference.causes[0], Cause::ObjectKey);
        let longer = differ(&reference("POA/1234"), &reference("POA/1234567"));
        assert_eq!(longer.causes[0], Cause::ObjectKey);
    }

    #[test]
    fn a_value_that_differs_is_no_padding() {
        assert_eq!(differ(&[1, 0, 0, 0], &[2, 0, 0, 0]).kind, Kind::Content);
        assert_eq!(differ(b"one and a half", b"one").kind, Kind::Content);
    }

    #[test]
    fn a_server_that_ends_in_one_run_only_is_told() {
        let difference = compare(&reply(b"x"), &Answer::Ended, &SCENE).expect("they differ");
        assert_eq!(difference.causes, [Cause::Crash]);
    }
}
