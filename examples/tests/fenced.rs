//! Writes of a holder that is late.

mod support;

#[path = "../src/bin/fenced_object.rs"]
#[allow(dead_code, reason = "its `main` is run as a process")]
mod fenced_object;

use std::fmt;
use std::process::Command;
use std::sync::Mutex;

use fenced_object::{FencedPutError, put};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use lease_core::Token;
use lease_testkit::servers::Postgres;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use support::{Program, eventually};

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_late_holder_commits_nothing_and_the_next_one_counts_on() {
    let database = Postgres::shared().unwrap().database().unwrap();
    let pod = || Program::start(Command::new(env!("CARGO_BIN_EXE_fenced_table")).arg(database.url()));
    let token = |pod: &Program| pod.says("held with token ").parse::<i64>().unwrap();
    let counter = || {
        let text = database
            .sql("SELECT value || ' ' || written_under FROM counter")
            .unwrap();
        let (value, token) = text[0].split_once(' ').unwrap();
        (value.parse::<i64>().unwrap(), token.parse::<i64>().unwrap())
    };
    let mut first = pod();
    let first_token = token(&first);
    eventually("a write", || counter().0 > 0);
    assert_eq!(counter().1, first_token);
    // Its clock says that the lease is its own for most of a minute; the database's says no more.
    database
        .sql("UPDATE task_leases SET expires_at = clock_timestamp() - interval '1 second'")
        .unwrap();
    let refused = first.says("refused: ");
    assert!(
        refused.contains(r#"lease "counter" is not held under token"#),
        "{refused}"
    );
    assert!(first.ends().success());
    let (left_at, _) = counter();
    let second = pod();
    let second_token = token(&second);
    assert!(second_token > first_token);
    eventually("a write by the next one", || counter().0 > left_at);
    assert_eq!(counter().1, second_token);
}

#[test]
fn a_late_write_to_an_object_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_fenced_object")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..2],
        ["written by the first holder", "written by the second holder"]
    );
    assert!(
        lines[2].starts_with("refused: reports/latest was written under token"),
        "{text}"
    );
}

/// A store in which something happens right before a put, after the writer has looked.
#[derive(Default)]
struct Busy {
    store: InMemory,
    /// What others write meanwhile, the last one first: token and text.
    meanwhile: Mutex<Vec<(i64, &'static str)>>,
}

const PATH: &str = "state";

fn token(number: i64) -> Token {
    Token::new(number).unwrap()
}

impl Busy {
    async fn new(first: &[(i64, &str)], meanwhile: &[(i64, &'static str)]) -> Self {
        let busy = Self::default();
        for (number, text) in first {
            put(&busy.store, &PATH.into(), token(*number), text).await.unwrap();
        }
        *busy.meanwhile.lock().unwrap() = meanwhile.iter().rev().copied().collect();
        busy
    }

    async fn put(&self, number: i64, text: &str) -> std::result::Result<(), FencedPutError> {
        put(self, &PATH.into(), token(number), text).await
    }

    async fn text(&self) -> String {
        let bytes = self.store.get(&PATH.into()).await.unwrap().bytes().await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }
}

#[tokio::test]
async fn a_write_that_was_overtaken_between_its_look_and_its_put_is_refused() {
    for first in [&[][..], &[(1, "first")]] {
        let store = Busy::new(first, &[(2, "second")]).await;
        let refused = store.put(1, "late").await.unwrap_err();
        assert!(matches!(refused, FencedPutError::Stale { newer: 2, .. }), "{refused}");
        assert_eq!(store.text().await, "second");
    }
}

#[tokio::test]
async fn the_newer_of_two_writers_gets_through_whoever_comes_between() {
    let store = Busy::new(&[(1, "first")], &[(1, "first again"), (2, "second")]).await;
    store.put(3, "third").await.unwrap();
    assert_eq!(store.text().await, "third");
    assert!(matches!(store.put(2, "late").await, Err(FencedPutError::Stale { .. })));
    store.put(3, "third again").await.unwrap();
    assert_eq!(store.text().await, "third again");
}

#[tokio::test]
async fn a_writer_that_is_always_overtaken_gives_up_and_says_so() {
    let others = [(1, "other"); 20];
    let store = Busy::new(&[(1, "first")], &others).await;
    assert!(matches!(
        store.put(1, "mine").await,
        Err(FencedPutError::Contended { .. })
    ));
    assert_eq!(store.text().await, "other");
}

#[tokio::test]
async fn an_object_without_a_token_is_not_overwritten() {
    let store = Busy::new(&[], &[]).await;
    store
        .store
        .put(&PATH.into(), PutPayload::from_static(b"by hand"))
        .await
        .unwrap();
    assert!(matches!(
        store.put(1, "mine").await,
        Err(FencedPutError::Unfenced { .. })
    ));
    assert_eq!(store.text().await, "by hand");
}

impl fmt::Debug for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait::async_trait]
impl ObjectStore for Busy {
    async fn put_opts(&self, path: &Path, body: PutPayload, options: PutOptions) -> Result<PutResult> {
        let other = self.meanwhile.lock().unwrap().pop();
        if let Some((number, text)) = other {
            let overtake: BoxFuture<'_, _> = Box::pin(put(&self.store, path, token(number), text));
            overtake.await.unwrap();
        }
        self.store.put_opts(path, body, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.store.get_opts(path, options).await
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.store.put_multipart_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.store.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}
