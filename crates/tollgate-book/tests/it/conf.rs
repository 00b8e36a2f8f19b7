//! The table `t_ratelimite_conf`, as another program made it.

use crate::home::{Home, everywhere};
use tollgate_book::{BookError, Change, ConfKeeper, Keeper, compose};
use tollgate_rules::model::Excess;

everywhere! {
    rows_are_limits_and_rules,
    what_is_wrong_names_its_row,
    nothing_is_written_there,
}

const OWN: &str = "version: 1\nrules_from: { source: \"sqlite://x\", table: t_ratelimite_conf }\n\
    upstreams: { app: { servers: [ \"http://127.0.0.1:9001\" ] } }\nroutes: [ { name: app, upstream: app } ]\n";

async fn table(home: &Home) {
    // Nobody's name is in quotes, as in the statement it was made with.
    let (number, time) = match home.is_postgres() {
        true => ("SERIAL", "TIMESTAMP DEFAULT CURRENT_TIMESTAMP"),
        false => ("INTEGER PRIMARY KEY", "DATETIME DEFAULT CURRENT_TIMESTAMP"),
    };
    let patience = if home.is_postgres() { "REAL" } else { "FLOAT(3, 2)" };
    home.sql(&format!(
        "CREATE TABLE t_ratelimite_conf (configId {number}, channelType VARCHAR(24) NULL, interfaceNo VARCHAR(24) NULL, \
         interfaceUrl VARCHAR(128) NULL, rateLimit INT NULL, cache {patience} NULL, status SMALLINT DEFAULT 0 NOT NULL, \
         lastModifyTime {time})"
    ))
    .await;
}

async fn row(home: &Home, id: u32, url: &str, rate: &str, patience: &str, status: u32) {
    let columns = "configId, channelType, interfaceNo, interfaceUrl, rateLimit, cache, status";
    home.sql(&format!(
        "INSERT INTO t_ratelimite_conf ({columns}) VALUES ({id}, 'IBE+', '7', {url}, {rate}, {patience}, {status})"
    ))
    .await;
}

async fn rows_are_limits_and_rules(home: Home) {
    table(&home).await;
    row(&home, 1, "'/AirAvail'", "20", "NULL", 1).await;
    row(&home, 2, "'/AirFare'", "5", "0.35", 1).await;
    row(&home, 3, "'/Air\"Book''s'", "1", "0", 1).await;
    row(&home, 4, "'/Off'", "NULL", "NULL", 0).await;
    row(&home, 5, "'/AirFare'", "9", "0.5", 0).await;
    let keeper = ConfKeeper::at(&home.url).unwrap();
    let book = keeper.read().await.unwrap();
    let file = compose(OWN, &book, |_| None).unwrap_or_else(|wrong| panic!("{}", wrong[0]));
    let limits: Vec<_> = file.limits.iter().map(|limit| (limit.name.as_str(), limit.limit.most())).collect();
    assert_eq!(limits, [("/AirAvail", 20), ("/AirFare", 5), ("/Air\"Book's", 1), ("/Off", u32::MAX)]);
    let rules: Vec<_> = file.everywhere.iter().map(|rule| (rule.name.as_str(), &rule.excess)).collect();
    let wait = |ms| Excess::Wait(std::time::Duration::from_millis(ms));
    assert_eq!(
        rules,
        [("/AirAvail", &wait(500)), ("/AirFare", &wait(350)), ("/Air\"Book's", &Excess::Reject(None))]
    );

    let known = keeper.revision().await.unwrap();
    assert_eq!(known, book.revision);
    home.sql("UPDATE t_ratelimite_conf SET rateLimit = 21 WHERE configId = 1").await;
    assert_ne!(keeper.revision().await.unwrap(), known);
}

async fn what_is_wrong_names_its_row(home: Home) {
    table(&home).await;
    row(&home, 1, "'/a'", "20", "NULL", 1).await;
    row(&home, 2, "'/a'", "5", "NULL", 1).await;
    row(&home, 3, "'/b'", "0", "-1", 1).await;
    row(&home, 4, "NULL", "NULL", "NULL", 1).await;
    row(&home, 5, "'/c'", "1", "NULL", 7).await;
    let Err(BookError::Wrong(wrong)) = ConfKeeper::at(&home.url).unwrap().read().await else {
        panic!("it was read")
    };
    let told: Vec<_> = wrong.iter().map(ToString::to_string).collect();
    let expected = [
        "row 2 of t_ratelimite_conf (/a):1:1: interfaceUrl: is enabled for this URL, and so is row 1 of t_ratelimite_conf (/a); disable one of them",
        "row 3 of t_ratelimite_conf (/b):1:1: rateLimit: must be a whole number a second above 0; read 0",
        "row 3 of t_ratelimite_conf (/b):1:1: cache: must be seconds from 0 to 86400; read -1",
        "row 4 of t_ratelimite_conf (NULL):1:1: interfaceUrl: must be the end of a path, such as /AirAvail",
        "row 4 of t_ratelimite_conf (NULL):1:1: rateLimit: must be a whole number a second above 0; read NULL",
        "row 5 of t_ratelimite_conf (/c):1:1: status: must be 0 or 1; read 7",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        // MariaDB writes -1.00, SQLite -1.0.
        assert!(told.starts_with(expected), "{told}");
    }
}

async fn nothing_is_written_there(home: Home) {
    table(&home).await;
    let keeper = ConfKeeper::at(&home.url).unwrap();
    let judge = |_: &tollgate_book::Book| Ok(());
    let error = keeper.change(&[Change::Switch { enabled: false }], "ann", &judge).await.unwrap_err();
    assert!(matches!(&error, BookError::Refused(why) if why.contains("another program")), "{error}");
    assert_eq!(keeper.source().read_only, Some(error.to_string()));
    keeper.note("ann", "reset", "limit /a").await.unwrap();
    assert_eq!(keeper.history(None, 10).await.unwrap().len(), 1);
}
