//! Runs futures concurrently in one task.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// One of the futures.
pub(super) type BoxedFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// The futures that can proceed, by number, and the task that polls them.
#[derive(Default)]
struct Woken {
    numbers: Vec<usize>,
    task: Option<Waker>,
}

/// Wakes one of the futures: polling all of them for each that can proceed takes quadratic time.
struct FutureWaker {
    number: usize,
    woken: Arc<Mutex<Woken>>,
}

impl Wake for FutureWaker {
    fn wake(self: Arc<Self>) {
        let task = {
            let mut woken = lock(&self.woken);
            woken.numbers.push(self.number);
            woken.task.take()
        };
        if let Some(task) = task {
            task.wake();
        }
    }
}

fn lock(woken: &Mutex<Woken>) -> MutexGuard<'_, Woken> {
    woken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A future that was started, and its waker.
type Running<'f, T> = Option<(BoxedFuture<'f, T>, Waker)>;

/// The outputs of futures, in their order. At most `limit` of them run at a time; with a limit of one each starts when the one
/// before it has ended.
pub(super) async fn outputs<T>(limit: usize, futures: Vec<BoxedFuture<'_, T>>) -> Vec<T> {
    let total = futures.len();
    let mut waiting = futures.into_iter();
    let mut started: Vec<Running<'_, T>> = Vec::with_capacity(total);
    let mut done: Vec<Option<T>> = Vec::new();
    done.resize_with(total, || None);
    let mut running = 0;
    let woken = Arc::new(Mutex::new(Woken::default()));
    poll_fn(|cx| {
        let mut ready = {
            let mut woken = lock(&woken);
            woken.task = Some(cx.waker().clone());
            std::mem::take(&mut woken.numbers)
        };
        loop {
            for number in ready.drain(..) {
                let Some((future, waker)) = started.get_mut(number).and_then(Option::as_mut) else {
                    continue;
                };
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
                    done[number] = Some(output);
                    started[number] = None;
                    running -= 1;
                }
            }
            while running < limit.max(1)
                && let Some(future) = waiting.next()
            {
                let number = started.len();
                let waker = Waker::from(Arc::new(FutureWaker { number, woken: woken.clone() }));
                started.push(Some((future, waker)));
                ready.push(number);
                running += 1;
            }
            if ready.is_empty() {
                return if running == 0 { Poll::Ready(()) } else { Poll::Pending };
            }
        }
    })
    .await;
    done.into_iter().flatten().collect()
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
