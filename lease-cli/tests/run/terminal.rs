//! Under a pseudo terminal: reading from it, Ctrl-C, Ctrl-Z, and what is said there.

use std::process::Command;

use rexpect::session::{PtySession, spawn_command};
use rustix::process::{Pid, Signal, kill_process};

use crate::job::{Job, mark};
use crate::support::{World, eventually, program, sleeping};

/// How long a word may take to come, in milliseconds: none takes this long.
const PATIENCE: u64 = 60_000;

fn on_a_terminal(command: Command) -> PtySession {
    spawn_command(command, Some(PATIENCE)).unwrap()
}

/// In a script, which says the exit code.
fn lease(world: &World, arguments: &[&str]) -> PtySession {
    let mut script = program("sh");
    script
        .args([
            "-c",
            "trap : INT; \"$0\" \"$@\"; echo code $?",
            env!("CARGO_BIN_EXE_lease"),
        ])
        .args(arguments);
    script.env("LEASE_URL", &world.url);
    on_a_terminal(script)
}

/// A shell with job control, as people have it.
fn shell(world: &World) -> PtySession {
    let mut bash = program("bash");
    bash.args(["--norc", "--noediting", "-i"])
        .env("PS1", "ready> ")
        .env("LEASE_URL", &world.url);
    bash.env("lease", env!("CARGO_BIN_EXE_lease"));
    let mut shell = on_a_terminal(bash);
    shell.exp_string("ready> ").unwrap();
    shell
}

fn code(session: &mut PtySession) -> i32 {
    session.exp_string("code ").unwrap();
    session.read_line().unwrap().trim().parse().unwrap()
}

#[test]
fn a_command_reads_from_the_terminal() {
    let world = World::new();
    let mut session = lease(
        &world,
        &["run", "job", "--", "sh", "-c", "read word; echo got $word; exit 3"],
    );
    session.send_line("hello").unwrap();
    session.exp_string("got hello").unwrap();
    assert_eq!(code(&mut session), 3);
}

#[test]
fn ctrl_c_ends_the_command_whether_or_not_it_has_the_terminal() {
    let world = World::new();
    for first in ["", "read word; "] {
        let mark = mark();
        let script = format!("{first}sleep {mark} & wait");
        let mut session = lease(&world, &["run", "job", "--", "sh", "-c", &script]);
        if !first.is_empty() {
            session.send_line("go").unwrap();
        }
        eventually("it sleeps", || (sleeping(&mark) == 1).then_some(()));
        session.send_control('c').unwrap();
        assert_eq!(code(&mut session), 130);
        assert_eq!(sleeping(&mark), 0);
    }
}

#[test]
fn a_closed_terminal_ends_the_command() {
    let world = World::new();
    let mark = mark();
    let session = lease(
        &world,
        &["run", "job", "--", "sh", "-c", &format!("sleep {mark} & wait")],
    );
    eventually("it sleeps", || (sleeping(&mark) == 1).then_some(()));
    drop(session);
    eventually("it is gone", || (sleeping(&mark) == 0).then_some(()));
}

/// C22 and C37, under a terminal.
#[test]
fn killed_ended_or_stopped_it_takes_its_command_along_here_too() {
    let world = World::new();
    for (signal, ignored) in [
        (Signal::TERM, ""),
        (Signal::KILL, ""),
        (Signal::KILL, "trap '' TERM HUP; "),
        // For longer than the lease lasts.
        (Signal::STOP, "trap '' TERM HUP; "),
    ] {
        let mark = mark();
        let script = format!("{ignored}read word; sleep {mark} & wait; sleep {mark}");
        let mut command = program("sh");
        command.args([
            "-c",
            "echo pid $$; exec \"$0\" run job --ttl 1s --wait forever -- sh -c \"$1\"",
        ]);
        command
            .args([env!("CARGO_BIN_EXE_lease"), &script])
            .env("LEASE_URL", &world.url);
        let mut session = on_a_terminal(command);
        session.exp_string("pid ").unwrap();
        let lease = Pid::from_raw(session.read_line().unwrap().trim().parse().unwrap()).unwrap();
        session.send_line("go").unwrap();
        eventually("it sleeps", || (sleeping(&mark) == 1).then_some(()));
        kill_process(lease, signal).unwrap();
        eventually("the command is gone", || (sleeping(&mark) == 0).then_some(()));
        let _ = kill_process(lease, Signal::KILL);
    }
}

