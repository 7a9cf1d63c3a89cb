//! Words for numbers: times, sizes, parameters; and how much memory there is.

use std::io::Read;
use std::time::Duration;

/// Files under /proc do not tell their size; most fit into this.
const PROC_BYTES: usize = 8 << 10;

/// `60s`, `500ms`, `2m`, `1h`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let scale = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time; there are ms, s, m and h")),
    };
    let number: f64 = number.parse().map_err(|_| "expected a time such as 60s or 500ms".to_string())?;
    Duration::try_from_secs_f64(number * scale).map_err(|e| e.to_string())
}

/// `4GiB`, `512MiB`, `64M`; a bare number is bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let scale: f64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024f64.powi(2),
        "g" | "gib" => 1024f64.powi(3),
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        _ => return Err(format!("`{unit}` is no unit of size; there are KiB, MiB, GiB, KB, MB and GB")),
    };
    let number: f64 = number.parse().map_err(|_| "expected a size such as 4GiB or 512MiB".to_string())?;
    match number * scale {
        bytes if bytes >= 1.0 && bytes < u64::MAX as f64 => Ok(bytes as u64),
        _ => Err("a size must be at least one byte".to_string()),
    }
}

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    (text[..end].trim(), text[end..].trim())
}

/// `N=5`
pub(crate) fn define(text: &str) -> Result<(String, i64), String> {
    let (name, value) = definition(text)?;
    let value = value.parse().map_err(|_| format!("`{value}` is not a 64-bit integer"))?;
    Ok((name, value))
}

/// `N=5`, or any text behind the name.
pub(crate) fn definition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, for example N=5")?;
    match name.trim() {
        "" => Err("expected NAME=VALUE, for example N=5".to_string()),
        name => Ok((name.to_string(), value.trim().to_string())),
    }
}

pub(crate) fn workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=256) => Ok(n),
        _ => Err("expected a number from 1 to 256".to_string()),
    }
}

/// What to stay below if the user does not say: most of the memory that is free now.
pub(crate) fn default_memory() -> Option<u64> {
    let free = field("/proc/meminfo", "MemAvailable:").map(|kb| kb << 10);
    let allowed = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let allowed = allowed.and_then(|text| text.trim().parse().ok());
    let most = free.into_iter().chain(allowed).min()?;
    Some(most / 10 * 9)
}

/// The most memory that the process has used so far, in KiB.
pub(crate) fn peak_kb() -> Option<u64> {
    field("/proc/self/status", "VmHWM:")
}

fn field(file: &str, name: &str) -> Option<u64> {
    let mut text = String::with_capacity(PROC_BYTES);
    std::fs::File::open(file).ok()?.read_to_string(&mut text).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert!(duration("5 parsecs").is_err());
        assert!(duration("-1s").is_err());
        assert!(duration("").is_err());
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("4GiB"), Ok(4 << 30));
        assert_eq!(size("1.5 MiB"), Ok(3 << 19));
        assert_eq!(size("10MB"), Ok(10_000_000));
        assert_eq!(size("123"), Ok(123));
        assert!(size("0").is_err());
        assert!(size("4 GiBs").is_err());
        assert!(size("nan").is_err());
    }

    #[test]
    fn parameters_are_named_integers() {
        assert_eq!(define("N=5"), Ok(("N".to_string(), 5)));
        assert_eq!(define("N = -5"), Ok(("N".to_string(), -5)));
        assert!(define("N").is_err());
        assert!(define("=5").is_err());
        assert!(define("N=five").is_err());
    }
}
