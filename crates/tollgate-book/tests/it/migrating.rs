//! Tables that are made, and made newer, without losing a row.

use crate::home::{Home, everywhere, first_rules, judged, names};
use tollgate_book::{BookError, Keeper};

everywhere! {
    rows_of_an_older_version_stay,
    nodes_that_start_together_take_turns,
    tables_of_a_newer_version_are_left_alone,
}

async fn rows_of_an_older_version_stay(home: Home) {
    home.keeper().make_tables_of(1).await.unwrap();
    for row in [
        "('limit', NULL, 'per-client', 'token_bucket: { rate: 10/s, burst: 5 }', 1, 10, 4)",
        "('rule', NULL, 'per-ip', 'limits: [ { use: per-client, key: [ip] } ]', 0, 20, 2)",
    ] {
        home.sql(&format!(
            "INSERT INTO tollgate_pieces (kind, route, name, text, enabled, place, version) VALUES {row}"
        ))
        .await;
    }
    home.sql("UPDATE tollgate_book SET enabled = 0, revision = 7").await;
    let keeper = home.keeper();
    let book = keeper.read().await.unwrap();
    assert_eq!(names(&book), ["limit per-client", "rule per-ip"]);
    let versions: Vec<_> = book.pieces.iter().map(|piece| (piece.enabled, piece.version)).collect();
    assert_eq!(versions, [(true, 4), (false, 2)]);
    assert!(!book.enabled && book.revision.starts_with("7-off-"), "{}", book.revision);
    assert_eq!(keeper.history(None, 10).await.unwrap(), []);
    assert_eq!(home.keeper().read().await.unwrap(), book);
}

async fn nodes_that_start_together_take_turns(home: Home) {
    let starts = (0..4).map(|_| {
        let keeper = home.keeper();
        tokio::spawn(async move { keeper.read().await })
    });
    for start in starts.collect::<Vec<_>>() {
        assert!(start.await.unwrap().unwrap().pieces.is_empty());
    }
    assert_eq!(home.keeper().change(&first_rules(), "ann", &judged).await.unwrap().pieces.len(), 6);
}

async fn tables_of_a_newer_version_are_left_alone(home: Home) {
    home.keeper().make_tables().await.unwrap();
    home.sql("INSERT INTO tollgate_schema (version, at_ms) VALUES (99, 0)").await;
    let error = home.keeper().read().await.unwrap_err();
    assert!(matches!(&error, BookError::Refused(why) if why.contains("of version 99")), "{error}");
}
