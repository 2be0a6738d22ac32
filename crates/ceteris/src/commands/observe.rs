//! `ceteris observe`: the observer inside of a guest, until whoever asks hangs up.

use std::fs::File;

use crate::cli::ObserveArgs;
use crate::failure::{EXIT_OK, Ended, Failure};

/// Answers requests, a JSON line each.
pub fn observe(args: ObserveArgs) -> Ended {
    let served = match &args.port {
        None => observe::serve(std::io::stdin().lock(), std::io::stdout().lock()),
        Some(path) => {
            let opened = File::options().read(true).write(true).open(path);
            let port = opened.map_err(|error| {
                Failure::new(format!("cannot open the port {}: {error}", path.display()))
            })?;
            observe::serve(&port, &port)
        }
    };
    served.map_err(|error| Failure::new(format!("the port failed: {error}")))?;
    Ok(EXIT_OK)
}
