//! Servers that talk nonsense: a typed error that says nothing of the password, never a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::run::check;
use crate::urls::{judged, runtime};

/// Messages of the protocol, whole, cut, or with lengths that lie: what a server may send that is none.
fn nonsense() -> impl Strategy<Value = Vec<u8>> {
    let message = (
        select(b"RSKZENTDC1Av\0".as_slice()),
        any::<Option<i32>>(),
        vec(any::<u8>(), 0..40),
    );
    let typed = message.prop_map(|(kind, lie, body)| {
        let length = lie.unwrap_or(4 + i32::try_from(body.len()).unwrap());
        [&[kind][..], &length.to_be_bytes(), &body].concat()
    });
    // Asks for the password in clear, for its MD5, or by SASL: what follows comes when the password was sent.
    let asks = select(vec![
        &b"R\0\0\0\x08\0\0\0\x03"[..],
        b"R\0\0\0\x0c\0\0\0\x05salt",
        b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0",
        b"R\0\0\0\x08\0\0\0\0",
        b"E\0\0\0\x1dSFATAL\0C28P01\0Mno entry\0\0",
        b"",
    ]);
    (asks, vec(prop_oneof![3 => typed, 1 => vec(any::<u8>(), 0..40)], 0..4))
        .prop_map(|(ask, rest)| [ask.to_vec(), rest.concat()].concat())
}

/// Answers one connection with `reply`, and ends it once the client has had time to answer that.
async fn serve_once(listener: &TcpListener, reply: &[u8]) {
    let (mut client, _) = listener.accept().await.unwrap();
    let mut asked = [0; 1_024];
    let _ = client.read(&mut asked).await;
    let _ = client.write_all(reply).await;
    let _ = client.shutdown().await;
    while client.read(&mut asked).await.is_ok_and(|read| read > 0) {}
}

#[test]
fn a_server_that_talks_nonsense_is_a_typed_error_without_the_password() {
    let runtime = runtime();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("postgres://u:QX7ZVJ4K@{}/db", listener.local_addr().unwrap());
    check(
        "tests/properties/proptest-regressions/nonsense.txt",
        500,
        &nonsense(),
        |reply| {
            runtime.block_on(async {
                let (judged, ()) = tokio::join!(judged(&url), serve_once(&listener, &reply));
                judged
            })
        },
    );
}
