//! The way from a pod to a server, on which bytes are delayed and replies are lost. What the kernel can do, drop packets, is done by
//! the kernel: see [`net`](crate::net).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lease_core::{BootClock, Clock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::net::HUB;

/// For how long a server may not answer the call of a relay: then the client is told.
const CONNECT: Duration = Duration::from_millis(500);
/// Of a hundred replies, so many are lost.
const LOST: u32 = 25;

/// One relay: what is listened to at `port` of the hub is what the server says.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) port: u16,
    weather: Arc<Weather>,
}

#[derive(Debug, Default)]
struct Weather {
    /// Each way, give or take a half; in microseconds.
    delay: AtomicU64,
    loses: AtomicBool,
}

impl Relay {
    pub(crate) async fn new(port: u16, server: String) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((HUB, port)).await?;
        let weather = Arc::new(Weather::default());
        let relay = Self {
            port,
            weather: weather.clone(),
        };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (weather, server) = (weather.clone(), server.clone());
                tokio::spawn(async move {
                    if let Ok(Ok(server)) = timeout(CONNECT, TcpStream::connect(&server)).await {
                        carry(client, server, &weather).await;
                    }
                });
            }
        });
        Ok(relay)
    }

    /// Keeps all bytes back for about this long.
    pub(crate) fn delay(&self, delay: Duration) {
        let delay = u64::try_from(delay.as_micros()).expect("short");
        self.weather.delay.store(delay, Ordering::SeqCst);
    }

    /// Loses replies of statements that were executed, and the connection with them.
    pub(crate) fn lose_replies(&self, loses: bool) {
        self.weather.loses.store(loses, Ordering::SeqCst);
    }
}

/// Until one side has ended, then both have.
async fn carry(client: TcpStream, server: TcpStream, weather: &Weather) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = one_way(from_client, to_server, weather, false) => {}
        () = one_way(from_server, to_client, weather, true) => {}
    }
}

async fn one_way(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, weather: &Weather, replies: bool) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let delay = weather.delay.load(Ordering::SeqCst);
        if delay > 0 {
            let delay = Duration::from_micros(fastrand::u64(delay / 2..=delay * 3 / 2));
            BootClock.sleep_until(BootClock.now() + delay).await;
        }
        if replies && weather.loses.load(Ordering::SeqCst) && fastrand::u32(0..100) < LOST {
            return;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
