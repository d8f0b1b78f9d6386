//! A `lease run` that is under way.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{World, eventually, sleeping};

/// How long the `sleep` of a test sleeps, as no other on this machine does.
pub fn mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("1000.{}0{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst))
}

pub struct Job {
    process: Child,
    said: PathBuf,
    report: PathBuf,
}

impl Job {
    /// Starts `lease run job` with these arguments.
    pub fn start(world: &World, arguments: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::SeqCst);
        let (said, report) = (
            world.path(&format!("said-{count}")),
            world.path(&format!("report-{count}")),
        );
        let before = ["run", "job", "--report", report.to_str().unwrap()];
        let mut command = world.lease(&[&before, arguments].concat());
        command.stderr(File::create(&said).unwrap());
        Self {
            process: command.spawn().unwrap(),
            said,
            report,
        }
    }

    /// Starts it, and returns when its command, or what that started, sleeps so long.
    pub fn running(world: &World, arguments: &[&str], mark: &str) -> Self {
        let job = Self::start(world, arguments);
        eventually("the command starts", || (sleeping(mark) > 0).then_some(()));
        job
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub fn is_over(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    pub fn status(&mut self) -> ExitStatus {
        eventually("it exits", || self.process.try_wait().unwrap())
    }

    pub fn code(&mut self) -> i32 {
        let status = self.status();
        status
            .code()
            .unwrap_or_else(|| panic!("it died of signal {:?}", status.signal()))
    }

    pub fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap()
    }

    pub fn report(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(&self.report).unwrap()).unwrap()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
