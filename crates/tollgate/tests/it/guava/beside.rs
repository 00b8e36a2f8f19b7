//! The real class beside ours: thousands of random schedules played to both, and not a microsecond between them.
//!
//! `tests/guava/Beside.java` plays a schedule to Guava's limiter on a clock that moves when told to. Rates stay at 1000 a
//! second or below, or are infinite: above 1000 we differ on purpose. Now and then one of our callers gives up half-way,
//! which the real class is not told: it must make no difference.

use super::{Manual, run};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use std::{
    env,
    fmt::Write as _,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    task::{Context, Waker},
    time::Duration,
};
use tollgate::{Clock, ManualClock, Rate, RateLimiter, SmoothBursty, SmoothWarmingUp, Time};

/// Schedules that one start of Java plays.
const BATCH: usize = 10_000;

#[derive(Clone, Copy, Debug)]
enum Make {
    Bursty {
        rate: f64,
    },
    WarmingUp {
        rate: f64,
        warmup_micros: u64,
    },
    /// With what only we let a user choose; the real class can be reached from inside its package.
    Burst {
        per_second: u32,
        millis: u64,
    },
    Cold {
        per_second: u32,
        warmup_micros: u64,
        cold_factor: f64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Advance {
        nanos: u64,
    },
    Acquire {
        permits: u32,
    },
    Try {
        permits: u32,
        timeout_nanos: u64,
    },
    /// With a timeout so many nanoseconds more than 1 us less than the wait.
    TryNearly {
        permits: u32,
        off_nanos: u64,
    },
    /// Drops an acquire when so many hundredths of its wait are over.
    GiveUp {
        permits: u32,
        after: u32,
    },
    SetRate(f64),
    Rate,
}

type Schedule = (Make, Vec<Act>);

fn rates() -> impl Strategy<Value = f64> {
    prop_oneof![
        2 => prop::sample::select(vec![0.37, 333.3, 1.0, 2.0, 5.0, 7.0, 10.0, 0.1, 1.0 / 3.0, 999.999, 1000.0]),
        2 => 0.01..1000.0,
        // As many slow ones as fast ones.
        2 => (-2.0_f64..3.0).prop_map(|power| 10_f64.powf(power)),
    ]
}

fn warmups() -> impl Strategy<Value = u64> {
    prop_oneof![1_u64..1_000, 1_u64..10_000_000, Just(1_000_000), 1_u64..5_000_000_000]
}

fn makes() -> impl Strategy<Value = Make> {
    prop_oneof![
        3 => rates().prop_map(|rate| Make::Bursty { rate }),
        3 => (rates(), warmups()).prop_map(|(rate, warmup_micros)| Make::WarmingUp { rate, warmup_micros }),
        1 => (1_u32..=1_000, 1_u64..100_000).prop_map(|(per_second, millis)| Make::Burst { per_second, millis }),
        1 => (1_u32..=1_000, warmups(), 1.0..20.0).prop_map(|(per_second, warmup_micros, cold_factor)| {
            Make::Cold { per_second, warmup_micros, cold_factor }
        }),
    ]
}

fn acts() -> impl Strategy<Value = Act> {
    let permits = || prop_oneof![4 => Just(1_u32), 4 => 1_u32..20, 1 => 1_u32..10_000];
    let timeouts = prop_oneof![Just(0_u64), 0_u64..2_000_000, 0_u64..3_000_000_000, 0_u64..1_000_000_000_000];
    let idles = prop_oneof![
        2 => 0_u64..5_000,
        4 => 0_u64..2_000_000_000,
        // A few whole ones: a tie is a case of its own.
        2 => (0_u64..2_000_000).prop_map(|micros| micros * 1_000),
        1 => 0_u64..100_000_000_000_000,
    ];
    prop_oneof![
        6 => permits().prop_map(|permits| Act::Acquire { permits }),
        4 => (permits(), timeouts).prop_map(|(permits, timeout_nanos)| Act::Try { permits, timeout_nanos }),
        1 => (permits(), 0_u64..3_000).prop_map(|(permits, off_nanos)| Act::TryNearly { permits, off_nanos }),
        2 => (permits(), 0_u32..100).prop_map(|(permits, after)| Act::GiveUp { permits, after }),
        5 => idles.prop_map(|nanos| Act::Advance { nanos }),
        1 => rates().prop_map(Act::SetRate),
        1 => Just(Act::Rate),
    ]
}

fn schedules() -> impl Strategy<Value = Schedule> {
    // An infinite rate now and then, for a while.
    let acts = (acts(), 0_u32..100)
        .prop_map(|(act, dice)| if dice == 0 { Act::SetRate(f64::INFINITY) } else { act });
    (makes(), prop::collection::vec(acts, 1..80))
}

impl Make {
    fn ours(self) -> Manual {
        let per = |per_second| Rate::per_second(per_second).unwrap();
        let made = match self {
            Self::Bursty { rate } => RateLimiter::create(rate).unwrap(),
            Self::WarmingUp { rate, warmup_micros } => {
                RateLimiter::create_warming_up(rate, Duration::from_micros(warmup_micros)).unwrap()
            }
            Self::Burst { per_second, millis } => {
                let burst = Duration::from_millis(millis);
                SmoothBursty::new(per(per_second)).with_max_burst(burst).unwrap().into()
            }
            Self::Cold { per_second, warmup_micros, cold_factor } => {
                let limit =
                    SmoothWarmingUp::new(per(per_second), Duration::from_micros(warmup_micros)).unwrap();
                limit.with_cold_factor(cold_factor).unwrap().into()
            }
        };
        made.with_clock(ManualClock::new())
    }

