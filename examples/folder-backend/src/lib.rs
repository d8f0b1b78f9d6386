//! Leases in a folder, a file for each, for the processes of one machine. `docs/new-backend.md` explains it line by line.

mod folder;
mod repo;
mod row;

pub use lease_core;
pub use repo::FolderRepo;
