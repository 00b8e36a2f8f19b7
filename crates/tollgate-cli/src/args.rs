//! What the command line takes, and the help it gives.

use clap::{Parser, Subcommand};
#[cfg(feature = "demo")]
use std::net::SocketAddr;
use std::{net::IpAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

/// A file has mistakes or could not be read, a line of input could not be obeyed, or a store or a server did not answer.
pub(crate) const EXIT_FAILED: u8 = 1;
/// The command line itself is wrong; clap's own refusals end with this too.
pub(crate) const EXIT_MISUSED: u8 = 2;

/// Every request pays its toll: rate limits, tried out before they are live.
#[derive(Parser)]
#[command(name = "tollgate", version, term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serve what a rule file names: a gateway in front of your service, health and metrics beside it.
    ///
    /// The file is followed while it is served: a saved change is in force within a second, whole or not at all, and keeps what
    /// was consumed. SIGTERM and Ctrl-C drain: health turns to not ready, then listeners close, then requests in flight finish.
    #[command(after_long_help = SERVE_HELP)]
    Serve(ServeArgs),
    /// Say everything that is wrong with a rule file.
    ///
    /// One line a mistake, as FILE:LINE:COLUMN: SETTING: WHAT. Exit code 0 if there is none, 1 if there are some.
    Check(CheckArgs),
    /// Say which route and rules a request would meet, and why not the others.
    #[command(after_long_help = EXPLAIN_HELP)]
    Explain(ExplainArgs),
    /// Move rules between a file and the database that its rules_from names.
    #[command(after_long_help = RULES_HELP)]
    Rules(RulesArgs),
    /// Print the JSON Schema of rule files, for editors.
    Schema,
    /// Make a token for somebody who may look at the admin listener, and the line of the rule file that knows it.
    ///
    /// The token is shown once and kept nowhere: the file has its hash.
    Token,
    /// Run recorded traffic through limits, on a clock of its own.
    ///
    /// Reads one JSON object a line and answers each with one. Time is what the lines say it is, so a day of traffic is
    /// replayed in moments and every run gives the same answers.
    #[command(after_long_help = REPLAY_HELP)]
    Replay(ReplayArgs),
    /// Watch a gateway limit its clients: everything is built in, nothing else is needed.
    ///
    /// A gateway, a service behind it and a handful of clients talk HTTP on this machine, and the terminal shows who passes,
    /// who waits and who is refused by which rule. Try the gateway with curl meanwhile, or edit its rule file and watch the
    /// change take hold. Ctrl-C ends it and leaves nothing behind.
    #[cfg(feature = "demo")]
    Demo(DemoArgs),
    /// Watch a running server: who passes, waits and is refused, by which rule, and which keys are busiest.
    ///
    /// Asks the server's admin listener once a second. Where there is no terminal, a plain line a second says the same.
    Top(TopArgs),
    /// Watch every algorithm meet the same traffic, side by side.
    ///
    /// Bursts, a trickle, a rush around a window's edge: one mark for every request shows who passes, waits or is
    /// refused. All of them allow 10 a second in the long run.
    Algorithms(AlgorithmsArgs),
}

#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// The rule file
    #[arg(short, long, value_name = "FILE", default_value = "tollgate.yaml")]
    pub(crate) config: PathBuf,

    /// The rule file, for those who leave out the -c
    #[arg(value_name = "FILE", hide = true, conflicts_with = "config")]
    pub(crate) file: Option<PathBuf>,

    /// Worker threads of each listener; as many as there are cores if left out, of the grpc listener half as many. A machine of
    /// two cores that serves gRPC alone wants `--workers 2`
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<NonZeroUsize>,

    /// How long to go on serving after a signal, told as not ready, before listeners close
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub(crate) drain_pause: Duration,

    /// How long requests in flight may take to finish after that
    #[arg(long, value_name = "TIME", default_value = "25s", value_parser = time)]
    pub(crate) drain_deadline: Duration,

    /// Keep no metrics: for measuring what they cost
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
    /// Put a file's rules into the database: all of them, or none.
    Push(PushArgs),
    /// Write a whole rule file from the database.
    Pull(PullArgs),
    /// Say how a file and the database differ. Exit code 0 if they do not, 1 if they do.
    Diff(DiffArgs),
}

