//! `ceteris packages`

use place::{Cache, CommandLog};

use super::{json, print};
use crate::cli::{PackagesAction, PackagesArgs, PlanFormat};
use crate::failure::{EXIT_OK, Ended};
use crate::talk::Talk;

/// Lists or fetches server packages.
pub fn packages(args: PackagesArgs) -> Ended {
    let cache = Cache::open()?;
    match args.action.unwrap_or(PackagesAction::List { format: PlanFormat::Text }) {
        PackagesAction::List { format: PlanFormat::Json } => {
            print(&json(&place::list_packages(&cache))?)?;
        }
        PackagesAction::List { format: PlanFormat::Text } => {
            let mut text = format!("{:<18} {:<12} {:<9} {}\n", "package", "version", "here", "");
            for listing in place::list_packages(&cache) {
                let here = match (listing.present, listing.usable) {
                    (true, _) => "yes",
                    (false, true) => "can fetch",
                    (false, false) => "no",
                };
                text.push_str(&format!(
                    "{:<18} {:<12} {here:<9} {}\n",
                    listing.name, listing.version, listing.why
                ));
            }
            text.push_str(
                "\na study may also name a directory or an archive that holds a server\n",
            );
            print(&text)?;
        }
        PackagesAction::Fetch { name } => {
            let talk = Talk::new(false);
            let package = place::resolve_package(&name, &cache, &CommandLog::default(), &talk)?;
            talk.clear();
            print(&format!(
                "{}: {:?} {}.{}.{} in {}, hash {}\n",
                package.name,
                package.flavour,
                package.version.major,
                package.version.minor,
                package.version.patch,
                package.base_dir.display(),
                package.hash
            ))?;
        }
    }
    Ok(EXIT_OK)
}
