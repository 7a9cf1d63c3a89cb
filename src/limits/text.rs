//! Text that is written within limits: every few bytes are a step, and a large text asks before it grows.

use super::{Limit, Limits};
use std::fmt;

/// Bytes that are written in one step.
const STEP: usize = 8;

/// A string to write to. The first limit that is reached ends the writing, with an error that means no more
/// than that.
#[derive(Debug)]
pub struct Text<'l> {
    text: String,
    limits: &'l Limits,
    reached: Option<Limit>,
}

impl<'l> Text<'l> {
    /// What `write` writes, unless it comes to a limit.
    pub fn of(limits: &'l Limits, write: impl FnOnce(&mut Text<'l>) -> fmt::Result) -> Result<String, Limit> {
        let mut text = Text { text: String::new(), limits, reached: None };
        let written = write(&mut text);
        match text.reached {
            Some(limit) => Err(limit),
            None => {
                written.expect("writing to a string fails at limits alone");
                Ok(text.text)
            }
        }
    }

    /// Steps that are no writing.
    #[inline]
    pub fn spend(&mut self, steps: usize) -> fmt::Result {
        self.limits.spend(steps).map_err(|limit| self.stop(limit))
    }

    #[inline]
    fn grow(&mut self, bytes: usize) -> fmt::Result {
        if self.text.capacity() - self.text.len() < bytes {
            let more = bytes.max(self.text.len());
            self.limits.reserve(more).map_err(|limit| self.stop(limit))?;
            self.text.reserve(more);
        }
        Ok(())
    }

    fn stop(&mut self, limit: Limit) -> fmt::Error {
        self.reached.get_or_insert(limit);
        fmt::Error
    }
}

impl fmt::Write for Text<'_> {
    #[inline]
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.spend(1 + part.len() / STEP)?;
        self.grow(part.len())?;
        self.text.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_limit_ends_the_writing() {
        let limits = Limits::default();
        let forever = Text::of(&limits, |text| {
            loop {
                limits.cancelled.store(limits.spent() > 100_000, Ordering::Relaxed);
                write!(text, "{}", 1)?;
            }
        });
        assert_eq!(forever, Err(Limit::Cancelled));
        assert_eq!(Text::of(&Limits::default(), |text| write!(text, "{}", 12)), Ok("12".to_string()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_text_asks_before_it_grows() {
        let limits = Limits { memory: Some(1), ..Limits::default() };
        assert_eq!(Text::of(&limits, |text| text.write_str(&" ".repeat(1 << 20))), Err(Limit::Memory(1)));
    }
}
