//! What operators see and do. `H::Repo` implements `Inspect`.
