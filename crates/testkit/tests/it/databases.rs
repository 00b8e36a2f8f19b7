//! Database servers: they start, keep what they were told over a stop, and end.

use testkit::DatabaseServer;

fn check(server: &DatabaseServer) {
    let (one, other) = (server.fresh(), server.fresh());
    assert_ne!(one, other);
    assert!(one.contains(server.password()));
    server.sql(&one, "CREATE TABLE a (b INT)");
    server.sql(&one, "INSERT INTO a VALUES (7)");
    assert!(server.try_sql(&other, "SELECT b FROM a").is_err());
    server.stop();
    assert!(server.try_sql(&one, "SELECT b FROM a").is_err());
    server.restart();
    assert_eq!(server.sql(&one, "SELECT b, b + 1 FROM a").trim(), "7\t8");
}

#[test]
fn mariadb_keeps_its_rows_over_a_stop() {
    check(&DatabaseServer::mariadb());
}

#[test]
fn postgres_keeps_its_rows_over_a_stop() {
    check(&DatabaseServer::postgres());
}
