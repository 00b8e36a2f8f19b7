//! The command line arguments and their help.

use clap::{Parser, Subcommand};
#[cfg(feature = "demo")]
use std::net::SocketAddr;
use std::{net::IpAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

/// A file has mistakes or cannot be read, a line of input is invalid, or a store or server does not answer.
pub(crate) const EXIT_FAILED: u8 = 1;
/// The command line is invalid; clap exits with this code too.
pub(crate) const EXIT_MISUSED: u8 = 2;

/// A rate limiter: gateway, decision service, and tools to test rules before they are live.
#[derive(Parser)]
#[command(name = "tollgate", version, term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the listeners of a rule file: the gateway, the decision APIs, health and metrics.
    ///
    /// The server reloads the file when it changes: a saved change is in force within a second, completely or not at all, and
    /// keeps what was consumed. SIGTERM and Ctrl-C drain: /readyz answers 503, then the listeners close, then requests in flight
    /// finish.
    #[command(after_long_help = SERVE_HELP)]
    Serve(ServeArgs),
    /// Report every mistake in a rule file.
    ///
    /// Prints one line for each mistake, as FILE:LINE:COLUMN: SETTING: WHAT. Exit code 0 if there is none, 1 otherwise.
    Check(CheckArgs),
    /// Show which route and rules apply to a request, and why others do not.
    #[command(after_long_help = EXPLAIN_HELP)]
    Explain(ExplainArgs),
    /// Copy rules between a file and the database in its rules_from.
    #[command(after_long_help = RULES_HELP)]
    Rules(RulesArgs),
    /// Print the JSON Schema of rule files, for editors.
    Schema,
    /// Create a token for a user of the admin listener, and the line with its hash for the rule file.
    ///
    /// The token is printed once and not stored; the rule file contains only its hash.
    Token,
    /// Run recorded traffic through limits, at the recorded times.
    ///
    /// Reads one JSON object per line and prints a decision for each. The clock is set by the lines, so a day of traffic is
    /// replayed in seconds and every run prints the same decisions.
    #[command(after_long_help = REPLAY_HELP)]
    Replay(ReplayArgs),
    /// Run a gateway with a built-in service and clients, and show its decisions.
    ///
    /// The gateway, the service and the clients talk HTTP on this machine. The terminal shows which requests are allowed,
    /// delayed and denied, and by which rule. Meanwhile, send requests with curl, or edit the rule file and see the change take
    /// effect. Ctrl-C ends the demo and removes its files.
    #[cfg(feature = "demo")]
    Demo(DemoArgs),
    /// Watch a running server: requests allowed, delayed and denied, by rule, and the busiest keys.
    ///
    /// Reads the server's admin listener once a second. Without a terminal, prints one plain line a second.
    Top(TopArgs),
    /// Compare all algorithms on the same traffic, side by side.
    ///
    /// Bursts, a slow stream, a rush around the edge of a window: one mark for every request shows whether it is allowed,
    /// delayed or denied. All limits allow 10 a second on average.
    Algorithms(AlgorithmsArgs),
}

#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// The rule file
    #[arg(short, long, value_name = "FILE", default_value = "tollgate.yaml")]
    pub(crate) config: PathBuf,

    /// The rule file, without -c
    #[arg(value_name = "FILE", hide = true, conflicts_with = "config")]
    pub(crate) file: Option<PathBuf>,

    /// Worker threads of each listener [default: one per core; half as many for the grpc listener]. Set `--workers 2` on a
    /// machine with two cores that serves only gRPC
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<NonZeroUsize>,

    /// How long to continue serving after a signal, with /readyz answering 503, before the listeners close
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub(crate) drain_pause: Duration,

    /// How long requests in flight may take to finish after that, before they are aborted
    #[arg(long, value_name = "TIME", default_value = "25s", value_parser = time)]
    pub(crate) drain_deadline: Duration,

    /// Record no metrics, to measure their cost
    #[arg(long, hide = true)]
    pub(crate) without_metrics: bool,
}

#[derive(clap::Args)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    pub(crate) way: RulesWay,
}

#[derive(Subcommand)]
pub(crate) enum RulesWay {
    /// Write the rules of a file to the database: all of them, or none.
    Push(PushArgs),
    /// Write the rules of the database to a rule file.
    Pull(PullArgs),
    /// Show the differences between a file and the database. Exit code 0 if there are none, 1 otherwise.
    Diff(DiffArgs),
}

#[derive(clap::Args)]
pub(crate) struct PushArgs {
    /// The rule file with the rules_from of the database
    #[arg(short, long, value_name = "FILE", default_value = "tollgate.yaml")]
    pub(crate) config: PathBuf,

    /// The file with the rules [default: the file of --config]
    pub(crate) file: Option<PathBuf>,

