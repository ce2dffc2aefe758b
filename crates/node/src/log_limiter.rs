//! A line of the log that would come too often: once a minute, with how often it was left out.

use std::time::{Duration, Instant};

/// How often it is told.
const PERIOD: Duration = Duration::from_secs(60);

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct LogLimiter {
    next: Option<Instant>,
    left_out: u64,
}

impl LogLimiter {
    /// `Some` if it is to be told now: how often it was not since the last time.
    pub(crate) fn tells(&mut self, now: Instant) -> Option<u64> {
        if self.next.is_some_and(|next| now < next) {
            self.left_out += 1;
            return None;
        }
        self.next = Some(now + PERIOD);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_once_a_minute_with_what_was_left_out() {
        let (mut line, start) = (LogLimiter::default(), Instant::now());
        assert_eq!(line.tells(start), Some(0));
        assert_eq!(line.tells(start + PERIOD / 2), None);
        assert_eq!(line.tells(start + PERIOD), Some(1));
    }
}
