//! Clocks that tests move: [`ManualClock`] alone, [`RunningClock`] beside a real server.

mod manual;
mod running;

pub use manual::ManualClock;
pub use running::RunningClock;
