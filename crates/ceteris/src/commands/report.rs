//! `ceteris report`

use store::ResultFile;

use super::{check_page, print, write_file};
use crate::cli::ReportArgs;
use crate::failure::{EXIT_OK, Ended};

/// Writes the HTML page of a result file.
pub fn report(args: ReportArgs) -> Ended {
    let file = ResultFile::open_read_only(&args.result)?;
    let page = args.output.unwrap_or_else(|| args.result.with_extension("html"));
    check_page(&page)?;
    write_file(&page, &report::html(&file)?)?;
    print(&format!("report: {}\n", page.display()))?;
    Ok(EXIT_OK)
}
