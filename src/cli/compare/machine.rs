//! Where and when was it measured? What is not told here is left out.

use std::time::{SystemTime, UNIX_EPOCH};

/// `2026-11-16 07:41 UTC`
pub(crate) fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// Year, month and day, given the days since 1970. Years begin in March here, so that the leap day comes
/// last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (date, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    (era * 400 + year + u64::from(month <= 2), month, date)
}

/// Cores, memory, processor, system.
pub(crate) fn description() -> String {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut parts = vec![format!("{cores} cores")];
    if let Some(kb) =
        field("/proc/meminfo", "MemTotal").and_then(|f| f.split(' ').next()?.parse::<u64>().ok())
    {
        parts.push(format!("{:.0} GiB of memory", kb as f64 / f64::from(1 << 20)));
    }
    parts.extend(field("/proc/cpuinfo", "model name"));
    parts.push(std::env::consts::OS.to_string());
    parts.join(", ")
}

/// The load averages of the last 1, 5 and 15 minutes.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(20_088), (2024, 12, 31));
        assert_eq!(civil(20_773), (2026, 11, 16));
    }
}
