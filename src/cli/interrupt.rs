//! Ctrl-C: the running search ends early and tells what it knows.

use crate::verdict::Limits;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

/// Ctrl-C ends the running searches, which then tell what they know; a second one ends the process.
pub struct Interrupt(Arc<Mutex<Running>>);

#[derive(Default)]
struct Running {
    cancelled: bool,
    limits: Vec<Weak<Limits>>,
}

impl Interrupt {
    pub fn new() -> Interrupt {
        let running = Arc::new(Mutex::new(Running::default()));
        let watched = running.clone();
        // Without a handler Ctrl-C still ends the process, only less politely.
        let _ = ctrlc::set_handler(move || {
            let mut running = watched.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if std::mem::replace(&mut running.cancelled, true) {
                std::process::exit(130);
            }
            for limits in running.limits.iter().filter_map(Weak::upgrade) {
                limits.cancelled.store(true, Ordering::Relaxed);
            }
        });
        Interrupt(running)
    }

    /// From now on, Ctrl-C is for these too. One that has come already is not forgotten.
    pub fn watch(&self, limits: Limits) -> Arc<Limits> {
        let limits = Arc::new(limits);
        let mut running = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        limits.cancelled.store(running.cancelled, Ordering::Relaxed);
        running.limits.retain(|old| old.strong_count() > 0);
        running.limits.push(Arc::downgrade(&limits));
        limits
    }
}
