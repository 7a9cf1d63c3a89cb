//! Ctrl-C: the running search ends early and tells what it knows.

use crate::query::Limits;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(unix)]
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, signal_hook::consts::SIGHUP];
#[cfg(not(unix))]
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// What the process ends with when nobody wants to wait for what it knows.
const IMPATIENT: i32 = 130;

/// Ctrl-C ends the running searches, which then tell what they know; a second one ends the process.
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub(crate) fn new() -> Interrupt {
        let cancelled = Arc::new(AtomicBool::new(false));
        for signal in SIGNALS {
            // Handlers run in this order, so the first signal is not taken for a second one. Without them
            // Ctrl-C still ends the process, only less politely.
            let _ = flag::register_conditional_shutdown(signal, IMPATIENT, cancelled.clone())
                .and_then(|_| flag::register(signal, cancelled.clone()));
        }
        Interrupt(cancelled)
    }

    pub(crate) fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// From now on, Ctrl-C is for these too. One that has come already is not forgotten.
    pub(crate) fn watch(&self, limits: Limits) -> Arc<Limits> {
        Arc::new(Limits { cancelled: self.0.clone(), ..limits })
    }
}
