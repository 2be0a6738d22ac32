//! `ceteris pack` and `ceteris unpack`: a snapshot on its way into a Pod's volume. Nobody types them,
//! but the log of a run shows them, and then anybody can.

use std::io::{stdin, stdout};

use super::print;
use crate::cli::ParcelArgs;
use crate::failure::{EXIT_OK, Ended};

/// Writes a directory to standard output.
pub fn pack(args: &ParcelArgs) -> Ended {
    place::pack(&args.directory, &mut stdout().lock())?;
    Ok(EXIT_OK)
}

/// Makes a directory of standard input and prints the content hash of what is on disk.
pub fn unpack(args: &ParcelArgs) -> Ended {
    let hash = place::unpack(&mut stdin().lock(), &args.directory)?;
    print(&format!("{hash}\n"))?;
    Ok(EXIT_OK)
}
