//! The leader, as processes that are killed and told to end.

mod support;

use std::process::Command;

use nix::sys::signal::Signal;
use support::Program;

#[test]
fn a_leader_that_dies_or_ends_is_followed_by_another() {
    let folder = tempfile::tempdir().unwrap();
    let pod = || Program::start(Command::new(env!("CARGO_BIN_EXE_leader")).arg(folder.path().join("leases.db")));
    let token = |pod: &Program| pod.says("leading with token ").parse::<i64>().unwrap();

    let mut first = pod();
    let first_token = token(&first);
    let mut second = pod();
    second.says("stands");
    assert!(second.said("leading").is_empty());
    first.signal(Signal::SIGKILL);
    assert!(!first.ends().success());
    let second_token = token(&second);
    assert!(second_token > first_token);

    let third = pod();
    third.says("stands");
    second.signal(Signal::SIGTERM);
    assert!(second.ends().success());
    assert_eq!(second.says("told to stop: "), "this process shuts down");
    second.says("ended");
    assert!(token(&third) > second_token);
}
