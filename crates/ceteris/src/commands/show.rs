//! `ceteris show`

use store::ResultFile;

use super::{colour, json, print};
use crate::cli::{ShowArgs, ShowFormat};
use crate::failure::{EXIT_OK, Ended};

/// Prints the answers in a result file.
pub fn show(args: ShowArgs) -> Ended {
    let file = ResultFile::open_read_only(&args.result)?;
    let text = match args.format {
        ShowFormat::Text => report::text(&file, colour())?,
        ShowFormat::Json => json(&report::show(&file)?)?,
        ShowFormat::Csv => report::csv(&file)?,
    };
    print(&text)?;
    Ok(EXIT_OK)
}
