//! Ctrl-C and its kin.

/// Ends when somebody asks the program to stop: SIGINT, SIGTERM or SIGHUP.
pub(crate) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let stream = |kind| async move {
        match signal(kind) {
            Ok(mut signals) => {
                signals.recv().await;
            }
            // Without a handler the signal ends the program by itself.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stream(SignalKind::interrupt()) => {}
        () = stream(SignalKind::terminate()) => {}
        () = stream(SignalKind::hangup()) => {}
    }
}
