//! Whether Redis is there, asked before anything else is.

use crate::server::server;
use std::net::TcpListener;
use tollgate::StoreError;
use tollgate_redis::RedisStore;

#[test]
fn a_store_can_be_asked_whether_redis_is_there() {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
    let (here, nowhere) =
        (server().store(), RedisStore::open(&format!("redis://{closed}")).expect("an address"));
    server().block_on(async {
        assert_eq!(here.ping().await, Ok(()));
        let told = nowhere.ping().await;
        assert!(matches!(told, Err(StoreError::Unavailable { .. })), "{told:?}");
    });
    assert_eq!((here.health().answered, here.health().failed), (1, 0));
    assert_eq!((nowhere.health().answered, nowhere.health().failed), (0, 1));
    assert!(nowhere.health().last_error.is_some());
}
