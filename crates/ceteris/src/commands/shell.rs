//! `ceteris completions` and `ceteris man`, made from the argument definitions.

use clap::CommandFactory;

use super::print;
use crate::cli::{Cli, CompletionsArgs};
use crate::failure::{EXIT_OK, Ended, Failure};

/// Prints the completions for a shell.
pub fn completions(args: CompletionsArgs) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ceteris", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(EXIT_OK)
}

/// Prints one man page for all commands: the page of `ceteris`, then each command's parts.
pub fn man() -> Ended {
    let cannot = |error: std::io::Error| Failure::new(format!("cannot write the page: {error}"));
    let command = Cli::command();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(cannot)?;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = sub.get_name().to_owned();
        let sub = clap_mangen::Man::new(sub.clone().bin_name(format!("ceteris {name}")));
        page.extend(format!(".SH \"CETERIS {}\"\n", name.to_uppercase()).into_bytes());
        sub.render_description_section(&mut page).map_err(cannot)?;
        sub.render_options_section(&mut page).map_err(cannot)?;
    }
    print(&String::from_utf8_lossy(&page))?;
    Ok(EXIT_OK)
}
