//! This project, and the bare statements below it, as contenders.

mod backend;
pub mod bare;
mod by_hop;
mod by_lease;
mod by_repo;

pub use backend::Backend;
pub use by_hop::ByHop;
pub use by_lease::ByLease;
pub use by_repo::ByRepo;