#[derive(clap::Args)]
pub(crate) struct PushArgs {
    /// The rule file whose rules_from names the database
    #[arg(short, long, value_name = "FILE", default_value = "tollgate.yaml")]
    pub(crate) config: PathBuf,

    /// The file that has the rules; the same one if left out
    pub(crate) file: Option<PathBuf>,

    /// Push although the database was changed since the file was pulled, or has rules that are not from it
    #[arg(long)]
    pub(crate) force: bool,

    /// Who does it, for the audit
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) by: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct PullArgs {
    /// The rule file whose rules_from names the database
    #[arg(short, long, value_name = "FILE", default_value = "tollgate.yaml")]
    pub(crate) config: PathBuf,

    /// Where to write; standard output if left out
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct DiffArgs {
    /// The rule file whose rules_from names the database
    #[arg(short, long, value_name = "FILE", default_value = "tollgate.yaml")]
    pub(crate) config: PathBuf,

    /// The file that has the rules; the same one if left out
    pub(crate) file: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// The rule file; - is standard input
    pub(crate) file: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct ExplainArgs {
    /// The rule file; - is standard input
    pub(crate) file: PathBuf,

    /// The request's method
    #[arg(long, default_value = "GET")]
    pub(crate) method: String,

    /// Its path, with the query if it has one
    #[arg(long)]
    pub(crate) path: String,

    /// A header, such as 'x-api-key: k'; may be given several times
    #[arg(long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,

    /// The host it asks for; as its Host header says if left out
    #[arg(long)]
    pub(crate) host: Option<String>,

    /// The address it comes from; X-Forwarded-For counts where that is a proxy that the file trusts
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) ip: IpAddr,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Ask a running server's admin listener, such as http://127.0.0.1:9090, what each bucket holds
    #[arg(long, value_name = "URL")]
    pub(crate) ask: Option<String>,

    /// A file with your token, where the listener asks who you are; TOLLGATE_TOKEN in the environment may have it instead
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// A duration as rule files write it.
fn time(text: &str) -> Result<Duration, String> {
    if text == "0s" || text == "0" {
        return Ok(Duration::ZERO);
    }
    tollgate_rules::parse_duration(text).map_err(|error| error.to_string())
}

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("deciding").required(true).args(["limits", "rules"])))]
pub(crate) struct ReplayArgs {
    /// A limit, such as 'token_bucket: { rate: 10/s, burst: 5 }'; several are charged together, all or none
    #[arg(long = "limit", value_name = "LIMIT")]
    pub(crate) limits: Vec<String>,

    /// A rule file: lines are requests, and its rules decide; its listeners and its store are left alone
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,

    /// Who decides: memory: (this process, the default), or a Redis, such as redis://127.0.0.1:6379/0
    #[arg(long, value_name = "STORE", default_value = "memory:", hide_default_value = true)]
    pub(crate) store: String,

    /// The lines to replay; standard input if left out, or if it is -
    pub(crate) file: Option<PathBuf>,
}

#[cfg(feature = "demo")]
#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// End after this time, such as 10s; at Ctrl-C if left out
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(crate) lasting: Option<Duration>,

    /// Print a plain line a second, as is done where there is no terminal
    #[arg(long)]
    pub(crate) plain: bool,

    /// Where the gateway listens; 127.0.0.1:8080 if left out, or a free port if that is taken
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) gateway: Option<SocketAddr>,

    /// Where health and metrics are; 127.0.0.1:9090 if left out, or a free port if that is taken
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<SocketAddr>,
}

#[derive(clap::Args)]
pub(crate) struct TopArgs {
    /// The server's admin listener
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9090")]
    pub(crate) ask: String,

    /// A file with your token, where the listener asks who you are; TOLLGATE_TOKEN in the environment may have it instead
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// End after this time, such as 10s; at q or Ctrl-C if left out
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(crate) lasting: Option<Duration>,

    /// Print one line and end
    #[arg(long, conflicts_with = "lasting")]
    pub(crate) once: bool,

