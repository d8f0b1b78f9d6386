//! A TCP proxy before the server, only to lose replies.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Passes everything on until it is told to lose replies.
pub(crate) struct Proxy {
    pub(crate) url: String,
    plan: Arc<Mutex<Plan>>,
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
}

impl Plan {
    /// Whether the reply that has just come is lost.
    fn loses(&mut self) -> bool {
        match self {
            Self::Pass => false,
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
        tokio::spawn(serve(listener, target.to_owned(), plan.clone()));
        Self {
            url: format!("{head}@127.0.0.1:{port}/{database}"),
            plan,
        }
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

async fn serve(listener: TcpListener, target: String, plan: Arc<Mutex<Plan>>) {
    while let Ok((client, _)) = listener.accept().await {
        let server = TcpStream::connect(&target).await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        let plan = plan.clone();
        tokio::spawn(async move {
            let mut buffer = [0; 8192];
            while let Ok(read) = from_server.read(&mut buffer).await {
                // The server has answered, so what it was asked is committed.
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
