//! A running server whose admin listener has users, and somebody who asks it with curl.

use crate::{folder::Folder, opened::Opened, replay::tollgate};
use serde_json::Value;
use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};
use testkit::Upstream;

/// A server with an upstream behind it.
pub(crate) struct Stage {
    pub(crate) opened: Opened,
    pub(crate) file: String,
    folder: Folder,
    _upstream: Upstream,
    pub(crate) viewer: String,
    pub(crate) operator: String,
    pub(crate) admin: String,
}

/// Secrets that its environment has, plain, long, and with letters that are escaped.
pub(crate) const ENVIRONMENT: [(&str, &str); 3] = [
    ("PLAIN_KEY", "s3cret-of-theirs"),
    (
        "LONG_KEY",
        "a-long-s3cret-that-goes-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on",
    ),
    ("ODD_KEY", "s3cret \"with\" quotes\tand a \\"),
];

/// What was answered.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A fresh token and its line, as the program prints them.
pub(crate) fn fresh() -> (String, String) {
    let printed = String::from_utf8(tollgate(&["token"], "").stdout).unwrap();
    let token = printed.split_whitespace().find(|word| word.starts_with("tg_")).unwrap();
    let hash = printed.split('"').find(|word| word.starts_with("sha256:")).unwrap();
    (token.to_owned(), hash.to_owned())
}

/// The rules that the document's examples speak of.
pub(crate) fn rules(admin: &str, upstream: &str) -> String {
    format!(
        "version: 1
listen: {{ gateway: 127.0.0.1:0, admin: {admin} }}
limits:
  per-client: {{ token_bucket: {{ rate: 1/h, burst: 3 }}, overrides: {{ vip-7: {{ rate: 1/h, burst: 50 }} }} }}
upstreams: {{ orders: {{ servers: [ \"{upstream}\" ] }} }}
everywhere:
  - {{ name: per-ip, limits: [ {{ token_bucket: {{ rate: 1000/s, burst: 2000 }}, key: [ip] }} ] }}
routes:
  - name: orders
    when: {{ path: \"/orders/**\" }}
    upstream: orders
    rules:
      - name: create
        when: {{ method: POST }}
        limits: [ {{ use: per-client, key: [header.x-api-key] }} ]
"
    )
}

impl Stage {
    /// With a viewer `vic`, an operator `ops` and an admin `ada`.
    pub(crate) fn guarded() -> Self {
        let [viewer, operator, admin] = [fresh(), fresh(), fresh()];
        let user = |name: &str, role: &str, hash: &str| {
            format!("{{ name: {name}, role: {role}, token: \"{hash}\" }}")
        };
        let users = [
            user("vic", "viewer", &viewer.1),
            user("ops", "operator", &operator.1),
            user("ada", "admin", &admin.1),
        ];
        let listener = format!("{{ address: 127.0.0.1:0, users: [ {} ] }}", users.join(", "));
        Self::on(&listener, [viewer.0, operator.0, admin.0])
    }

    /// For everybody on this machine.
    pub(crate) fn local() -> Self {
        Self::on("127.0.0.1:0", [String::new(), String::new(), String::new()])
    }

    /// The same, with its rules in SQLite.
    pub(crate) fn of_rows() -> Self {
        let (upstream, folder) = (Upstream::ok(), Folder::new());
        let from =
            format!("rules_from: {{ source: \"sqlite://{}\" }}\n", folder.path().join("rules.db").display());
        let whole = rules("127.0.0.1:0", &upstream.url()) + &from;
        let pushed = tollgate(&["rules", "push", "-c", &folder.file("whole.yaml", &whole)], "");
        assert!(pushed.status.success(), "{pushed:?}");
        let own = whole.split("limits:").next().unwrap().to_owned() + &from;
        let file = folder.file("tollgate.yaml", own);
        let opened = Opened::start(&file, &["gateway", "admin"]);
        let [viewer, operator, admin] = [const { String::new() }; 3];
        Self { opened, file, folder, _upstream: upstream, viewer, operator, admin }
    }

    fn on(listener: &str, [viewer, operator, admin]: [String; 3]) -> Self {
        let upstream = Upstream::ok();
        let folder = Folder::new();
        let file = folder.file("tollgate.yaml", rules(listener, &upstream.url()));
        let opened = Opened::start_in(&ENVIRONMENT, &file, &["gateway", "admin"]);
        Self { opened, file, folder, _upstream: upstream, viewer, operator, admin }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.opened.address("admin")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }

    /// Asks, with a token where there is one, and a body where there is one.
    pub(crate) fn ask(&self, method: &str, path: &str, token: &str, body: Option<&Value>) -> Told {
        let mut more = Vec::new();
        if !token.is_empty() {
            more.extend(["-H".to_owned(), format!("authorization: Bearer {token}")]);
        }
        if let Some(body) = body {
            more.extend(["-H".to_owned(), "content-type: application/json".to_owned()]);
            more.extend(["--data-raw".to_owned(), body.to_string()]);
        }
        self.curl(method, path, &more.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let told = self.ask("GET", path, &self.viewer, None);
        assert_eq!(told.status, 200, "{path}: {told:?}");
        told.json()
    }

    /// Asks with what else curl is told.
    pub(crate) fn curl(&self, method: &str, path: &str, more: &[&str]) -> Told {
        let url = format!("http://{}{path}", self.address());
        let fixed = ["-s", "-i", "-g", "--path-as-is", "--max-time", "60", "-X", method, &url];
        let output = Command::new("curl").args(fixed).args(more).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let (head, body) =
            told.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {path}: {output:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Told { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// Sends a request of this client to the gateway; its status.
    pub(crate) fn order(&self, client: &str) -> u16 {
        let url = format!("http://{}/orders/1", self.opened.address("gateway"));
        let key = format!("x-api-key: {client}");
        let status = crate::served::curl(&[
            "-s",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "-d",
            "x",
            "-H",
            &key,
            &url,
        ]);
        status.parse().unwrap()
    }
}

impl Told {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Where a file of the repository is.
pub(crate) fn repository(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

/// The document.
pub(crate) fn document() -> Value {
    serde_json::from_str(&fs::read_to_string(repository("docs/openapi-admin.json")).unwrap()).unwrap()
}

/// Every operation of the document: method, path, and what it says.
pub(crate) fn operations(document: &Value) -> impl Iterator<Item = (String, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap();
        methods.iter().map(move |(method, says)| (method.to_ascii_uppercase(), path.as_str(), says))
    })
}
