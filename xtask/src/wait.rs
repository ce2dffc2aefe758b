//! Waiting for conditions, with a deadline and with the reason why it has not come true.
//!
//! What it is not: sleeping in the hope that it was long enough.

use std::thread;
use std::time::{Duration, Instant};

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks until `look` has a value. An error says what was still missing at the last look.
pub(crate) fn until<T>(
    what: &str,
    time_max: Duration,
    mut look: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    let began = Instant::now();
    loop {
        match look() {
            Ok(value) => return Ok(value),
            Err(missing) if began.elapsed() >= time_max => {
                let seconds = time_max.as_secs();
                return Err(format!("waited {seconds} s until {what}: {missing}"));
            }
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_comes_at_once_and_the_last_reason_at_the_deadline() {
        assert_eq!(until("it is there", Duration::ZERO, || Ok(7)), Ok(7));
        let mut looks = 0;
        let result = until("it is there", Duration::from_millis(1), || {
            looks += 1;
            Err::<(), _>(format!("look {looks}"))
        });
        let reason = result.expect_err("it never comes");
        assert!(reason.starts_with("waited 0 s until it is there: look "), "{reason}");
    }
}
