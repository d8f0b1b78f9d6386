//! [`Proxy`]: loses replies on their way from a server.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A TCP proxy before a server. It passes everything on until it is told to lose replies: then the server has executed what
/// it was asked, and whoever asked does not know.
///
/// It is driven by the runtime it was made on, and ends with it.
#[derive(Debug)]
pub struct Proxy {
    /// The server's URL, by way of the proxy.
    pub url: String,
    plan: Arc<Mutex<Plan>>,
}

#[derive(Debug, Clone, Copy)]
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
    /// A proxy before the server of a URL, `scheme://user@host:port/database`.
    ///
    /// # Errors
    /// `InvalidInput` for a URL of another shape. That it can't listen on this machine.
    pub async fn before(url: &str) -> io::Result<Self> {
        let shape = || {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "the URL is not scheme://user@host:port/database",
            )
        };
        let (head, rest) = url.split_once('@').ok_or_else(shape)?;
        let (target, database) = rest.split_once('/').ok_or_else(shape)?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let plan = Arc::new(Mutex::new(Plan::Pass));
        tokio::spawn(serve(listener, target.to_owned(), plan.clone()));
        Ok(Self {
            url: format!("{head}@127.0.0.1:{port}/{database}"),
            plan,
        })
    }

    /// So many replies pass yet, then one is lost and its connection closed; then all pass again.
    pub fn lose_reply_after(&self, after: u32) {
        self.follow(Plan::LoseOne { after });
    }

    /// So many replies pass yet, and then none until it is [healed](Self::heal).
    pub fn lose_all_replies_after(&self, after: u32) {
        self.follow(Plan::LoseAll { after });
    }

    /// From now on all replies pass.
    pub fn heal(&self) {
        self.follow(Plan::Pass);
    }

    fn follow(&self, plan: Plan) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }
}

async fn serve(listener: TcpListener, target: String, plan: Arc<Mutex<Plan>>) {
    while let Ok((client, _)) = listener.accept().await {
        // A server that is away is one that closes each connection.
        let Ok(server) = TcpStream::connect(&target).await else {
            continue;
        };
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        let plan = plan.clone();
        tokio::spawn(async move {
            let mut buffer = [0; 8192];
            while let Ok(read) = from_server.read(&mut buffer).await {
                // The server has answered, so what it was asked is committed.
                if read == 0 || plan.lock().unwrap_or_else(PoisonError::into_inner).loses() {
                    return;
                }
                if to_client.write_all(&buffer[..read]).await.is_err() {
                    return;
                }
            }
        });
    }
}
