//! A TCP proxy before the server, only to lose replies, or to keep one for a while.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Passes everything on until it is told otherwise.
pub(crate) struct Proxy {
    pub(crate) url: String,
    plan: Arc<Mutex<Plan>>,
    kept: Arc<Kept>,
}

/// The reply that is kept: that it is there, and that it may go.
struct Kept {
    is_there: Semaphore,
    may_go: Semaphore,
}

#[derive(Clone, Copy)]
enum Plan {
    Pass,
    /// Once so many replies have passed, loses one and closes its connection.
    LoseOne {
        after: u32,
    },
    /// The same, with all that come after it, on whatever connection.
    LoseAll {
        after: u32,
    },
    /// Keeps the next reply.
    KeepOne,
}

impl Plan {
    /// Whether the reply that has just come is kept.
    fn keeps(&mut self) -> bool {
        let keeps = matches!(self, Self::KeepOne);
        if keeps {
            *self = Self::Pass;
        }
        keeps
    }

    /// Whether it is lost.
    fn loses(&mut self) -> bool {
        match self {
            Self::Pass | Self::KeepOne => false,
            Self::LoseOne { after: 0 } => {
                *self = Self::Pass;
                true
            }
            Self::LoseAll { after: 0 } => true,
            Self::LoseOne { after } | Self::LoseAll { after } => {
                *after -= 1;
                false
            }
        }
    }
}

impl Proxy {
    /// A proxy before the server of a URL.
    pub(crate) async fn before(url: &str) -> Self {
        let (head, rest) = url.split_once('@').unwrap();
        let (target, database) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let plan = Arc::new(Mutex::new(Plan::Pass));
        let kept = Arc::new(Kept {
            is_there: Semaphore::new(0),
            may_go: Semaphore::new(0),
        });
        tokio::spawn(serve(listener, target.to_owned(), plan.clone(), kept.clone()));
        Self {
            url: format!("{head}@127.0.0.1:{port}/{database}"),
            plan,
            kept,
        }
    }

    /// The next reply is kept until it is [let go](Self::let_go).
    pub(crate) fn keep_next_reply(&self) {
        *self.plan.lock().unwrap() = Plan::KeepOne;
    }

    /// Waits until it is there.
    pub(crate) async fn keeps_a_reply(&self) {
        self.kept.is_there.acquire().await.unwrap().forget();
    }

    pub(crate) fn let_go(&self) {
        self.kept.may_go.add_permits(1);
    }

    /// So many replies pass yet, then one is lost and its connection closed; then all pass again.
    pub(crate) fn lose_reply_after(&self, after: u32) {
        *self.plan.lock().unwrap() = Plan::LoseOne { after };
    }

    /// So many replies pass yet, and then none until it is [healed](Self::heal).
    pub(crate) fn lose_all_replies_after(&self, after: u32) {
        *self.plan.lock().unwrap() = Plan::LoseAll { after };
    }

    pub(crate) fn heal(&self) {
        *self.plan.lock().unwrap() = Plan::Pass;
    }
}

async fn serve(listener: TcpListener, target: String, plan: Arc<Mutex<Plan>>, kept: Arc<Kept>) {
    while let Ok((client, _)) = listener.accept().await {
        let server = TcpStream::connect(&target).await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        let (plan, kept) = (plan.clone(), kept.clone());
        tokio::spawn(async move {
            let mut buffer = [0; 8192];
            while let Ok(read) = from_server.read(&mut buffer).await {
                // The server has answered, so what it was asked is committed.
                let keeps = read > 0 && plan.lock().unwrap().keeps();
                if keeps {
                    kept.is_there.add_permits(1);
                    kept.may_go.acquire().await.unwrap().forget();
                }
                if read == 0 || plan.lock().unwrap().loses() {
                    return;
                }
                if to_client.write_all(&buffer[..read]).await.is_err() {
                    return;
                }
            }
        });
    }
}
