//! The worker process: does what one request on standard input asks and tells of it on standard
//! output. A process of its own, so that its CPU is accounted apart and its death loses one run.

pub mod protocol;

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{self, EXIT_FAILED, EXIT_OK, Ended, Failure};
use protocol::{Reply, Request};

/// Serves one request and ends.
pub fn serve() -> Ended {
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| Failure::new(format!("cannot read the request: {error}")))?;
    let request: Request = serde_json::from_str(&line).map_err(|error| {
        // The line may hold a password: say where it is wrong, never what it says.
        Failure::new(format!("not a request: {:?} at column {}", error.classify(), error.column()))
            .hint("the worker is started by `ceteris run`")
    })?;
    drop(line);
    let stop = stop_when_input_closes();
    match answer(request, &stop) {
        Ok(last) => {
            tell(&last);
            Ok(EXIT_OK)
        }
        Err(message) => {
            tell(&Reply::Failed(message));
            Ok(EXIT_FAILED)
        }
    }
}

fn answer(request: Request, stop: &AtomicBool) -> Result<Reply, String> {
    match request {
        Request::Load { workload, target, seed, threads, standing } => {
            let mut on_progress = |progress| tell(&Reply::Loading(progress));
            let load = if standing { workload::load_standing } else { workload::load_private };
            load(&workload, &target, seed, threads, &mut on_progress)
                .map(Reply::Loaded)
                .map_err(|error| with_hint(failure::chain(&error), error.hint()))
        }
        Request::Drive { workload, spec } => {
            let mut on_event = |event| tell(&Reply::Driving(event));
            workload::drive(&workload, &spec, stop, &mut on_event)
                .map(|report| Reply::Driven(Box::new(report)))
                .map_err(|error| with_hint(failure::chain(&error), error.hint()))
        }
    }
}

fn with_hint(why: String, hint: Option<impl AsRef<str>>) -> String {
    match hint {
        Some(hint) => format!("{why} (hint: {})", hint.as_ref()),
        None => why,
    }
}

/// A flag that is raised when the conductor closes our input, as it does to stop us and as its
/// death does too. A load, which looks at no flag, is ended the hard way shortly after.
fn stop_when_input_closes() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    std::thread::spawn(move || {
        let mut rest = String::new();
        while matches!(std::io::stdin().lock().read_line(&mut rest), Ok(read) if read > 0) {
            rest.clear();
        }
        raised.store(true, Ordering::Relaxed);
        std::thread::sleep(std::time::Duration::from_secs(3));
        std::process::exit(i32::from(EXIT_FAILED));
    });
    stop
}

fn tell(reply: &Reply) {
    // A conductor that is gone hears nothing; closing our input ends us then.
    if let Ok(mut line) = serde_json::to_string(reply) {
        line.push('\n');
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }
}
