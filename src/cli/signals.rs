//! Signals that stop the program.

/// Completes when the process receives SIGINT, SIGTERM or SIGHUP.
pub(crate) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let stream = |kind| async move {
        match signal(kind) {
            Ok(mut signals) => {
                signals.recv().await;
            }
            // Without a handler the signal's default action ends the process.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stream(SignalKind::interrupt()) => {}
        () = stream(SignalKind::terminate()) => {}
        () = stream(SignalKind::hangup()) => {}
    }
}
