//! What happened, twice: as a digest of everything, always, and as text, if somebody reads it.
//!
//! Invariant: the digest covers every event with its time, so two runs with equal digests did the
//! same; writing text or not does not change it.

use crate::rng::finish;
use quorba_base::Instant;
use std::fmt::Write;

/// See the module's text.
pub(crate) struct Transcript {
    digest: u64,
    text: Option<String>,
    /// Datagrams are written out too.
    verbose: bool,
}

impl Transcript {
    pub(crate) fn new(text: bool, verbose: bool) -> Self {
        Self { digest: 0, text: text.then(String::new), verbose }
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn take_text(&mut self) -> Option<String> {
        self.text.take()
    }

    /// Mixes a number into the digest.
    pub(crate) fn mix(&mut self, value: u64) {
        self.digest = finish(self.digest ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }

    /// Mixes bytes into the digest, length first.
    pub(crate) fn mix_bytes(&mut self, bytes: &[u8]) {
        self.mix(bytes.len() as u64);
        // Four words at a time that do not wait for each other.
        let mut lanes = [self.digest, 1, 2, 3];
        let (blocks, rest) = bytes.as_chunks::<32>();
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = stir(*lane, *word);
            }
        }
        let (words, rest) = rest.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = stir(*lane, *word);
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        lanes.into_iter().for_each(|lane| self.mix(lane));
        self.mix(u64::from_le_bytes(last));
    }

    /// A line of the transcript. `line` is called only if somebody reads.
    pub(crate) fn say(&mut self, now: Instant, line: impl FnOnce() -> String) {
        self.mix(now.as_nanos());
        let Some(text) = &mut self.text else { return };
        let micros = now.as_nanos() / 1000;
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let _ = writeln!(text, "{seconds:>4}.{micros:06}  {}", line());
    }

    /// A line that only a verbose transcript has.
    pub(crate) fn whisper(&mut self, now: Instant, line: impl FnOnce() -> String) {
        if self.verbose {
            self.say(now, line);
        } else {
            self.mix(now.as_nanos());
        }
    }
}

fn stir(lane: u64, word: [u8; 8]) -> u64 {
    (lane ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