    /// Push even if the database was changed after the file was pulled, or has rules that are not from it
    #[arg(long)]
    pub(crate) force: bool,

    /// Your name in the audit log
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) by: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct PullArgs {
    /// The rule file with the rules_from of the database
    #[arg(short, long, value_name = "FILE", default_value = "tollgate.yaml")]
    pub(crate) config: PathBuf,

    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct DiffArgs {
    /// The rule file with the rules_from of the database
    #[arg(short, long, value_name = "FILE", default_value = "tollgate.yaml")]
    pub(crate) config: PathBuf,

    /// The file with the rules [default: the file of --config]
    pub(crate) file: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// The rule file; - reads standard input
    pub(crate) file: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct ExplainArgs {
    /// The rule file; - reads standard input
    pub(crate) file: PathBuf,

    /// The method of the request
    #[arg(long, default_value = "GET")]
    pub(crate) method: String,

    /// The path of the request, with its query
    #[arg(long)]
    pub(crate) path: String,

    /// A header, such as 'x-api-key: k'; can be repeated
    #[arg(long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,

    /// The requested host [default: the Host header]
    #[arg(long)]
    pub(crate) host: Option<String>,

    /// The address of the peer; if it is one of the trusted_proxies, X-Forwarded-For names the client
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) ip: IpAddr,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Show the state of each bucket, read from the admin listener of a running server, such as http://127.0.0.1:9090
    #[arg(long, value_name = "URL")]
    pub(crate) ask: Option<String>,

    /// A file with your token, if the listener has users; or set the environment variable TOLLGATE_TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// Parses a duration in the form of rule files.
fn time(text: &str) -> Result<Duration, String> {
    if text == "0s" || text == "0" {
        return Ok(Duration::ZERO);
    }
    tollgate_rules::parse_duration(text).map_err(|error| error.to_string())
}

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("deciding").required(true).args(["limits", "rules"])))]
pub(crate) struct ReplayArgs {
    /// A limit, such as 'token_bucket: { rate: 10/s, burst: 5 }'; if repeated, all are charged or none is
    #[arg(long = "limit", value_name = "LIMIT")]
    pub(crate) limits: Vec<String>,

    /// A rule file whose rules decide; lines are then requests. Its listeners and its store are not used
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,

    /// The store: memory: (this process, the default), or a Redis, such as redis://127.0.0.1:6379/0
    #[arg(long, value_name = "STORE", default_value = "memory:", hide_default_value = true)]
    pub(crate) store: String,

    /// The file to replay [default: standard input, as with -]
    pub(crate) file: Option<PathBuf>,
}

#[cfg(feature = "demo")]
#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// End after this time, such as 10s [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(crate) lasting: Option<Duration>,

    /// Print a plain line a second, as without a terminal
    #[arg(long)]
    pub(crate) plain: bool,

    /// The address of the gateway [default: 127.0.0.1:8080, or a free port if that is in use]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) gateway: Option<SocketAddr>,

    /// The address of health and metrics [default: 127.0.0.1:9090, or a free port if that is in use]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<SocketAddr>,
}

#[derive(clap::Args)]
pub(crate) struct TopArgs {
    /// The admin listener of the server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9090")]
    pub(crate) ask: String,

    /// A file with your token, if the listener has users; or set the environment variable TOLLGATE_TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// End after this time, such as 10s [default: at q or Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(crate) lasting: Option<Duration>,

    /// Print one line and exit
    #[arg(long, conflicts_with = "lasting")]
    pub(crate) once: bool,

    /// Print a plain line a second, as without a terminal
    #[arg(long)]
    pub(crate) plain: bool,

