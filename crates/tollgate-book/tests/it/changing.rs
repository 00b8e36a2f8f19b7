//! Changes: all or none, on the newest version or not at all, and what they leave behind.

use crate::home::{Home, NOBODY, create, edit, everywhere, first_rules, judged, named, names};
use std::sync::Arc;
use tollgate_book::{Book, BookError, Change, Keeper, Kind, NodeSeen};

everywhere! {
    a_book_is_written_read_changed_and_told_of,
    all_or_nothing,
    a_stale_change_is_refused,
    two_who_change_at_the_same_time_lose_nothing,
    what_a_hand_changed_is_noticed,
    a_broken_row_is_named,
    many_rows_are_written_moved_and_deleted,
    nodes_are_known,
}

async fn a_book_is_written_read_changed_and_told_of(home: Home) {
    let keeper = home.keeper();
    let empty = keeper.read().await.unwrap();
    assert!(empty.enabled && empty.pieces.is_empty());
    let book = keeper.change(&first_rules(), "ann", &judged).await.unwrap();
    assert_eq!(
        names(&book),
        [
            "limit per-client",
            "upstream orders",
            "rule per-ip",
            "route orders",
            "rule orders/create",
            "rule orders/read"
        ]
    );
    assert_eq!(named(&book, "rule orders/read").text, "limits: [ { use: per-client, key: [] } ] # é 订单");
    assert_eq!(home.keeper().read().await.unwrap(), book);
    assert_eq!(keeper.revision().await.unwrap(), book.revision);
    assert_ne!(book.revision, empty.revision);

    let (create_rule, read) = (named(&book, "rule orders/create"), named(&book, "rule orders/read"));
    let route = named(&book, "route orders");
    let changes = [
        Change::Move { id: read.id, version: read.version, before: Some(create_rule.id) },
        Change::Enable { id: create_rule.id, version: create_rule.version, enabled: false },
        Change::Edit {
            id: route.id,
            version: route.version,
            name: Some("shop".to_owned()),
            text: route.text.clone(),
        },
        Change::SwitchRule { route: None, rule: "per-ip".to_owned(), enabled: false },
        Change::Switch { enabled: false },
    ];
    let book = keeper.change(&changes, "bob", &judged).await.unwrap();
    assert!(!book.enabled);
    assert_eq!(names(&book)[3..], ["route shop", "rule shop/read", "rule shop/create"]);
    let changed = named(&book, "rule shop/create");
    assert!(
        !changed.enabled && changed.version > 1 && changed.changed.by == "bob" && changed.changed.at_ms > 0
    );
    assert!(!named(&book, "rule per-ip").enabled);
    assert_eq!(home.keeper().read().await.unwrap(), book);

    let shop = named(&book, "route shop");
    let book = keeper
        .change(&[Change::Delete { id: shop.id, version: shop.version }], "bob", &judged)
        .await
        .unwrap();
    assert_eq!(names(&book), ["limit per-client", "upstream orders", "rule per-ip"]);

    keeper.note("cat", "reset", "limit per-client key alice").await.unwrap();
    let entries = keeper.history(None, 100).await.unwrap();
    let told: Vec<_> =
        entries.iter().map(|entry| format!("{} {} {}", entry.by, entry.action, entry.about)).collect();
    assert_eq!(
        told[..4],
        [
            "cat reset limit per-client key alice",
            "bob delete rule shop/create",
            "bob delete rule shop/read",
            "bob delete route shop"
        ]
    );
    assert_eq!(entries.len(), 1 + 3 + 5 + 6);
    let older = keeper.history(Some(entries[0].number), 2).await.unwrap();
    assert_eq!(older, entries[1..3]);
    let route_edit = entries.iter().find(|entry| entry.action == "edit").unwrap();
    assert_eq!(route_edit.before.as_deref(), Some("when: { path: /orders/** }\nupstream: orders"));
}

async fn all_or_nothing(home: Home) {
    let keeper = home.keeper();
    let book = keeper.change(&first_rules(), "ann", &judged).await.unwrap();
    let limit = named(&book, "limit per-client");
    let good = create(Kind::Limit, None, "other", "sliding_log: { limit: 1, window: 1s }");
    // A mistake in the last.
    let error = keeper
        .change(&[good.clone(), edit(limit, "token_bucket: { rate: 0/s, burst: 1 }")], "ann", &judged)
        .await;
    let Err(BookError::Wrong(wrong)) = error else { panic!("{error:?}") };
    assert_eq!((wrong[0].piece, wrong[0].about.as_str()), (Some(limit.id), "limit per-client"));
    assert_eq!(wrong[0].path, "token_bucket.rate");
    // A rule that would lose its limit, and one that is new.
    let error = keeper
        .change(&[good.clone(), Change::Delete { id: limit.id, version: limit.version }], "ann", &judged)
        .await;
    assert!(matches!(&error, Err(BookError::Wrong(wrong)) if wrong.len() == 3), "{error:?}");
    let new = create(Kind::Rule, Some("orders"), "new", "limits: []");
    let error = keeper.change(&[good.clone(), new], "ann", &judged).await;
    assert!(
        matches!(&error, Err(BookError::Wrong(wrong)) if wrong[0].piece.is_none() && wrong[0].about == "rule orders/new")
    );
    // What cannot be done.
    for refused in [
        Change::Enable { id: limit.id, version: limit.version, enabled: false },
        Change::Move { id: limit.id, version: limit.version, before: Some(named(&book, "route orders").id) },
        create(Kind::File, None, "file", "version: 1"),
    ] {
        let error = keeper.change(&[good.clone(), refused], "ann", &judged).await;
        assert!(matches!(error, Err(BookError::Refused(_))), "{error:?}");
    }
    let gone =
        Change::SwitchRule { route: Some("orders".to_owned()), rule: "gone".to_owned(), enabled: false };
    let error = keeper.change(&[good.clone(), gone], "ann", &judged).await;
    assert!(matches!(error, Err(BookError::Missing(_))), "{error:?}");
    assert_eq!(keeper.read().await.unwrap(), book);
    assert_eq!(keeper.history(None, 100).await.unwrap().len(), 6);
}

