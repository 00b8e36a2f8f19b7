//! The database goes away, and comes back.

use crate::home::{edit, first_rules, folder, judged, named};
use std::fs;
use testkit::{DatabaseServer, eventually_async};
use tollgate_book::{BookError, Cache, Keeper, SqlKeeper};

async fn check(server: DatabaseServer) {
    let keeper = SqlKeeper::at(&server.fresh()).unwrap();
    let book = keeper.change(&first_rules(), "ann", &judged).await.unwrap();
    server.stop();
    let error = keeper.read().await.unwrap_err();
    assert!(matches!(error, BookError::Unreachable(_)), "{error}");
    let limit = named(&book, "limit per-client");
    let change = edit(limit, "token_bucket: { rate: 20/s, burst: 5 }");
    let unmade = keeper.change(std::slice::from_ref(&change), "ann", &judged).await.unwrap_err();
    for told in [error.to_string(), unmade.to_string(), format!("{:?}", keeper.source())] {
        assert!(!told.contains(server.password()), "{told}");
    }
    server.restart();
    // Nothing has to be told to it.
    let again = eventually_async("the database to answer", || async { keeper.read().await.ok() }).await;
    assert_eq!(again, book);
    keeper.change(&[change], "ann", &judged).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_is_stopped_and_started() {
    check(DatabaseServer::mariadb()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_stopped_and_started() {
    check(DatabaseServer::postgres()).await;
}

#[tokio::test]
async fn nobody_listens_there() {
    let keeper = SqlKeeper::at("mysql://ann:hush-hush@127.0.0.1:1/rules").unwrap();
    let error = keeper.read().await.unwrap_err().to_string();
    assert!(error.contains("mysql://ann@127.0.0.1:1/rules") && !error.contains("hush"), "{error}");
    assert!(SqlKeeper::at("oracle://x").is_err());
}

/// A connection stays with the file that it opened, whatever comes in its place.
#[tokio::test]
async fn a_file_that_is_another_now_is_followed_and_one_that_is_gone_is_missed() {
    let folder = folder();
    let (path, other) = (folder.join("rules.db"), folder.join("other.db"));
    let keeper = |path: &std::path::Path| SqlKeeper::at(&format!("sqlite://{}", path.display())).unwrap();
    let followed = keeper(&path);
    assert!(followed.read().await.unwrap().is_new);
    let first = followed.change(&first_rules(), "ann", &judged).await.unwrap();
    assert!(!first.is_new);

    // As a backup that is put back.
    let restored = keeper(&other).change(&first_rules()[..1], "bob", &judged).await.unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(followed.read().await.unwrap(), restored);
    assert_eq!(followed.revision().await.unwrap(), restored.revision);

    fs::rename(&path, &other).unwrap();
    let error = followed.revision().await.unwrap_err().to_string();
    assert!(error.contains("the file is gone") && !path.exists(), "{error}");
    fs::rename(&other, &path).unwrap();
    assert_eq!(followed.read().await.unwrap(), restored);
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_cache_gives_back_what_was_kept() {
    let folder = folder();
    let keeper = SqlKeeper::at(&format!("sqlite://{}", folder.join("rules.db").display())).unwrap();
    let book = keeper.change(&first_rules(), "ann", &judged).await.unwrap();
    let cache = Cache::new(folder.join("cache.yaml"));
    assert!(cache.read(|_| None).is_err());
    cache.keep(&book).unwrap();
    cache.keep(&book).unwrap();
    let read = cache.read(|_| None).unwrap();
    let rules = |book| format!("{:?}", tollgate_book::compose(crate::home::OWN, book, |_| None).unwrap());
    assert_eq!(rules(&read), rules(&book));
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(folder.join("cache.yaml")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    fs::write(folder.join("cache.yaml"), "version: 1\nlimits: [").unwrap();
    assert!(cache.read(|_| None).is_err());
    fs::remove_dir_all(folder).unwrap();
}
