//! The real tenure machine and the real laws under a model checker.
