//! Who may look, as the rule file says, and as it is changed.

use super::stage::{Stage, fresh};
use crate::{folder::Folder, replay::tollgate};
use serde_json::json;
use std::fs;
use testkit::eventually;

#[test]
fn a_listener_that_everybody_reaches_does_not_open() {
    let folder = Folder::new();
    for (listener, why) in [
        ("0.0.0.0:0", "listens beyond loopback: set `users`"),
        ("{ address: \"0.0.0.0:0\", proxied: true }", "listens beyond loopback: set `users`"),
    ] {
        let file = folder.file("t.yaml", format!("version: 1\nlisten: {{ admin: {listener} }}\n"));
        let ran = tollgate(&["serve", "-c", &file], "");
        assert_eq!(ran.status.code(), Some(1));
        let told = String::from_utf8(ran.stderr).unwrap();
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn users_come_and_go_with_the_file_and_their_sessions_with_them() {
    let stage = Stage::guarded();
    let login = json!({ "token": stage.viewer });
    let told = stage.ask("POST", "/v1/login", "", Some(&login));
    assert_eq!(told.status, 200);
    let cookie = told.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let me = |cookie: &str| stage.curl("GET", "/v1/me", &["-H", &format!("cookie: {cookie}")]).status;
    assert_eq!(me(&cookie), 200);

    let (token, hash) = fresh();
    let (_, rest) = stage.text().split_once("users: [ ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let vic = rest.split_once("}, ").unwrap().0.to_owned() + "}";
    let new = format!("{{ name: zoe, role: viewer, token: \"{hash}\" }}");
    fs::write(&stage.file, stage.text().replace(&vic, &new)).unwrap();
    eventually("the new one is let in", || {
        (stage.ask("GET", "/v1/me", &token, None).status == 200).then_some(())
    });
    assert_eq!(stage.ask("GET", "/v1/me", &stage.viewer, None).status, 401);
    assert_eq!(me(&cookie), 401);
    assert_eq!(stage.ask("GET", "/v1/me", &stage.admin, None).status, 200);
}

#[test]
fn a_request_is_explained_to_those_who_show_a_token() {
    let stage = Stage::guarded();
    let url = format!("http://{}", stage.address());
    let explain = |token: Option<&str>| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(["explain", &stage.file, "--method", "POST", "--path", "/orders/1", "--ask", &url]);
        command.env_remove("TOLLGATE_TOKEN");
        if let Some(token) = token {
            command.env("TOLLGATE_TOKEN", token);
        }
        command.output().unwrap()
    };
    let without = explain(None);
    assert!(String::from_utf8_lossy(&without.stderr).contains("or TOLLGATE_TOKEN has it"), "{without:?}");
    let with = explain(Some(&stage.viewer));
    assert!(with.status.success(), "{with:?}");
}
