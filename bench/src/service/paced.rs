//! An open loop: questions are due at even distances in time, whether earlier ones were answered or not.
//!
//! h2load with a rate has all connections ask in the same instant, and then shows how long a queue of its own making lasts. Here
//! connections take turns. One that still waits for an answer when its turn comes asks as soon as it has it, and the time
//! counts from when the question was due: a server that stalls is charged for everybody who would have asked meanwhile.
//!
//! One thread, which sleeps between questions; to the microsecond, for which the system has to be told (`epoll_pwait2`, which
//! rustix has from Linux 5.11 on, and the thread's timer slack).

use super::{asker::Asker, grpc::Question};
use rustix::{
    buffer::spare_capacity,
    event::{Timespec, epoll},
    io::Errno,
};
use std::{
    collections::VecDeque,
    num::NonZeroU64,
    thread,
    time::{Duration, Instant},
};

/// How long the last answers may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection, and when its questions were due: that which was asked, and those behind it.
struct Turn {
    asker: Asker,
    due: VecDeque<Instant>,
}

/// Asks so many questions a second for this long. How many microseconds after they were due they were answered, in no order.
pub(super) fn ask(
    port: u16,
    question: &Question,
    connections: usize,
    rate: f64,
    lasting: Duration,
) -> Vec<u32> {
    // On a thread of its own: whoever is started by one with less slack has less of it, too.
    let asked =
        thread::scope(|scope| scope.spawn(|| ask_here(port, question, connections, rate, lasting)).join());
    asked.expect("an asker panicked")
}

fn ask_here(port: u16, question: &Question, connections: usize, rate: f64, lasting: Duration) -> Vec<u32> {
    // Else the system may let it sleep for as long as lies between two questions.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).expect("a Linux with timer slack");
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll");
    let connect = |number| {
        let asker = Asker::connect(port, question);
        let data = epoll::EventData::new_u64(number);
        epoll::add(&epoll, asker.stream(), data, epoll::EventFlags::IN).expect("room for a socket");
        Turn { asker, due: VecDeque::new() }
    };
    let mut turns: Vec<Turn> = (0..connections as u64).map(connect).collect();
    let mut events = Vec::with_capacity(connections);
    let many = (rate * lasting.as_secs_f64()) as u32;
    let begun = Instant::now();
    let due = |question: u32| begun + Duration::from_secs_f64(f64::from(question) / rate);
    let (mut asked, mut times) = (0, Vec::with_capacity(many as usize));
    while times.len() < many as usize {
        let now = Instant::now();
        while asked < many && due(asked) <= now {
            let turn = &mut turns[asked as usize % connections];
            turn.due.push_back(due(asked));
            if turn.due.len() == 1 {
                turn.asker.ask();
            }
            asked += 1;
        }
        let rest = match asked < many {
            true => due(asked).saturating_duration_since(Instant::now()),
            false => PATIENCE,
        };
        assert!(
            now < due(many) + PATIENCE,
            "{} of {many} questions were not answered",
            many as usize - times.len()
        );
        let rest = Some(Timespec::try_from(rest).expect("short"));
        match epoll::wait(&epoll, spare_capacity(&mut events), rest.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("no events: {error}"),
        }
        for event in events.drain(..) {
            let event: epoll::Event = event;
            let turn = &mut turns[event.data.u64() as usize];
            if !turn.asker.hear() {
                continue;
            }
            let was_due = turn.due.pop_front().expect("an answer to a question");
            times.push(u32::try_from(was_due.elapsed().as_micros()).unwrap_or(u32::MAX));
            if !turn.due.is_empty() {
                turn.asker.ask();
            }
        }
    }
    times
}
