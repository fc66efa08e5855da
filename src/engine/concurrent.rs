//! Runs futures concurrently in one task.

use std::pin::Pin;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

/// One of the futures.
pub(super) type BoxedFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// The outputs of futures, in their order. At most `limit` of them run at a time; with a limit of one each starts when the one
/// before it has ended.
pub(super) async fn outputs<T>(limit: usize, futures: Vec<BoxedFuture<'_, T>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = Vec::new();
    done.resize_with(futures.len(), || None);
    let mut waiting = futures.into_iter().enumerate();
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < limit.max(1)
            && let Some((number, future)) = waiting.next()
        {
            running.push(numbered(number, future));
        }
        match running.next().await {
            Some((number, output)) => done[number] = Some(output),
            None => return done.into_iter().flatten().collect(),
        }
    }
}

async fn numbered<T>(number: usize, future: BoxedFuture<'_, T>) -> (usize, T) {
    (number, future.await)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{BoxedFuture, outputs};

    /// The most futures that run at a time, with outputs that are ready in another order than they are wanted.
    async fn most_at_a_time(limit: usize) -> usize {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (current, highest) = (&now, &most);
        let future = |number: usize| -> BoxedFuture<'_, usize> {
            Box::pin(async move {
                highest.fetch_max(current.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..(20 - number) {
                    tokio::task::yield_now().await;
                }
                current.fetch_sub(1, Ordering::SeqCst);
                number
            })
        };
        assert_eq!(outputs(limit, (0..20).map(future).collect()).await, (0..20).collect::<Vec<_>>());
        most.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn outputs_keep_the_order_of_the_futures() {
        assert_eq!(most_at_a_time(1).await, 1);
        assert_eq!(most_at_a_time(7).await, 7);
        assert_eq!(most_at_a_time(usize::MAX).await, 20);
        assert!(outputs(3, Vec::<BoxedFuture<'_, u8>>::new()).await.is_empty());
    }
}
