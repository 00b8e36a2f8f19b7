//! A thread with a runtime of its own, on which something listens while a test does what it likes with its own.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    thread::{self, JoinHandle},
};
use tokio::{runtime, sync::oneshot};

/// Ends, with all it spawned, when this is dropped.
pub(crate) struct Backstage {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Backstage {
    /// Listens on a free port of 127.0.0.1, and has connections accepted there by `accept`.
    pub(crate) fn start<F: Future<Output = ()>>(
        name: &str,
        accept: impl FnOnce(tokio::net::TcpListener) -> F + Send + 'static,
    ) -> Self {
        // Bound here, so that the port is known when this returns.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
        listener.set_nonblocking(true).expect("a socket can be made not to block");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a runtime is there");
                tokio::select! {
                    () = accept(listener) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = thread::Builder::new().name(format!("testkit-{name}")).spawn(run);
        Self { address, stop: Some(stop), thread: Some(thread.expect("a thread can be started")) }
    }
}

impl Drop for Backstage {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to say that a test would want to hear while it ends.
            let _ = thread.join();
        }
    }
}
