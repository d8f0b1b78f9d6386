//! The conformance suite that every lease backend passes, and the tools that prove it.

#[doc(hidden)]
pub mod cases;
mod clocks;
mod conformance;
mod faulty;
mod harness;
mod list;
mod overlap;
mod spans;

pub use clocks::{ManualClock, RunningClock};
pub use faulty::{Chances, Fault, FaultyRepo};
pub use harness::Harness;
#[doc(hidden)]
pub use harness::run_case;
pub use list::{CASES, Case, Runner, runners};
pub use overlap::{Overlap, Section, Summary, Violation};
pub use spans::{Inside, Span, SpanLog, check};