#[test]
fn ctrl_z_stops_it_and_fg_lets_it_go_on_with_the_terminal() {
    let world = World::new();
    for script in [
        // One that has the terminal, and one that has not.
        "read a; echo first $a; read b; echo then $b",
        "echo first one; sleep 0.2; while [ ! -e \"$0\" ]; do sleep 0.01; done; read b; echo then $b",
    ] {
        let go = world.path("go");
        let _ = std::fs::remove_file(&go);
        let mut shell = shell(&world);
        shell
            .send_line(&format!(
                "$lease run job -- sh -c '{script}' {}; echo code $?",
                go.display()
            ))
            .unwrap();
        if script.starts_with("read") {
            shell.send_line("one").unwrap();
        }
        shell.exp_string("first one").unwrap();
        shell.send_control('z').unwrap();
        shell.exp_string("Stopped").unwrap();
        shell.exp_string("ready> ").unwrap();
        std::fs::write(&go, "").unwrap();
        shell.send_line("fg").unwrap();
        shell.send_line("two").unwrap();
        shell.exp_string("then two").unwrap();
        // Else the job would still be here.
        shell.send_line("jobs; echo $((40 + 2))").unwrap();
        shell.exp_string("42").unwrap();
        shell.send_line("exit").unwrap();
    }
}

#[test]
fn a_script_has_the_terminal_back_afterwards() {
    let world = World::new();
    let mut script = program("sh");
    script.args([
        "-c",
        "\"$0\" run job -- sh -c 'read a; stty -icanon; kill -9 $$'; read b; stty; echo then $b",
    ]);
    script.arg(env!("CARGO_BIN_EXE_lease")).env("LEASE_URL", &world.url);
    let mut session = on_a_terminal(script);
    session.send_line("one").unwrap();
    session.send_line("two").unwrap();
    // As it was set before, too.
    assert!(!session.exp_string("then two").unwrap().contains("-icanon"));
}

#[test]
fn a_pipe_to_a_program_that_reads_the_terminal_works() {
    let world = World::new();
    let mut shell = shell(&world);
    // As `less` does: what it pages comes from its input, and what the user types from the terminal.
    shell
        .send_line("$lease run job -- echo page | (read line; read key < /dev/tty; echo $line and $key)")
        .unwrap();
    shell.send_line("space").unwrap();
    shell.exp_string("page and space").unwrap();
    shell.send_line("exit").unwrap();
}

#[test]
fn in_the_background_it_leaves_the_terminal_alone() {
    let world = World::new();
    let mut shell = shell(&world);
    shell
        .send_line("$lease run job -- sh -c 'read a; echo got $a' &")
        .unwrap();
    eventually("it has the lease", || {
        (world.json(&["show", "job"]).0["state"] == "held").then_some(())
    });
    // The shell still reads, and not the command.
    shell.send_line("echo $((40 + 2))").unwrap();
    shell.exp_string("42").unwrap();
    shell.send_line("fg").unwrap();
    shell.send_line("hello").unwrap();
    shell.exp_string("got hello").unwrap();
    shell.send_line("exit").unwrap();
}

#[test]
fn people_are_told_who_has_it_and_for_what_they_wait() {
    let world = World::new();
    let mark = mark();
    let _holder = Job::running(&world, &["--", "sleep", &mark], &mark);
    let mut session = lease(&world, &["run", "job", "--", "true"]);
    session.exp_string("lease: job is held by ").unwrap();
    assert_eq!(code(&mut session), 75);
    let mut waiting = lease(&world, &["run", "job", "--wait", "forever", "--", "true"]);
    waiting.exp_string("lease: waiting for job: ").unwrap();
    waiting.send_control('c').unwrap();
    assert_eq!(code(&mut waiting), 130);
}
