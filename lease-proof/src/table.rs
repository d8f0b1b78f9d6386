//! The tables that both commands print.

use comfy_table::{ContentArrangement, Table, presets};

/// An empty table with this header, as wide as what is in it.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().copied());
    table
}
