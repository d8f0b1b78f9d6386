//! A fenced write to an object store: an object never goes back to the state of an older token.
//!
//! Any store of the crate `object_store` that has conditional puts: those of the three large clouds have, and so has the one in
//! memory that is shown here; a local folder has not. Each object has the token that it was written under beside it. A write reads that
//! token, refuses to go on if it is larger than its own, and puts only if the object is still the one that it looked at.
#![allow(clippy::print_stdout, reason = "to be looked at")]

use std::error::Error;
use std::time::Duration;

use lease_core::{Lease, MemoryRepo, Token, Wait};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Attribute, Attributes, GetOptions, ObjectStore, PutMode, PutOptions, PutPayload, UpdateVersion};

const TTL: Duration = Duration::from_secs(60);
const TOKEN: Attribute = Attribute::Metadata(std::borrow::Cow::Borrowed("lease-token"));
/// How many writers in a row may come between, before this is called a failure.
const TRIES: usize = 10;

/// Why an object was not written.
#[derive(Debug, thiserror::Error)]
pub enum FencedPutError {
    /// It was written under a larger token.
    #[error("{path} was written under token {newer}: this holder, with token {ours}, is late and must write no more")]
    Stale {
        /// Which object.
        path: Path,
        /// The token it has.
        newer: i64,
        /// The token it was to get.
        ours: Token,
    },
    /// It has no token.
    #[error("{path} has no lease token: somebody writes to it without a fence")]
    Unfenced {
        /// Which object.
        path: Path,
    },
    /// Others were always faster.
    #[error("{path} was changed by others {TRIES} times while it was to be written")]
    Contended {
        /// Which object.
        path: Path,
    },
    /// The store had no answer. Not known whether the object was written.
    #[error(transparent)]
    Store(#[from] object_store::Error),
}

/// Writes an object, unless it was written under a larger token.
pub async fn put(store: &dyn ObjectStore, path: &Path, token: Token, body: &str) -> Result<(), FencedPutError> {
    for _ in 0..TRIES {
        let mode = look(store, path, token).await?;
        let attributes = Attributes::from_iter([(TOKEN, token.to_string())]);
        let options = PutOptions {
            mode,
            attributes,
            ..PutOptions::default()
        };
        match store.put_opts(path, PutPayload::from(body.to_owned()), options).await {
            Ok(_) => return Ok(()),
            // Somebody was faster: perhaps our successor.
            Err(object_store::Error::Precondition { .. } | object_store::Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(FencedPutError::Contended { path: path.clone() })
}

/// Whether the object is ours to write, and the condition that it still is the same when we do.
async fn look(store: &dyn ObjectStore, path: &Path, token: Token) -> Result<PutMode, FencedPutError> {
    let head = GetOptions {
        head: true,
        ..GetOptions::default()
    };
    let found = match store.get_opts(path, head).await {
        Ok(found) => found,
        Err(object_store::Error::NotFound { .. }) => return Ok(PutMode::Create),
        Err(error) => return Err(error.into()),
    };
    let written_under = found.attributes.get(&TOKEN).and_then(|text| text.parse::<i64>().ok());
    match written_under {
        None => Err(FencedPutError::Unfenced { path: path.clone() }),
        Some(newer) if newer > token.get() => Err(FencedPutError::Stale {
            path: path.clone(),
            newer,
            ours: token,
        }),
        Some(_) => Ok(PutMode::Update(UpdateVersion {
            e_tag: found.meta.e_tag,
            version: found.meta.version,
        })),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (store, path) = (InMemory::new(), Path::from("reports/latest"));
    let lease = Lease::new(MemoryRepo::new());

    let guard = lease.acquire("reports", TTL, Wait::Forever).await?;
    let first = guard.held().clone();
    put(&store, &path, first.token(), "the first holder's").await?;
    println!("written by the first holder");
    // It gives the lease up, as one that died would, but part of it goes on.
    guard.release().await?;
    let guard = lease.acquire("reports", TTL, Wait::Forever).await?;
    put(&store, &path, guard.held().token(), "the second holder's").await?;
    println!("written by the second holder");
    match put(&store, &path, first.token(), "too late").await {
        Err(error @ FencedPutError::Stale { .. }) => println!("refused: {error}"),
        other => return Err(format!("a late write must be refused, and was not: {other:?}").into()),
    }
    guard.release().await?;
    Ok(())
}