    /// Print a plain line a second, as is done where there is no terminal
    #[arg(long)]
    pub(crate) plain: bool,

    /// Print lines of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct AlgorithmsArgs {
    /// Draw the picture at once, without colour
    #[arg(long)]
    pub(crate) plain: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  a file has mistakes or could not be read, a line of input could not be obeyed, or a store or a
     server did not answer
  2  the command line, or a limit or store on it, is wrong";

pub(crate) const SERVE_HELP: &str = "\
A small file to begin with:
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

Every key: docs/reference.md, or `tollgate schema`.";

const RULES_HELP: &str = "\
From a file to a database: add rules_from to the file, push, then take enabled, limits, upstreams,
everywhere and routes out of it; other nodes need only what is left.
  tollgate rules push -c tollgate.yaml

From then on, where a file is handier than SQL or the console:
  tollgate rules pull -c tollgate.yaml -o rules.yaml
  (edit rules.yaml)
  tollgate rules diff -c tollgate.yaml rules.yaml
  tollgate rules push -c tollgate.yaml rules.yaml

The first line of a pulled file says which revision it is: a push is refused where the database has
another by now, unless it is forced. What is the same keeps its row. Comments are not moved: those
of a row stay for as long as the row does not change.";

const EXPLAIN_HELP: &str = "\
Example:
  tollgate explain tollgate.yaml --method POST --path /orders --header 'x-api-key: k' --ip 10.1.2.3
  tollgate explain tollgate.yaml --path /orders --ask http://127.0.0.1:9090";

const REPLAY_HELP: &str = r#"Input, one object a line; empty lines are skipped:
  at_us     microseconds since 1970, required; limits begin at 0
  op        check (default), peek, reserve, cancel, refund, reset, set_limit, enter, leave
  key       whose bucket: text ("" by default), or a list of texts and nulls
  cost      units, 1 by default
  id        names a turn (reserve, cancel) or a held slot (enter, leave)
  up_to_us  how long a reserve may wait; any time if left out
  limit     what set_limit changes to, written as on the command line
  index     which limit set_limit changes, counted from 0; needed if there are several

  reserve books a turn where the limit can; cancel gives it back until it is due.
  enter holds a slot of a concurrency limit until leave.

Output, one object a line:
  {"at_us":0,"decision":"allow","wait_us":0,"remaining":4,"retry_after_us":0,"reset_after_us":100000}

  decision is allow, wait, deny, never (the cost can never pass) or ok (nothing was to be decided).
  A time that cannot be named is null. With several limits, denied_by is the index of the one that
  refused, and statuses lists how each stands.

With --rules FILE lines are requests:
  at_us     microseconds since 1970, required; conditions on the time go by it
  path      required, with the query if there is one
  method    GET by default
  headers   an object of texts, or lists of texts
  host      as the Host header says if left out
  ip        who sent it, 127.0.0.1 by default; X-Forwarded-For counts where the file trusts that one

  {"at_us":0,"route":"orders","rules":["create"],"decision":"allow","wait_us":0,"refused_by":null,
   "excess":null,"retry_after_us":0,"charges":[{"rule":"create","limit":"per-client","key":["k"],
   "cost":1,"decision":"allow","wait_us":0,"remaining":9,"retry_after_us":0,
   "reset_after_us":100000}],"shadows":[]}

  decision is none where no route takes it; shadows tells what shadow rules would have decided.
  Nobody leaves: a slot of a concurrency limit is held for as long as its max_hold.

Stores:
  memory:                      this process, the default
  redis://HOST:PORT/DATABASE   a real Redis, with the time of each line passed in: the same answers.
                               Keys begin with tg-replay- and a name of this run's own, so that runs
                               do not meet; they are removed at the end, and expire after an hour.

  The two differ only where times go back (memory keeps the latest of a limit, Redis that of a key),
  where a limit is set twice between two charges of a key (by a microsecond), and in waits of more
  than 71 years. Redis refuses limits with windows finer than a microsecond.

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
  0  every line was answered
  1  a line could not be obeyed, or its store did not answer (those before it were answered), or the
     file could not be read
  2  the command line, or a limit or store on it, is wrong"#;
