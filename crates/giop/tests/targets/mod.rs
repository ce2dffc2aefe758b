//! What is fuzzed: for each decoder a function that takes any octets and asserts what has to hold
//! for them. Shared by the fuzzer (`fuzz/`) and the smoke test beside it.

#![allow(
    dead_code,
    reason = "the fuzzer runs one by its name, the smoke test goes through the list"
)]

mod cdr;
mod message;
mod reference;

/// A decoder under test.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Decodes, encodes again, and asserts that both agree.
    pub(crate) run: fn(&[u8]),
    /// Only decodes, so that what that costs can be measured.
    pub(crate) decode: fn(&[u8]),
}

pub(crate) const TARGETS: [Target; 9] = [
    Target { name: "framer", run: message::framer, decode: message::decode_stream },
    Target { name: "message", run: message::message, decode: message::decode_message },
    Target { name: "rewrite", run: message::rewrite, decode: message::decode_message },
    Target { name: "fragment", run: message::fragment, decode: message::decode_message },
    Target { name: "describe", run: message::describe, decode: message::decode_description },
    Target { name: "reference", run: reference::binary, decode: reference::decode_binary },
    Target { name: "reference_text", run: reference::text, decode: reference::decode_text },
    Target { name: "contexts", run: cdr::contexts, decode: cdr::decode_contexts },
    Target { name: "cdr", run: cdr::values, decode: cdr::decode_values },
];

/// Runs the target of a name; for the fuzzer's binaries.
pub(crate) fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    (target.run)(input);
}
