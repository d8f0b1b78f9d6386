//! Pods with the real keeper in a world of virtual time and seeded faults.