async fn a_stale_change_is_refused(home: Home) {
    let (ann, bob) = (home.keeper(), home.keeper());
    let book = ann.change(&first_rules(), "ann", &judged).await.unwrap();
    let limit = named(&book, "limit per-client");
    let newer =
        bob.change(&[edit(limit, "token_bucket: { rate: 20/s, burst: 5 }")], "bob", &judged).await.unwrap();
    let other = create(Kind::Limit, None, "other", "sliding_log: { limit: 1, window: 1s }");
    let error =
        ann.change(&[other, edit(limit, "token_bucket: { rate: 30/s, burst: 5 }")], "ann", &judged).await;
    let Err(BookError::Stale(stale)) = error else { panic!("{error:?}") };
    assert_eq!(
        (stale[0].id, stale[0].made_on, stale[0].there_is),
        (limit.id, limit.version, Some(limit.version + 1))
    );
    assert_eq!(stale[0].by.as_deref(), Some("bob"));
    let error = ann.change(&[Change::Delete { id: NOBODY, version: 1 }], "ann", &judged).await;
    assert!(matches!(&error, Err(BookError::Stale(stale)) if stale[0].there_is.is_none()), "{error:?}");
    assert_eq!(ann.read().await.unwrap(), newer);
    // Switches have no version.
    let off = ann.change(&[Change::Switch { enabled: false }], "ann", &judged).await.unwrap();
    assert!(!off.enabled);
}

