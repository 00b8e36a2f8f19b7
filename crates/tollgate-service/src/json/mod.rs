//! Questions and answers in JSON over HTTP.

mod settings;

pub use settings::JsonSettings;

use crate::Desk;
use std::{net::SocketAddr, sync::Arc};
use tollgate::Enter;
use tollgate_net::{Door, Guard, Stream};

/// The door for questions in JSON.
#[derive(Debug)]
pub struct Json<S: Enter> {
    desk: Desk<S>,
    settings: JsonSettings,
}

impl<S: Enter + 'static> Json<S> {
    /// A door to this desk.
    #[must_use]
    pub fn new(desk: Desk<S>, settings: JsonSettings) -> Self {
        Self { desk, settings }
    }
}

impl<S: Enter + 'static> Door for Json<S> {
    async fn serve(self: Arc<Self>, _stream: Stream, _peer: SocketAddr, _guard: Guard) {
        let _ = (&self.desk, &self.settings);
    }
}
