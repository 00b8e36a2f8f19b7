//! What `--help` says.

use crate::replay::tollgate;
use insta::assert_snapshot;

fn help(args: &[&str]) -> String {
    let ran = tollgate(args, "");
    assert_eq!(ran.status.code(), Some(0));
    String::from_utf8(ran.stdout).unwrap()
}

#[cfg(feature = "demo")]
#[test]
fn overall() {
    assert_snapshot!(help(&["--help"]), @r#"
    A rate limiter: gateway, decision service, and tools to test rules before they are live

    Usage: tollgate <COMMAND>

    Commands:
      serve       Run the listeners of a rule file: the gateway, the decision APIs, health and metrics
      check       Report every mistake in a rule file
      explain     Show which route and rules apply to a request, and why others do not
      rules       Copy rules between a file and the database in its rules_from
      schema      Print the JSON Schema of rule files, for editors
      token       Create a token for a user of the admin listener, and the line with its hash for the
                  rule file
      replay      Run recorded traffic through limits, at the recorded times
      demo        Run a gateway with a built-in service and clients, and show its decisions
      top         Watch a running server: requests allowed, delayed and denied, by rule, and the busiest
                  keys
      algorithms  Compare all algorithms on the same traffic, side by side
      help        Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Exit codes:
      0  success
      1  a file has mistakes or cannot be read, a line of input is invalid, or a store or a server does
         not answer
      2  the command line, or a limit or store on it, is invalid
    "#);
}

#[test]
fn replay() {
    assert_snapshot!(help(&["replay", "--help"]), @r#"
    Run recorded traffic through limits, at the recorded times.

    Reads one JSON object per line and prints a decision for each. The clock is set by the lines, so a
    day of traffic is replayed in seconds and every run prints the same decisions.

    Usage: tollgate replay [OPTIONS] <--limit <LIMIT>|--rules <FILE>> [FILE]

    Arguments:
      [FILE]
              The file to replay [default: standard input, as with -]

    Options:
          --limit <LIMIT>
              A limit, such as 'token_bucket: { rate: 10/s, burst: 5 }'; if repeated, all are charged or
              none is

          --rules <FILE>
              A rule file whose rules decide; lines are then requests. Its listeners and its store are
              not used

          --store <STORE>
              The store: memory: (this process, the default), or a Redis, such as
              redis://127.0.0.1:6379/0

      -h, --help
              Print help (see a summary with '-h')

    Input, one JSON object per line; empty lines are skipped:
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
      2  the command line, or a limit or store on it, is invalid
    "#);
}

#[cfg(feature = "demo")]
#[test]
fn demo() {
    assert_snapshot!(help(&["demo", "--help"]), @r#"
    Run a gateway with a built-in service and clients, and show its decisions.

    The gateway, the service and the clients talk HTTP on this machine. The terminal shows which
    requests are allowed, delayed and denied, and by which rule. Meanwhile, send requests with curl, or
    edit the rule file and see the change take effect. Ctrl-C ends the demo and removes its files.

    Usage: tollgate demo [OPTIONS]

    Options:
          --for <TIME>
              End after this time, such as 10s [default: at Ctrl-C]

          --plain
              Print a plain line a second, as without a terminal

          --gateway <ADDRESS>
              The address of the gateway [default: 127.0.0.1:8080, or a free port if that is in use]

          --admin <ADDRESS>
              The address of health and metrics [default: 127.0.0.1:9090, or a free port if that is in
              use]

      -h, --help
              Print help (see a summary with '-h')
    "#);
}

#[test]
fn algorithms() {
    assert_snapshot!(help(&["algorithms", "--help"]), @r#"
    Compare all algorithms on the same traffic, side by side.

    Bursts, a slow stream, a rush around the edge of a window: one mark for every request shows whether
    it is allowed, delayed or denied. All limits allow 10 a second on average.

    Usage: tollgate algorithms [OPTIONS]

    Options:
          --plain
              Print the picture at once, without colours

      -h, --help
              Print help (see a summary with '-h')
    "#);
}

/// As packagers may build it: nothing speaks of a command that is not there.
#[cfg(not(feature = "demo"))]
#[test]
fn without_the_demo() {
    for args in [&["--help"][..], &["algorithms", "--plain"]] {
        let told = help(args);
        assert!(!told.contains("demo"), "{told}");
    }
    assert_eq!(tollgate(&["demo"], "").status.code(), Some(2));
}