async fn two_who_change_at_the_same_time_lose_nothing(home: Home) {
    let keepers = [Arc::new(home.keeper()), Arc::new(home.keeper())];
    let book = keepers[0].change(&first_rules(), "ann", &judged).await.unwrap();
    let limit = named(&book, "limit per-client").id;
    let each = 8;
    let mut tasks = Vec::new();
    for (who, keeper) in keepers.iter().enumerate() {
        let keeper = Arc::clone(keeper);
        tasks.push(tokio::spawn(async move {
            let (mut done, mut stale) = (0, 0);
            while done < each {
                let book = keeper.read().await.unwrap();
                let piece = book.piece(limit).unwrap();
                let number: u32 = piece
                    .text
                    .trim_start_matches("sliding_log: { limit: ")
                    .split(',')
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap_or(0);
                let change = edit(piece, &format!("sliding_log: {{ limit: {}, window: 1s }}", number + 1));
                let by = format!("writer {who}");
                match keeper.change(&[change], &by, &judged).await {
                    Ok(_) => done += 1,
                    Err(BookError::Stale(_)) => stale += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            stale
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let book = keepers[1].read().await.unwrap();
    // Every edit was made on the one before it.
    let piece = book.piece(limit).unwrap();
    assert_eq!(piece.text, format!("sliding_log: {{ limit: {}, window: 1s }}", 2 * each));
    assert_eq!(piece.version, 1 + 2 * i64::from(each));
    let edits =
        keepers[0].history(None, 1000).await.unwrap().into_iter().filter(|entry| entry.action == "edit");
    assert_eq!(edits.count(), 2 * each as usize);
}

async fn what_a_hand_changed_is_noticed(home: Home) {
    let keeper = home.keeper();
    let mut known = keeper.change(&first_rules(), "ann", &judged).await.unwrap().revision;
    for statement in [
        "UPDATE tollgate_pieces SET text = 'token_bucket: { rate: 11/s, burst: 5 }' WHERE kind = 'limit' AND name = 'per-client'",
        "UPDATE tollgate_pieces SET enabled = 0 WHERE kind = 'rule' AND route = 'orders' AND name = 'create'",
        "UPDATE tollgate_pieces SET name = 'by-ip' WHERE kind = 'rule' AND route IS NULL",
        "UPDATE tollgate_pieces SET place = 5 WHERE kind = 'rule' AND name = 'read'",
        "INSERT INTO tollgate_pieces (kind, name, text) VALUES ('limit', 'new', 'sliding_log: { limit: 1, window: 1s }')",
        "DELETE FROM tollgate_pieces WHERE kind = 'rule' AND name = 'by-ip'",
        "UPDATE tollgate_book SET enabled = 0",
    ] {
        home.sql(statement).await;
        let revision = keeper.revision().await.unwrap();
        assert_ne!(revision, known, "{statement}");
        known = revision;
    }
    let book = keeper.read().await.unwrap();
    assert_eq!(book.revision, known);
    assert_eq!(
        names(&book),
        [
            "limit per-client",
            "limit new",
            "upstream orders",
            "route orders",
            "rule orders/read",
            "rule orders/create"
        ]
    );
    assert!(!book.enabled && !named(&book, "rule orders/create").enabled);
    judged(&book).unwrap();
}

async fn a_broken_row_is_named(home: Home) {
    let keeper = home.keeper();
    let book = keeper.change(&first_rules(), "ann", &judged).await.unwrap();
    home.sql(
        "UPDATE tollgate_pieces SET text = 'limits: [ { use: gone, key: [ip] } ]' WHERE name = 'create'",
    )
    .await;
    let broken = keeper.read().await.unwrap();
    let wrong = judged(&broken).unwrap_err();
    assert_eq!(wrong[0].piece, Some(named(&book, "rule orders/create").id));
    assert_eq!(
        wrong[0].to_string(),
        "rule orders/create:1:18: limits[0].use: there is no limit called \"gone\"; known are `per-client`"
    );
    // Another change is refused meanwhile, whatever it is; only the switch can be turned.
    let limit = named(&broken, "limit per-client");
    let error = keeper.change(&[edit(limit, "token_bucket: { rate: 20/s, burst: 5 }")], "ann", &judged).await;
    assert!(matches!(error, Err(BookError::Wrong(_))), "{error:?}");
    assert!(!keeper.change(&[Change::Switch { enabled: false }], "ann", &judged).await.unwrap().enabled);
    home.sql("UPDATE tollgate_pieces SET kind = 'rool' WHERE name = 'create'").await;
    // A row that is no piece at all: the rest is told, the switch can be turned, and none of it is rules.
    let wrong = judged(&keeper.read().await.unwrap()).unwrap_err();
    assert!(keeper.change(&[Change::Switch { enabled: true }], "ann", &judged).await.unwrap().enabled);
    let error = keeper.change(&[edit(limit, "token_bucket: { rate: 20/s, burst: 5 }")], "ann", &judged).await;
    assert!(matches!(error, Err(BookError::Wrong(_))), "{error:?}");
    assert!(
        wrong[0].to_string().contains("of tollgate_pieces (create):1:1: kind: must be one of"),
        "{}",
        wrong[0]
    );
}

/// More than fit in one statement, of every kind.
async fn many_rows_are_written_moved_and_deleted(home: Home) {
    const MANY: usize = 1203;
    let keeper = home.keeper();
    let changes: Vec<_> = (0..MANY)
        .map(|nth| create(Kind::Limit, None, &format!("l{nth}"), "concurrency: { limit: 1 }"))
        .collect();
    let book = keeper.change(&changes, "ann", &judged).await.unwrap();
    let wanted: Vec<_> = (0..MANY).map(|nth| format!("limit l{nth}")).collect();
    assert_eq!(names(&book), wanted);
    let entries = keeper.history(None, 1000).await.unwrap();
    assert_eq!((entries.len(), entries[0].about.as_str()), (1000, wanted[MANY - 1].as_str()));
    assert!(entries.is_sorted_by_key(|entry| -entry.number));

    // The last to the front moves every other; all but one of three go.
    let last = &book.pieces[MANY - 1];
    let mut changes =
        vec![Change::Move { id: last.id, version: last.version, before: Some(book.pieces[0].id) }];
    let gone = book.pieces.iter().enumerate().filter(|(nth, _)| nth % 3 != 2);
    changes.extend(gone.map(|(_, piece)| Change::Delete { id: piece.id, version: piece.version }));
    let book = keeper.change(&changes, "bob", &judged).await.unwrap();
    let mut left: Vec<_> = (0..MANY).filter(|nth| nth % 3 == 2).map(|nth| format!("limit l{nth}")).collect();
    left.rotate_right(1);
    assert_eq!(names(&book), left);
    assert_eq!(home.keeper().read().await.unwrap(), book);
}

async fn nodes_are_known(home: Home) {
    let keeper = home.keeper();
    let node = |name: &str, revision: &str, at_ms| NodeSeen {
        node: name.to_owned(),
        revision: revision.to_owned(),
        failure: None,
        at_ms,
    };
    let day = 86_400_000;
    for seen in
        [node("gone", "1", 1), node("a", "1", 2 * day), node("a", "2", 2 * day + 1), node("b", "1", 2 * day)]
    {
        keeper.seen(&seen).await.unwrap();
    }
    assert_eq!(home.keeper().nodes().await.unwrap(), [node("a", "2", 2 * day + 1), node("b", "1", 2 * day)]);
    let _: Book = keeper.read().await.unwrap();
}
