//! Who lists processes, or reads what `lease` says, learns no password: not while it works, and not when it fails.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lease_testkit::servers::Postgres;
use support::{eventually, lease, said, sleeping};
use tempfile::TempDir;

/// Looks at the arguments of every process of this machine, over and over, for a text that none may have.
struct Lister {
    done: Arc<AtomicBool>,
    thread: thread::JoinHandle<(usize, Vec<String>)>,
}

impl Lister {
    fn looks_for(secret: &str) -> Self {
        let (done, secret) = (Arc::<AtomicBool>::default(), secret.to_owned());
        let seen_enough = Arc::clone(&done);
        let thread = thread::spawn(move || {
            let (mut processes_of_ours, mut found) = (0, Vec::new());
            while !seen_enough.load(Ordering::SeqCst) {
                for process in fs::read_dir("/proc").unwrap().flatten() {
                    // The title is what `ps` shows: the arguments, or what a process has put in their place.
                    for file in ["cmdline", "comm"] {
                        let Ok(bytes) = fs::read(process.path().join(file)) else {
                            continue;
                        };
                        let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
                        processes_of_ours += usize::from(text.contains("_watchdog") || text.contains("_pod"));
                        if text.contains(&secret) {
                            found.push(text);
                        }
                    }
                }
                thread::sleep(Duration::from_millis(2));
            }
            (processes_of_ours, found)
        });
        Self { done, thread }
    }

    /// Which it must not have found, though it has looked at `lease`'s own helpers.
    fn has_found_nothing(self) {
        self.done.store(true, Ordering::SeqCst);
        let (processes_of_ours, found) = self.thread.join().unwrap();
        assert!(processes_of_ours > 0, "it has not seen a watchdog or a pod");
        assert_eq!(found, [] as [String; 0]);
    }
}

/// The URL in a file, as the docs have it.
fn url_file(folder: &Path, url: &str) -> String {
    let file = folder.join("url");
    fs::write(&file, format!("{url}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

/// A job with all that `lease` can say, while somebody lists processes.
fn a_job_says_nothing(folder: &Path, url: &str, secret: &str) {
    let file = url_file(folder, url);
    let lister = Lister::looks_for(secret);
    let mark = format!("1000.{}7", std::process::id());
    let mut job = lease(&["run", "job", "-vv", "--ttl", "1s", "--", "sleep", &mark]);
    job.env("LEASE_URL_FILE", &file);
    let job = job.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("the command starts", || (sleeping(&mark) > 0).then_some(()));
    // Some renewals.
    thread::sleep(Duration::from_secs(1));
    let pid = job.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    let output = job.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("renewed"), "{text}");
    assert!(!text.contains(secret), "{text}");
    lister.has_found_nothing();
}

/// A file's name stands for the secret: what reaches no process and no text is the URL.
#[test]
fn nobody_learns_the_url_of_a_file() {
    let folder = TempDir::new().unwrap();
    let url = format!("sqlite:{}/QX7Zhunter2.db", folder.path().display());
    a_job_says_nothing(folder.path(), &url, "QX7Zhunter2");
    // The pods of a demo are processes of their own.
    let file = url_file(folder.path(), &url);
    let lister = Lister::looks_for("QX7Zhunter2");
    let demo = said(&mut lease(&["demo", "--url-file", &file]));
    assert_eq!(demo.code, 0, "{}{}", demo.out, demo.err);
    assert!(
        !demo.out.contains("QX7Z") && !demo.err.contains("QX7Z"),
        "{}{}",
        demo.out,
        demo.err
    );
    lister.has_found_nothing();
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn nobody_learns_the_password_of_a_server() {
    let database = Postgres::shared().unwrap().database().unwrap();
    let role = format!("secret_of_{}", database.name());
    database
        .sql(&format!("CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'QX7Zhunter2'"))
        .unwrap();
    let (_, place) = database.url().rsplit_once('@').unwrap();
    let url = format!("postgres://{role}:QX7Zhunter2@{place}");
    let folder = TempDir::new().unwrap();
    let file = url_file(folder.path(), &url);
    for arguments in [&["migrate"][..], &["list"], &["doctor"], &["list", "--json"]] {
        let said = said(lease(arguments).env("LEASE_URL_FILE", &file));
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
        assert!(
            !said.out.contains("QX7Z") && !said.err.contains("QX7Z"),
            "{}{}",
            said.out,
            said.err
        );
    }
    a_job_says_nothing(folder.path(), &url, "QX7Zhunter2");
    // And when it does not work.
    for wrong in [
        url.replace("QX7Zhunter2", "QX7Zwrong"),
        url.replace(&role, "nobody_of_that_name"),
        url.replace(database.name(), "no_such_database"),
        url.replace("postgres://", "postgres:/"),
        format!("{url}?sslmode=verify-full"),
        format!("{url}?no_such_option=1"),
    ] {
        for arguments in [&["list"][..], &["doctor"], &["run", "job", "-vv", "--", "true"]] {
            let said = said(lease(arguments).env("LEASE_URL", &wrong));
            assert_ne!(said.code, 0, "{}", said.out);
            assert!(
                !said.out.contains("QX7Z") && !said.err.contains("QX7Z"),
                "{}{}",
                said.out,
                said.err
            );
        }
    }
    database
        .sql(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}"))
        .unwrap();
}
