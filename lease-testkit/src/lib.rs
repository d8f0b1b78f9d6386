//! Leases.

#[cfg(feature = "servers")]
pub mod servers;
