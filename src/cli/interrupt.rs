//! Ctrl-C: the running search ends early and tells what it knows.

use crate::verdict::Limits;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// Ctrl-C ends the running search, which then tells what it knows; a second one ends the process.
pub struct Interrupt(Arc<Mutex<Arc<Limits>>>);

impl Interrupt {
    pub fn new() -> Interrupt {
        let current = Arc::new(Mutex::new(Arc::new(Limits::default())));
        let watched = current.clone();
        // Without a handler Ctrl-C still ends the process, only less politely.
        let _ = ctrlc::set_handler(move || {
            let limits = watched.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if limits.cancelled.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
        Interrupt(current)
    }

    /// From now on, Ctrl-C is for these. One that has come already is not forgotten.
    pub fn watch(&self, limits: Limits) -> Arc<Limits> {
        let limits = Arc::new(limits);
        let mut current = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        limits.cancelled.store(current.cancelled.load(Ordering::Relaxed), Ordering::Relaxed);
        *current = limits.clone();
        limits
    }
}
