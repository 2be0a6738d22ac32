//! What a person reads: terminal text, JSON, CSV and a self-contained HTML page.
//!
//! Made from a result file alone; nothing is measured or judged here.

mod caveats;
mod csv;
mod html;
mod json;
mod published;
mod text;

pub use csv::csv;
pub use html::html;
pub use json::show;
pub use text::text;

/// Result of this crate's functions: only the result file can fail.
pub type Result<T> = std::result::Result<T, store::StoreError>;
