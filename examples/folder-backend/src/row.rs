//! A lease's file: what it is called, and what is in it.

use data_encoding::BASE32_DNSSEC;
use lease_core::{LeaseName, Row};
use serde::{Deserialize, Serialize};

/// How the files of leases end.
pub(crate) const ENDING: &str = "lease";

/// What a file has, as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    name: String,
    holder: String,
    token: i64,
    acquired_at: i64,
    expires_at: i64,
    released_at: Option<i64>,
    note: Option<String>,
}

/// The file of a lease: letters and digits of one case, whatever the name.
pub(crate) fn file_name(name: &LeaseName) -> String {
    format!("{}.{ENDING}", BASE32_DNSSEC.encode(name.as_str().as_bytes()))
}

/// A row as it is written.
pub(crate) fn write(name: &LeaseName, row: &Row) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec_pretty(&Text {
        name: name.as_str().to_owned(),
        holder: row.holder.clone(),
        token: row.token,
        acquired_at: row.acquired_at,
        expires_at: row.expires_at,
        released_at: row.released_at,
        note: row.note.clone(),
    })
}

/// A row and the name of its lease, or what is wrong with the file.
pub(crate) fn read(bytes: &[u8]) -> Result<(LeaseName, Row), String> {
    let text: Text = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let name = LeaseName::new(&text.name).map_err(|error| error.to_string())?;
    let mut row = Row::new(text.holder, text.token, text.acquired_at, text.expires_at);
    row.released_at = text.released_at;
    row.note = text.note;
    Ok((name, row))
}
