//! Each invariant is violated by an observation made up for it.