    /// Print JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct AlgorithmsArgs {
    /// Print the picture at once, without colours
    #[arg(long)]
    pub(crate) plain: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  a file has mistakes or cannot be read, a line of input is invalid, or a store or a server does
     not answer
  2  the command line, or a limit or store on it, is invalid";

pub(crate) const SERVE_HELP: &str = "\
A small file to start with:
  version: 1
  listen: { gateway: 127.0.0.1:8080, admin: 127.0.0.1:9090 }
  upstreams:
    app: { servers: [ \"http://127.0.0.1:3000\" ] }
  routes:
    - name: app
      when: { path: /** }
      upstream: app
      rules:
        - name: per-client
          limits: [ { token_bucket: { rate: 10/s, burst: 20 }, key: [ip] } ]

All keys: docs/reference.md, or `tollgate schema`.";

const RULES_HELP: &str = "\
To move rules from a file to a database: add rules_from to the file, push, then remove enabled,
limits, upstreams, everywhere and routes from the file. Other nodes need only the rest.
  tollgate rules push -c tollgate.yaml

Later, to edit the rules as a file instead of in SQL or the console:
  tollgate rules pull -c tollgate.yaml -o rules.yaml
  (edit rules.yaml)
  tollgate rules diff -c tollgate.yaml rules.yaml
  tollgate rules push -c tollgate.yaml rules.yaml

The first line of a pulled file has its revision. If the database has another revision by now, a
push is rejected, unless you add --force. Unchanged rules keep their rows. Comments are not copied;
those in a row stay as long as the row does not change.";

const EXPLAIN_HELP: &str = "\
Example:
  tollgate explain tollgate.yaml --method POST --path /orders --header 'x-api-key: k' --ip 10.1.2.3
  tollgate explain tollgate.yaml --path /orders --ask http://127.0.0.1:9090";

const REPLAY_HELP: &str = r#"Input, one JSON object per line; empty lines are skipped:
  at_us     time in microseconds since 1970, required; limits start at 0
  op        check (default), peek, reserve, cancel, refund, reset, set_limit, enter, leave
  key       selects the bucket: a string ("" by default), or a list of strings and nulls
  cost      units, 1 by default
  id        name of a reservation (reserve, cancel) or a held slot (enter, leave)
  up_to_us  longest wait of a reserve; no limit by default
  limit     new limit of set_limit, in the form of the command line
  index     index of the limit that set_limit changes, from 0; required with several limits

  reserve charges for a later time, if the algorithm can; cancel returns the units before that time.
  enter holds a slot of a concurrency limit until leave.

Output, one JSON object per line:
  {"at_us":0,"decision":"allow","wait_us":0,"remaining":4,"retry_after_us":0,"reset_after_us":100000}

  decision is allow, wait, deny, never (the cost exceeds what the limit can ever allow) or ok (the
  operation decides nothing). A time that is unknown is null. With several limits, denied_by is the
  index of the limit that denied, and statuses lists the status of each.

With --rules FILE, each line is a request:
  at_us     time in microseconds since 1970, required; conditions on the time use it
  path      required, with the query if there is one
  method    GET by default
  headers   an object of strings, or lists of strings
  host      the Host header by default
  ip        address of the peer, 127.0.0.1 by default; if it is one of the trusted_proxies,
            X-Forwarded-For names the client

  {"at_us":0,"route":"orders","rules":["create"],"decision":"allow","wait_us":0,"refused_by":null,
   "excess":null,"retry_after_us":0,"charges":[{"rule":"create","limit":"per-client","key":["k"],
   "cost":1,"decision":"allow","wait_us":0,"remaining":9,"retry_after_us":0,
   "reset_after_us":100000}],"shadows":[]}

  decision is none if no route matches; shadows lists what shadow rules would have decided.
  Requests never end: each slot of a concurrency limit is held for its max_hold.

Stores:
  memory:                      this process, the default
  redis://HOST:PORT/DATABASE   a Redis, which uses the time of each line: the same decisions. Keys
                               begin with tg-replay- and a name of this run, so that runs do not
                               affect each other. They are removed at the end, and expire after an
                               hour.

  The two differ only if times go back (memory keeps the latest of a limit, Redis that of a key), if
  a limit is set twice between two charges of a key (by a microsecond), and in waits of more than 71
  years. Redis rejects limits with windows finer than a microsecond.

Examples:
  echo '{"at_us":0}' | tollgate replay --limit 'token_bucket: { rate: 10/s, burst: 5 }'
  tollgate replay --limit 'sliding_log: { limit: 1, window: 1s }' \
                  --limit 'sliding_log: { limit: 5, window: 1m }' traffic.jsonl
  tollgate replay --limit 'sliding_counter: { limit: 9, window: 1m }' \
                  --store redis://127.0.0.1:6379/0 traffic.jsonl
  echo '{"at_us":0,"path":"/orders","ip":"10.1.2.3"}' | tollgate replay --rules tollgate.yaml

Limits:
  token_bucket: { rate: 10/s, burst: 5, initial: 5, refill: continuous | interval }
  leaky_bucket: { rate: 10/s, capacity: 20, delay: none | 5 }
  smooth_bursty: { rate: 5/s, max_burst: 1s, initial: 0 }
  smooth_warming_up: { rate: 5/s, warmup: 3s, cold_factor: 3 }
  fixed_window: { limit: 100, window: 1m | forever, align: epoch | first_hit }
  fixed_window: { limit: 100, window: day, align: calendar, time_zone: Asia/Shanghai }
  sliding_log: { limit: 5, window: 1m }
  sliding_window: { limit: 100, window: 1m, precision: 1s }
  sliding_counter: { limit: 100, window: 1m }
  concurrency: { limit: 20, max_hold: 1m }

Exit codes:
  0  success: every line was processed
  1  a line is invalid or its store did not answer (the lines before it were processed), or the file
     cannot be read
  2  the command line, or a limit or store on it, is invalid"#;
