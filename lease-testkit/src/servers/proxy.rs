//! [`Proxy`]: loses replies on their way from a server, or keeps one for a while.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// A TCP proxy before a server. It passes everything on until it is told otherwise. When a reply is lost the server has executed what
/// it was asked, and whoever asked does not know.
///
/// It is driven by the runtime it was made on, and ends with it.
#[derive(Debug)]
pub struct Proxy {
    /// The server's URL, by way of the proxy.
    pub url: String,
    plan: Arc<Mutex<Plan>>,
    kept: Arc<Kept>,
}

/// The reply that is kept: that it is there, and that it may go.
#[derive(Debug)]
struct Kept {
    is_there: Semaphore,
    may_go: Semaphore,
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
        let kept = Arc::new(Kept {
            is_there: Semaphore::new(0),
            may_go: Semaphore::new(0),
        });
        tokio::spawn(serve(listener, target.to_owned(), plan.clone(), kept.clone()));
        Ok(Self {
            url: format!("{head}@127.0.0.1:{port}/{database}"),
            plan,
            kept,
        })
    }

    /// The next reply is kept until it is [let go](Self::let_go).
    pub fn keep_next_reply(&self) {
        self.follow(Plan::KeepOne);
    }

    /// Waits until it is there: what the server was asked is executed.
    pub async fn keeps_a_reply(&self) {
        if let Ok(permit) = self.kept.is_there.acquire().await {
            permit.forget();
        }
    }

    /// The reply that is kept goes on its way.
    pub fn let_go(&self) {
        self.kept.may_go.add_permits(1);
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
        *lock(&self.plan) = plan;
    }
}

fn lock(plan: &Mutex<Plan>) -> MutexGuard<'_, Plan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, target: String, plan: Arc<Mutex<Plan>>, kept: Arc<Kept>) {
    while let Ok((client, _)) = listener.accept().await {
        // A server that is away is one that closes each connection.
        let Ok(server) = TcpStream::connect(&target).await else {
            continue;
        };
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        let (plan, kept) = (plan.clone(), kept.clone());
        tokio::spawn(async move {
            let mut buffer = [0; 8192];
            while let Ok(read) = from_server.read(&mut buffer).await {
                // The server has answered, so what it was asked is committed.
                if read > 0 && lock(&plan).keeps() {
                    kept.is_there.add_permits(1);
                    match kept.may_go.acquire().await {
                        Ok(permit) => permit.forget(),
                        Err(_) => return,
                    }
                }
                if read == 0 || lock(&plan).loses() {
                    return;
                }
                if to_client.write_all(&buffer[..read]).await.is_err() {
                    return;
                }
            }
        });
    }
}
