//! Times and sizes in words for people.

use std::time::Duration;

/// A time in its two largest units: `3d 04h`, `11m 05s`, `12s`, `340ms`.
#[must_use]
pub fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes, seconds) {
        (0, 0, 0, 0) => format!("{}ms", time.as_millis()),
        (0, 0, 0, _) => format!("{seconds}s"),
        (0, 0, _, _) => format!("{minutes}m {:02}s", seconds % 60),
        (0, _, _, _) => format!("{hours}h {minutes:02}m"),
        _ => format!("{days}d {hours:02}h"),
    }
}

/// A size: `12 kB`, `38.1 MB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_show_two_units() {
        let age = |seconds| age(Duration::from_secs(seconds));
        assert_eq!(age(12), "12s");
        assert_eq!(age(665), "11m 05s");
        assert_eq!(age(7_500), "2h 05m");
        assert_eq!(age(273_600), "3d 04h");
        assert_eq!(super::age(Duration::from_millis(340)), "340ms");
    }

    #[test]
    fn sizes_are_rounded() {
        assert_eq!([999, 12_345, 38_100_000].map(size), ["999 B", "12 kB", "38.1 MB"]);
    }
}
