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
    Every request pays its toll: rate limits, tried out before they are live

    Usage: tollgate <COMMAND>

    Commands:
      serve       Serve what a rule file names: a gateway in front of your service, health and metrics
                  beside it
      check       Say everything that is wrong with a rule file
      explain     Say which route and rules a request would meet, and why not the others
      rules       Move rules between a file and the database that its rules_from names
      schema      Print the JSON Schema of rule files, for editors
      token       Make a token for somebody who may look at the admin listener, and the line of the rule
                  file that knows it
      replay      Run recorded traffic through limits, on a clock of its own
      demo        Watch a gateway limit its clients: everything is built in, nothing else is needed
      top         Watch a running server: who passes, waits and is refused, by which rule, and which
                  keys are busiest
      algorithms  Watch every algorithm meet the same traffic, side by side
      help        Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Exit codes:
      0  done
      1  a file has mistakes or could not be read, a line of input could not be obeyed, or a store or a
         server did not answer
      2  the command line, or a limit or store on it, is wrong
    "#);
}

#[test]
fn replay() {
    assert_snapshot!(help(&["replay", "--help"]), @r#"
    Run recorded traffic through limits, on a clock of its own.

    Reads one JSON object a line and answers each with one. Time is what the lines say it is, so a day
    of traffic is replayed in moments and every run gives the same answers.

    Usage: tollgate replay [OPTIONS] <--limit <LIMIT>|--rules <FILE>> [FILE]

    Arguments:
      [FILE]
              The lines to replay; standard input if left out, or if it is -

    Options:
          --limit <LIMIT>
              A limit, such as 'token_bucket: { rate: 10/s, burst: 5 }'; several are charged together,
              all or none

          --rules <FILE>
              A rule file: lines are requests, and its rules decide; its listeners and its store are
              left alone

          --store <STORE>
              Who decides: memory: (this process, the default), or a Redis, such as
              redis://127.0.0.1:6379/0

      -h, --help
              Print help (see a summary with '-h')

    Input, one object a line; empty lines are skipped:
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
      2  the command line, or a limit or store on it, is wrong
    "#);
}

#[cfg(feature = "demo")]
#[test]
fn demo() {
    assert_snapshot!(help(&["demo", "--help"]), @r#"
    Watch a gateway limit its clients: everything is built in, nothing else is needed.

    A gateway, a service behind it and a handful of clients talk HTTP on this machine, and the terminal
    shows who passes, who waits and who is refused by which rule. Try the gateway with curl meanwhile,
    or edit its rule file and watch the change take hold. Ctrl-C ends it and leaves nothing behind.

    Usage: tollgate demo [OPTIONS]

    Options:
          --for <TIME>
              End after this time, such as 10s; at Ctrl-C if left out

          --plain
              Print a plain line a second, as is done where there is no terminal

          --gateway <ADDRESS>
              Where the gateway listens; 127.0.0.1:8080 if left out, or a free port if that is taken

          --admin <ADDRESS>
              Where health and metrics are; 127.0.0.1:9090 if left out, or a free port if that is taken

      -h, --help
              Print help (see a summary with '-h')
    "#);
}

#[test]
fn algorithms() {
    assert_snapshot!(help(&["algorithms", "--help"]), @r#"
    Watch every algorithm meet the same traffic, side by side.

    Bursts, a trickle, a rush around a window's edge: one mark for every request shows who passes, waits
    or is refused. All of them allow 10 a second in the long run.

    Usage: tollgate algorithms [OPTIONS]

    Options:
          --plain
              Draw the picture at once, without colour

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
