//! The application's own metrics, which prometheus_client keeps in files of its multiprocess mode, as one text.
//!
//! ```text
//!   directory ── bytes of each file ──▶ values ──▶ merge ──▶ text
//! ```
//!
//! Nothing here trusts a file: what is none is counted ([`Merged`]) and left out.

mod directory;
mod merge;
mod text;
mod values;

pub use directory::read_all;
pub use merge::Merged;
pub use values::is_whole;

use super::exposition::Exposition;
use std::path::Path;

/// What the files said when they were read.
#[derive(Debug, Default)]
pub struct Reading {
    text: String,
    open: String,
    pub merged: u64,
    pub broken: u64,
    pub left_out: u64,
}

impl Reading {
    /// Reads all files, which waits for the disk.
    pub fn of(directory: &Path) -> Reading {
        let merged = read_all(directory);
        Reading {
            text: merged.render(Exposition::Text),
            open: merged.render(Exposition::OpenMetrics),
            merged: merged.merged,
            broken: merged.broken,
            left_out: merged.left_out,
        }
    }

    pub fn text(&self, exposition: Exposition) -> &str {
        match exposition {
            Exposition::Text => &self.text,
            Exposition::OpenMetrics => &self.open,
        }
    }
}
