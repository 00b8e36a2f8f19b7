//! The rule file as a book.

use crate::home::{create, edit, folder};
use std::{fs, os::unix::fs::PermissionsExt, path::Path};
use tollgate_book::{BookError, Change, FileKeeper, Keeper, Kind, Versions, applied, compose, judge};

const TEXT: &str = "\
version: 1 # ours
limits: { a: { sliding_log: { limit: 1, window: 1s } } }
everywhere:
  # everybody
  - name: per-ip
    limits: [ { use: a, key: [ip] } ]
";

fn keeper(folder: &Path) -> FileKeeper {
    let path = folder.join("tollgate.yaml");
    fs::write(&path, TEXT).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    FileKeeper::new(path)
}

#[tokio::test]
async fn a_file_is_one_piece() {
    let folder = folder();
    let (keeper, judged) = (keeper(&folder), judge("", |_| None));
    let book = keeper.read().await.unwrap();
    assert!(book.enabled);
    assert_eq!((book.pieces.len(), book.pieces[0].kind, book.pieces[0].text.as_str()), (1, Kind::File, TEXT));
    let wider = TEXT.replace("limit: 1", "limit: 2");
    let newer = keeper.change(&[edit(&book.pieces[0], &wider)], "ann", &judged).await.unwrap();
    assert_eq!(fs::read_to_string(folder.join("tollgate.yaml")).unwrap(), wider);
    let mode = fs::metadata(folder.join("tollgate.yaml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(newer.pieces[0].changed.by, "ann");
    assert_ne!(newer.revision, book.revision);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");

    // Made on a text that is not there any more: changed from here, and by hand.
    let error = keeper.change(&[edit(&book.pieces[0], TEXT)], "bob", &judged).await;
    assert!(
        matches!(&error, Err(BookError::Stale(stale)) if stale[0].by.as_deref() == Some("ann")),
        "{error:?}"
    );
    fs::write(folder.join("tollgate.yaml"), TEXT).unwrap();
    let error = keeper.change(&[edit(&newer.pieces[0], &wider)], "bob", &judged).await;
    assert!(matches!(error, Err(BookError::Stale(_))), "{error:?}");

    let now = keeper.read().await.unwrap();
    let error = keeper.change(&[edit(&now.pieces[0], "version: 2")], "bob", &judged).await;
    let Err(BookError::Wrong(wrong)) = error else { panic!("{error:?}") };
    assert_eq!((wrong[0].piece, wrong[0].path.as_str()), (Some(now.pieces[0].id), "version"));
    let error = keeper.change(&[create(Kind::Limit, None, "b", "x")], "bob", &judged).await;
    assert!(matches!(error, Err(BookError::Refused(_))), "{error:?}");
    assert_eq!(fs::read_to_string(folder.join("tollgate.yaml")).unwrap(), TEXT);
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn switches_change_one_word() {
    let folder = folder();
    let (keeper, judged) = (keeper(&folder), judge("", |_| None));
    let changes = [
        Change::Switch { enabled: false },
        Change::SwitchRule { route: None, rule: "per-ip".to_owned(), enabled: false },
    ];
    let book = keeper.change(&changes, "ann", &judged).await.unwrap();
    assert!(!book.enabled);
    let expected =
        TEXT.replace("# ours", "# ours\nenabled: false").replace("per-ip", "per-ip\n    enabled: false");
    assert_eq!(fs::read_to_string(folder.join("tollgate.yaml")).unwrap(), expected);
    let told: Vec<_> =
        keeper.history(None, 9).await.unwrap().iter().map(|entry| entry.about.clone()).collect();
    assert_eq!(told, ["rule per-ip", "everything"]);
    let book = keeper.change(&[Change::Switch { enabled: true }], "ann", &judged).await.unwrap();
    assert!(book.enabled);
    let unknown = Change::SwitchRule { route: None, rule: "gone".to_owned(), enabled: false };
    assert!(matches!(keeper.change(&[unknown], "ann", &judged).await, Err(BookError::Missing(_))));
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn the_global_switch_is_turned_whatever_else_is_wrong() {
    let folder = folder();
    let (keeper, judged) = (keeper(&folder), judge("", |_| None));
    let broken = TEXT.replace("limit: 1", "limit: 0");
    fs::write(folder.join("tollgate.yaml"), &broken).unwrap();
    let book = keeper.change(&[Change::Switch { enabled: false }], "ann", &judged).await.unwrap();
    assert!(!book.enabled);
    let off = broken.replace("# ours", "# ours\nenabled: false");
    assert_eq!(fs::read_to_string(folder.join("tollgate.yaml")).unwrap(), off);
    let rule = Change::SwitchRule { route: None, rule: "per-ip".to_owned(), enabled: false };
    let error = keeper.change(&[Change::Switch { enabled: true }, rule], "ann", &judged).await;
    assert!(matches!(error, Err(BookError::Wrong(_))), "{error:?}");
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn what_a_hand_writes_meanwhile_is_not_overwritten() {
    let folder = folder();
    let (keeper, path) = (keeper(&folder), folder.join("tollgate.yaml"));
    let book = keeper.read().await.unwrap();
    let theirs = TEXT.replace("limit: 1", "limit: 8");
    // After the file was read, before it is written.
    let meanwhile = |_: &_| {
        fs::write(&path, &theirs).unwrap();
        Ok(())
    };
    let ours = edit(&book.pieces[0], &TEXT.replace("limit: 1", "limit: 9"));
    let error = keeper.change(&[ours], "ann", &meanwhile).await;
    let there_is = keeper.read().await.unwrap().pieces[0].version;
    let Err(BookError::Stale(stale)) = error else { panic!("{error:?}") };
    assert_eq!((stale[0].made_on, stale[0].there_is), (book.pieces[0].version, Some(there_is)));
    assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn what_would_be_is_worked_out_without_writing() {
    let folder = folder();
    let keeper = keeper(&folder);
    let book = keeper.read().await.unwrap();
    let draft = [Change::Edit {
        id: book.pieces[0].id,
        version: -1,
        name: None,
        text: TEXT.replace("limit: 1", "limit: 7"),
    }];
    assert!(matches!(applied(&book, &draft, Versions::Asked), Err(BookError::Stale(_))));
    let would_be = applied(&book, &draft, Versions::Waived).unwrap();
    assert_eq!(compose("", &would_be, |_| None).unwrap().limits[0].limit.most(), 7);
    assert_eq!(keeper.read().await.unwrap(), book);
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_link_stays_one() {
    let folder = folder();
    let kept = keeper(&folder);
    let link = folder.join("link.yaml");
    std::os::unix::fs::symlink("tollgate.yaml", &link).unwrap();
    let keeper = FileKeeper::new(link.clone());
    keeper.change(&[Change::Switch { enabled: false }], "ann", &judge("", |_| None)).await.unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(!kept.read().await.unwrap().enabled);
    fs::remove_dir_all(folder).unwrap();
}