    fn command(self) -> String {
        match self {
            Self::Bursty { rate } => format!("bursty {} {}", bits(rate), bits(1.0)),
            Self::WarmingUp { rate, warmup_micros } => {
                format!("warming {} {warmup_micros} {}", bits(rate), bits(3.0))
            }
            Self::Burst { per_second, millis } => {
                format!("bursty {} {}", bits(per_second.into()), bits(millis as f64 / 1e3))
            }
            Self::Cold { per_second, warmup_micros, cold_factor } => {
                format!("warming {} {warmup_micros} {}", bits(per_second.into()), bits(cold_factor))
            }
        }
    }
}

impl Act {
    /// Does it to ours. Answers what to tell `Beside.java` if it is to do the same, and what that should say.
    fn ours(self, limiter: &Manual) -> (String, Option<String>) {
        let clock = limiter.clock();
        match self {
            Self::Advance { nanos } => {
                clock.advance(Duration::from_nanos(nanos));
                (format!("advance {nanos}"), None)
            }
            Self::Acquire { permits } => {
                let slept = run(clock, limiter.acquire_async(permits)).unwrap();
                (format!("acquire {permits}"), Some(slept.as_micros().to_string()))
            }
            Self::Try { permits, timeout_nanos } => {
                let before = clock.now();
                let turn = limiter.try_acquire_async(permits, Duration::from_nanos(timeout_nanos));
                let passed = run(clock, turn).unwrap();
                let slept = (clock.now() - before).as_micros();
                let answer = if passed { slept.to_string() } else { "no".into() };
                (format!("try {permits} {timeout_nanos}"), Some(answer))
            }
            Self::TryNearly { permits, off_nanos } => match begin(limiter, permits) {
                Some((turn, wait)) => {
                    drop(turn);
                    let timeout_nanos = u64::try_from(wait.as_nanos()).unwrap() - 1_000 + off_nanos;
                    Self::Try { permits, timeout_nanos }.ours(limiter)
                }
                None => (format!("acquire {permits}"), Some("0".into())),
            },
            Self::GiveUp { permits, after } => match begin(limiter, permits) {
                // From now on: its wait began with the last whole microsecond.
                Some((_turn, _)) => {
                    let left = limiter.clock().next_sleeper().unwrap() - limiter.clock().now();
                    Self::Advance { nanos: part(left, after) }.ours(limiter)
                }
                None => (format!("acquire {permits}"), Some("0".into())),
            },
            Self::SetRate(rate) => {
                limiter.set_rate(rate).unwrap();
                (format!("set {}", bits(rate)), None)
            }
            Self::Rate => ("get".into(), Some(bits(limiter.rate()))),
        }
    }
}

/// An acquire that has yet to wait so long; `None` where it had its turn at once.
fn begin(limiter: &Manual, permits: u32) -> Option<(impl Future, Duration)> {
    let mut turn = Box::pin(limiter.acquire_async(permits));
    let is_pending = turn.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
    let now = Time::from_nanos(limiter.clock().now().as_nanos() / 1_000 * 1_000);
    is_pending.then(|| (turn, limiter.clock().next_sleeper().unwrap() - now))
}

/// So many hundredths of a wait, in nanoseconds.
fn part(wait: Duration, hundredths: u32) -> u64 {
    u64::try_from((wait * hundredths / 100).as_nanos()).unwrap()
}

fn bits(number: f64) -> String {
    format!("{:x}", number.to_bits())
}

/// What the real class answers to these commands.
fn theirs(commands: &str) -> String {
    let jar =
        env::var_os("GUAVA_JAR").map_or_else(|| PathBuf::from("/usr/share/java/guava.jar"), PathBuf::from);
    assert!(jar.is_file(), "{} is missing: run scripts/setup test, or set GUAVA_JAR", jar.display());
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("beside-guava");
    fs::create_dir_all(&place).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guava/Beside.java");
    succeed(Command::new("javac").arg("-cp").arg(&jar).arg("-d").arg(&place).arg(source));

    let schedules = place.join("schedules");
    fs::write(&schedules, commands).unwrap();
    let classes = env::join_paths([&jar, &place]).unwrap();
    succeed(
        Command::new("java")
            .arg("-cp")
            .arg(classes)
            .arg("com.google.common.util.concurrent.Beside")
            .stdin(File::open(schedules).unwrap()),
    )
}

/// What the program prints.
fn succeed(command: &mut Command) -> String {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{name} does not run ({error}): run scripts/setup test"));
    assert!(output.status.success(), "{name} fails: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Answers that were compared, and what they were.
#[derive(Debug, Default)]
struct Compared {
    schedules: usize,
    answers: usize,
    waits: usize,
    refusals: usize,
}

impl Compared {
    fn play(&mut self, schedules: &[Schedule]) {
        let (mut commands, mut ours) = (String::new(), Vec::new());
        for (make, acts) in schedules {
            let limiter = make.ours();
            writeln!(commands, "{}", make.command()).unwrap();
            for (index, act) in acts.iter().enumerate() {
                let (command, answer) = act.ours(&limiter);
                writeln!(commands, "{command}").unwrap();
                ours.extend(answer.map(|answer| (answer, make, &acts[..=index])));
            }
        }
        let theirs = theirs(&commands);
        assert_eq!(ours.len(), theirs.lines().count());
        for ((ours, make, acts), theirs) in ours.iter().zip(theirs.lines()) {
            assert_eq!(ours, theirs, "ours and theirs, for {make:?} after {acts:#?}");
            self.answers += 1;
            self.refusals += usize::from(ours == "no");
            self.waits += usize::from(ours != "no" && ours != "0" && !matches!(acts, [.., Act::Rate]));
        }
        self.schedules += schedules.len();
    }
}

#[test]
fn the_real_class_answers_as_ours() {
    // From one seed, so that every run plays the same; more of them where more cases are asked for.
    let mut runner = TestRunner::deterministic();
    let batches = Config::default().cases.div_ceil(256);
    let mut compared = Compared::default();
    for _ in 0..batches {
        let schedules: Vec<Schedule> =
            (0..BATCH).map(|_| schedules().new_tree(&mut runner).unwrap().current()).collect();
        compared.play(&schedules);
    }
    println!("{compared:?}");
    let Compared { answers, waits, refusals, .. } = compared;
    assert!(waits > answers / 4 && refusals > answers / 20, "schedules that never wait compare nothing");
}
