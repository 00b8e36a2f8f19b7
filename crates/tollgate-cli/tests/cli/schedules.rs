//! Lines by chance, the same in every run: all kinds of limits, all operations, in memory and through Redis.
//!
//! Times do not go back: memory keeps the latest of a limit, Redis that of a key. A limit changes once: Redis converts a key
//! when it is next charged, so of two changes in between it sees the last, where memory rounds twice. And costs stay far from
//! what takes a lifetime to pay: Redis tells no time beyond 142 years, and waits for none beyond 71.

use crate::replay::answers;
use serde_json::{Value, json};

/// Numbers by chance.
struct Chance(u64);

impl Chance {
    /// Below `bound`: SplitMix64, whose bits are good enough for a remainder.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn from(&mut self, range: std::ops::RangeInclusive<u64>) -> u64 {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    fn of<T: Copy>(&mut self, some: &[T]) -> T {
        some[usize::try_from(self.below(some.len() as u64)).unwrap()]
    }

    fn is_one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

const KINDS: u64 = 14;
const CONCURRENCY: u64 = KINDS - 1;

fn limit(kind: u64, chance: &mut Chance) -> String {
    let rate = format!("{}/{}", chance.from(1..=30), chance.of(&["s", "7ms", "m", "3s", "h"]));
    let window = chance.of(&["1s", "10ms", "1m", "1h", "777us", "1d"]);
    let (count, part) = (chance.from(2..=12), chance.from(1..=2));
    match kind {
        0 => format!("token_bucket: {{ rate: {rate}, burst: {count} }}"),
        1 => format!("token_bucket: {{ rate: {rate}, burst: {count}, initial: {part} }}"),
        2 => format!("token_bucket: {{ rate: {rate}, burst: {count}, initial: {part}, refill: interval }}"),
        3 => format!("leaky_bucket: {{ rate: {rate}, capacity: {count} }}"),
        4 => format!("leaky_bucket: {{ rate: {rate}, capacity: {count}, delay: {part} }}"),
        5 => format!("smooth_bursty: {{ rate: {rate}, max_burst: {window} }}"),
        6 => format!("smooth_warming_up: {{ rate: {rate}, warmup: {window} }}"),
        7 => format!("fixed_window: {{ limit: {count}, window: {window} }}"),
        8 => format!("fixed_window: {{ limit: {count}, window: {window}, align: first_hit }}"),
        9 => format!(
            "fixed_window: {{ limit: {count}, window: {}, align: calendar, time_zone: Europe/Paris }}",
            chance.of(&["hour", "day", "week", "month"])
        ),
        10 => format!("sliding_log: {{ limit: {count}, window: {window} }}"),
        11 => format!("sliding_window: {{ limit: {count}, window: {window}, precision: 111us }}"),
        12 => format!("sliding_counter: {{ limit: {count}, window: {window} }}"),
        _ => format!("concurrency: {{ limit: {count}, max_hold: {window} }}"),
    }
}

/// Lines for these kinds of limits.
fn lines(kinds: &[u64], chance: &mut Chance) -> Vec<String> {
    const KEYS: [&str; 5] = [r#""""#, r#""alice""#, r#"["a","{b}"]"#, r#"["a",null]"#, "[]"];
    let holds = kinds.contains(&CONCURRENCY);
    let mut now = chance.of(&[0, 1_772_639_999_000_000]);
    let mut unchanged: Vec<usize> = (0..kinds.len()).collect();
    let (mut turns, mut slots) = (Vec::new(), Vec::new());
    let mut lines = Vec::new();
    for place in 0..80 {
        now += match chance.below(4) {
            0 => 0,
            1 => chance.below(2_000),
            2 => chance.below(900_000),
            _ => chance.below(80_000_000),
        };
        let key: Value = serde_json::from_str(chance.of(&KEYS)).unwrap();
        let cost = if chance.is_one_in(12) { chance.of(&[0, 13, 1_000]) } else { chance.from(1..=3) };
        lines.push(match chance.below(16) {
            0 => json!({"at_us": now, "op": "peek", "key": key, "cost": cost}),
            1..=3 => {
                turns.push(place);
                let mut line =
                    json!({"at_us": now, "op": "reserve", "key": key, "cost": cost, "id": place.to_string()});
                if chance.is_one_in(2) {
                    line["up_to_us"] = chance.below(5_000_000).into();
                }
                line
            }
            4..=5 if !turns.is_empty() => {
                let turn = turns.swap_remove(usize::try_from(chance.below(turns.len() as u64)).unwrap());
                json!({"at_us": now, "op": "cancel", "id": turn.to_string()})
            }
            6 => json!({"at_us": now, "op": "refund", "key": key, "cost": cost}),
            7 => json!({"at_us": now, "op": "reset", "key": key}),
            8 if !unchanged.is_empty() => {
                let index =
                    unchanged.swap_remove(usize::try_from(chance.below(unchanged.len() as u64)).unwrap());
                // A limit that held slots must go on to, for lines that enter; others may become anything else.
                let stays = kinds[index] == CONCURRENCY || chance.is_one_in(2);
                let kind = if stays { kinds[index] } else { chance.below(KINDS) };
                json!({"at_us": now, "op": "set_limit", "index": index, "limit": limit(kind, chance)})
            }
            9..=11 if holds => {
                slots.push(place);
                json!({"at_us": now, "op": "enter", "key": key, "cost": cost, "id": place.to_string()})
            }
            12 if !slots.is_empty() => {
                let slot = slots.swap_remove(usize::try_from(chance.below(slots.len() as u64)).unwrap());
                json!({"at_us": now, "op": "leave", "id": slot.to_string()})
            }
            _ => json!({"at_us": now, "key": key, "cost": cost}),
        });
    }
    lines.iter().map(Value::to_string).collect()
}

#[test]
fn memory_and_redis_give_the_same_answers() {
    for run in 0..56 {
        let mut chance = Chance(run);
        // Every kind alone or first, and in company.
        let mut kinds = vec![run % KINDS];
        kinds.extend((0..run / KINDS % 3).map(|_| chance.below(KINDS)));
        let limits: Vec<String> = kinds.iter().map(|kind| limit(*kind, &mut chance)).collect();
        let limits: Vec<&str> = limits.iter().map(String::as_str).collect();
        answers(&limits, &lines(&kinds, &mut chance));
    }
}
