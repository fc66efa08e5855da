//! A connection to a server: two channel ends for messages.
//!
//! A running server, a recorded one, a replayed one and a test's script all have this type, so that wrappers work for
//! all. The channels are unbounded: what a client sends is small or shared with other owners, and a sender that could
//! block would let a server that does not read stop the client from reading, so that both would wait for each other.

use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::codec::{Decoder as _, Encoder as _};

use super::codec::{Codec, CodecError, READ_BYTES};
use super::jsonrpc::Message;

/// A message, or why there are no more. The end of the channel is the orderly end of the stream.
pub type Received = Result<Message, CodecError>;

/// How long a failed write waits for the reader to report an error first, which says more: a server that died has
/// often left a last response in the pipe.
const WRITE_FAILURE_GRACE: Duration = Duration::from_millis(500);

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    /// To the peer. An error ends the peer's stream with that error; callers should send only `Ok`.
    pub sender: mpsc::UnboundedSender<Received>,
    /// From the peer.
    pub receiver: mpsc::UnboundedReceiver<Received>,
}

impl Connection {
    /// Two connected ends in memory.
    #[must_use]
    pub fn pair() -> (Self, Self) {
        let (to_right, from_left) = mpsc::unbounded_channel();
        let (to_left, from_right) = mpsc::unbounded_channel();
        (Self { sender: to_right, receiver: from_right }, Self { sender: to_left, receiver: from_left })
    }

    /// A connection over byte streams, with one task for each direction on the current runtime.
    ///
    /// The writer is shut down when the connection's sender is dropped, the reader when its receiver is.
    #[must_use]
    pub fn over<R, W>(reader: R, writer: W) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Self::start(reader, writer, Codec::default()).0
    }

    /// The same to a client: a frame whose body is no message is an error that does not end the stream. The task ends when all that
    /// was sent is written and no sender is left.
    #[must_use]
    pub fn to_client<R, W>(reader: R, writer: W) -> (Self, JoinHandle<()>)
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Self::start(reader, writer, Codec::that_skips_bodies())
    }

    fn start<R, W>(reader: R, writer: W, codec: Codec) -> (Self, JoinHandle<()>)
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (here, there) = Self::pair();
        let Self { sender, receiver } = there;
        let writing = tokio::spawn(write(writer, receiver, sender.clone()));
        tokio::spawn(read(reader, sender, codec));
        (here, writing)
    }
}

async fn read(mut reader: impl AsyncRead + Unpin, sender: mpsc::UnboundedSender<Received>, mut codec: Codec) {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    let mut ended = false;
    loop {
        let step = if ended { codec.decode_eof(&mut buffer) } else { codec.decode(&mut buffer) };
        let received = match step {
            Ok(Some(message)) => Ok(message),
            Ok(None) if ended => return,
            Ok(None) => {
                buffer.reserve(READ_BYTES);
                let count = tokio::select! {
                    count = reader.read_buf(&mut buffer) => count,
                    () = sender.closed() => return,
                };
                match count {
                    Ok(count) => ended = count == 0,
                    Err(error) => {
                        let _ = sender.send(Err(error.into()));
                        return;
                    }
                }
                continue;
            }
            Err(error) => Err(error),
        };
        let failed = received.as_ref().is_err_and(|error| !codec.goes_on_after(error));
        if sender.send(received).is_err() || failed {
            return;
        }
    }
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut receiver: mpsc::UnboundedReceiver<Received>,
    back: mpsc::UnboundedSender<Received>,
) {
    // The channel to the client must end when the reader does, so the writer must not keep it open.
    let back = {
        let weak = back.downgrade();
        drop(back);
        weak
    };
    let mut codec = Codec::default();
    let mut buffer = BytesMut::new();
    while let Some(received) = receiver.recv().await {
        let result = match received {
            Ok(message) => match codec.encode(&message, &mut buffer) {
                Ok(()) => writer.write_all_buf(&mut buffer).await.map_err(CodecError::from),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        let result = match result {
            Ok(()) if receiver.is_empty() => writer.flush().await.map_err(CodecError::from),
            other => other,
        };
        if let Err(error) = result {
            tokio::time::sleep(WRITE_FAILURE_GRACE).await;
            if let Some(back) = back.upgrade() {
                let _ = back.send(Err(error));
            }
            return;
        }
    }
    let _ = writer.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(method: &str) -> Message {
        Message::notification(method, None)
    }

    #[tokio::test]
    async fn messages_and_the_end_pass_through_a_byte_stream() {
        let (left, right) = tokio::io::duplex(16);
        let (reader, writer) = tokio::io::split(left);
        let mut left = Connection::over(reader, writer);
        let (reader, writer) = tokio::io::split(right);
        let mut right = Connection::over(reader, writer);
        left.sender.send(Ok(note("a"))).unwrap();
        left.sender.send(Ok(note("b"))).unwrap();
        assert_eq!(right.receiver.recv().await.unwrap().unwrap(), note("a"));
        assert_eq!(right.receiver.recv().await.unwrap().unwrap(), note("b"));
        right.sender.send(Ok(note("c"))).unwrap();
        drop(right.sender);
        assert_eq!(left.receiver.recv().await.unwrap().unwrap(), note("c"));
        assert!(left.receiver.recv().await.is_none());
    }

    #[tokio::test]
    async fn a_peer_that_does_not_read_cannot_stop_us_from_reading() {
        let (to_peer, _never_read) = tokio::io::duplex(8);
        let (from_peer, mut peer) = tokio::io::duplex(8);
        let mut connection = Connection::over(from_peer, to_peer);
        for _ in 0..1000 {
            connection.sender.send(Ok(note("many bytes that the server never reads"))).unwrap();
        }
        peer.write_all(b"Content-Length: 14\r\n\r\n{\"method\":\"m\"}").await.unwrap();
        let received = tokio::time::timeout(Duration::from_secs(5), connection.receiver.recv()).await;
        assert_eq!(received.unwrap().unwrap().unwrap(), note("m"));
    }

    #[tokio::test]
    async fn garbage_is_an_error_and_then_the_end() {
        let (from_peer, mut peer) = tokio::io::duplex(64);
        let mut connection = Connection::over(from_peer, tokio::io::sink());
        peer.write_all(b"Traceback (most recent call last)\n").await.unwrap();
        assert!(matches!(connection.receiver.recv().await, Some(Err(CodecError::Header(_)))));
        assert!(connection.receiver.recv().await.is_none());
    }

    #[tokio::test]
    async fn a_closed_input_is_an_error() {
        let (to_peer, peer) = tokio::io::duplex(8);
        drop(peer);
        let (from_peer, _alive) = tokio::io::duplex(8);
        let mut connection = Connection::over(from_peer, to_peer);
        connection.sender.send(Ok(note("m"))).unwrap();
        assert!(matches!(connection.receiver.recv().await, Some(Err(CodecError::Io(_)))));
    }
}
