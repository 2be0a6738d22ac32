//! Ctrl-C and its kin: the first asks the command to stop at the next safe point, the second ends
//! the process at once (servers die with it, `ceteris doctor --clean` removes the rest).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Raised once the person wants to stop.
#[derive(Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on.
    pub fn listen() -> std::io::Result<Interrupt> {
        let raised = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Order matters: the shutdown must see the flag as the *previous* signal left it.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                i32::from(crate::failure::EXIT_INTERRUPTED),
                Arc::clone(&raised),
            )?;
            signal_hook::flag::register(signal, Arc::clone(&raised))?;
        }
        Ok(Interrupt(raised))
    }

    /// The flag itself, for what looks at it on its own.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether to stop.
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
