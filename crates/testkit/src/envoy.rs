//! The real Envoy, which asks a rate limit service about every request.
//!
//! It comes with a Python package, into a folder of its own that `scripts/setup` makes; beside it there is a Python with
//! gRPC and Envoy's own messages.

use crate::listening::Listening;
use std::{
    env, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// An Envoy of this test's own, on a free port of 127.0.0.1.
#[derive(Debug)]
pub struct Envoy(Listening);

/// Where `scripts/setup` has put Envoy and a Python that speaks to rate limit services: `bin/envoy` and `bin/python`.
/// `ENVOY_CLIENTS` names another place.
#[must_use]
pub fn envoy_clients() -> PathBuf {
    let made = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients/envoy");
    env::var_os("ENVOY_CLIENTS").map_or_else(made, PathBuf::from)
}

impl Envoy {
    /// Starts one in front of `app`. Every request with the header `x-user` is asked about at `limits`, as the descriptor
    /// `user` of the domain `shop`; `filter` are further settings of the filter that asks, each on a line.
    ///
    /// # Panics
    ///
    /// If it does not start; with what it wrote.
    #[must_use]
    pub fn start(app: SocketAddr, limits: SocketAddr, filter: &[&str]) -> Self {
        let program = envoy_clients().join("bin/envoy");
        assert!(program.exists(), "there is no {}; please run scripts/setup test", program.display());
        Self(Listening::start(&program.display().to_string(), |command, directory, address| {
            let path = directory.join("envoy.yaml");
            fs::write(&path, bootstrap(address.port(), app, limits, filter)).expect("a file can be written");
            command.arg("-c").arg(&path).args(["--use-dynamic-base-id", "--concurrency", "1"]);
            command.args(["--log-level", "warn"]);
        }))
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

fn bootstrap(port: u16, app: SocketAddr, limits: SocketAddr, filter: &[&str]) -> String {
    let filter: String = filter.iter().map(|line| format!("              {line}\n")).collect();
    let types = "type.googleapis.com/envoy.extensions";
    let cluster = |name: &str, address: SocketAddr| {
        let (host, port) = (address.ip(), address.port());
        format!(
            "  - name: {name}
    type: STATIC
    connect_timeout: 2s
    load_assignment:
      cluster_name: {name}
      endpoints:
      - lb_endpoints:
        - endpoint: {{ address: {{ socket_address: {{ address: {host}, port_value: {port} }} }} }}
"
        )
    };
    format!(
        "static_resources:
  listeners:
  - name: in
    address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          \"@type\": {types}.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: in
          route_config:
            virtual_hosts:
            - name: all
              domains: [ \"*\" ]
              routes:
              - match: {{ prefix: / }}
                route:
                  cluster: app
                  rate_limits:
                  - actions: [ {{ request_headers: {{ header_name: x-user, descriptor_key: user }} }} ]
          http_filters:
          - name: envoy.filters.http.ratelimit
            typed_config:
              \"@type\": {types}.filters.http.ratelimit.v3.RateLimit
              domain: shop
              timeout: 2s
{filter}              rate_limit_service:
                transport_api_version: V3
                grpc_service: {{ envoy_grpc: {{ cluster_name: limits }} }}
          - name: envoy.filters.http.router
            typed_config: {{ \"@type\": {types}.filters.http.router.v3.Router }}
  clusters:
{}{}    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        \"@type\": {types}.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {{ http2_protocol_options: {{}} }}
",
        cluster("app", app),
        cluster("limits", limits),
    )
}
