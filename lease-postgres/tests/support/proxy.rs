//! A TCP proxy before the server, only to lose replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Passes everything on until it is told to lose the next reply.
pub(crate) struct Proxy {
    pub(crate) url: String,
    loses: Arc<AtomicBool>,
}

impl Proxy {
    /// A proxy before the server of a URL.
    pub(crate) async fn before(url: &str) -> Self {
        let (head, rest) = url.split_once('@').unwrap();
        let (target, database) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let loses = Arc::new(AtomicBool::new(false));
        tokio::spawn(serve(listener, target.to_owned(), loses.clone()));
        Self {
            url: format!("{head}@127.0.0.1:{port}/{database}"),
            loses,
        }
    }

    /// From now on, the first reply of the server is lost and its connection closed; then it passes all again.
    pub(crate) fn lose_next_reply(&self) {
        self.loses.store(true, Ordering::SeqCst);
    }
}

async fn serve(listener: TcpListener, target: String, loses: Arc<AtomicBool>) {
    while let Ok((client, _)) = listener.accept().await {
        let server = TcpStream::connect(&target).await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        let loses = loses.clone();
        tokio::spawn(async move {
            let mut buffer = [0; 8192];
            while let Ok(read) = from_server.read(&mut buffer).await {
                // The server has answered, so what it was asked is committed.
                if read == 0 || loses.swap(false, Ordering::SeqCst) {
                    return;
                }
                if to_client.write_all(&buffer[..read]).await.is_err() {
                    return;
                }
            }
        });
    }
}
