//! Inputs that nobody thought of: what is in a corpus, changed at random, put to a parser until the time is up.
//!
//! Without a compiler that counts branches the search is blind, so it lives on its corpus: one file for every shape of input
//! worth starting from, and one for every input that ever broke something. The changes are drawn from a fixed seed
//! (`TOLLGATE_FUZZ_SEED`), so a run repeats; how long it goes on is `TOLLGATE_FUZZ_SECONDS`, 5 if not said.

use crate::Random;
use std::{
    env, fs,
    panic::{self, AssertUnwindSafe},
    path::Path,
    time::{Duration, Instant},
};

/// Inputs are not grown beyond this, so that a run looks at many.
const LONGEST: usize = 64 * 1024;
/// Pieces of text that mean something to most grammars: put in whole, since single bytes hardly ever meet to make one.
const WORDS: [&[u8]; 20] = [
    b"\r\n",
    b"\n",
    b"\0",
    b"-1",
    b"0",
    b"1",
    b"65536",
    b"2147483648",
    b"4294967296",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"18446744073709551616",
    b"1e308",
    b"\"",
    b"{",
    b"[",
    b"*",
    b"$",
    b"\xff\xfe",
    b"\xc3\x28",
];

/// A search for inputs that break something.
#[derive(Debug)]
pub struct Fuzz {
    corpus: Vec<Vec<u8>>,
    random: Random,
    lasting: Duration,
}

impl Fuzz {
    /// A search from the files in this folder.
    ///
    /// # Panics
    /// Where the folder cannot be read, or has no file in it.
    #[must_use]
    pub fn from(corpus: impl AsRef<Path>) -> Self {
        let folder = corpus.as_ref();
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry of the corpus").path()).collect();
        paths.sort();
        let corpus: Vec<_> = paths.iter().map(|path| fs::read(path).expect("a file of the corpus")).collect();
        assert!(!corpus.is_empty(), "{}: a corpus needs a file at least", folder.display());
        let seed = number("TOLLGATE_FUZZ_SEED").unwrap_or(0x7011_6a7e);
        let lasting = Duration::from_secs(number("TOLLGATE_FUZZ_SECONDS").unwrap_or(5));
        Self { corpus, random: Random::new(seed), lasting }
    }

    /// Puts every file of the corpus to `check`, then changed ones until the time is up. How many inputs it saw.
    ///
    /// `check` panics where something is wrong; it is also given numbers to draw, for choices of its own.
    ///
    /// # Panics
    /// With the input, escaped so that it can be put into a file of the corpus, where `check` does.
    pub fn run(mut self, mut check: impl FnMut(&[u8], &mut Random)) -> u64 {
        let began = Instant::now();
        let mut inputs = 0;
        for at in 0..self.corpus.len() {
            tried(&self.corpus[at], &mut self.random, &mut check);
            inputs += 1;
        }
        while began.elapsed() < self.lasting {
            let input = self.changed();
            tried(&input, &mut self.random, &mut check);
            inputs += 1;
        }
        inputs
    }

    /// One of the corpus, changed in a few places.
    fn changed(&mut self) -> Vec<u8> {
        let mut input = self.pick().to_vec();
        for _ in 0..=self.random.below(6) {
            self.change(&mut input);
            input.truncate(LONGEST);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let random = &mut self.random;
        let at = random.below(input.len() + 1);
        let to = at + random.below(input.len() + 1 - at);
        match random.below(9) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = random.draw() as u8;
                }
            }
            2 => input.insert(at, random.draw() as u8),
            3 => drop(input.drain(at..to)),
            4 => {
                let copy = input[at..to].to_vec();
                let place = random.below(input.len() + 1);
                input.splice(place..place, copy);
            }
            5 => input.truncate(at),
            6 => {
                let word = WORDS[random.below(WORDS.len())];
                input.splice(at..at, word.iter().copied());
            }
            7 => renumber(input, at, WORDS[3 + random.below(10)]),
            _ => {
                let other = self.pick().to_vec();
                let from = self.random.below(other.len() + 1);
                input.splice(at..at, other[from..].iter().copied());
            }
        }
    }

    fn pick(&mut self) -> &[u8] {
        let at = self.random.below(self.corpus.len());
        &self.corpus[at]
    }
}

/// The first number from there on becomes another.
fn renumber(input: &mut Vec<u8>, from: usize, number: &[u8]) {
    let digit = |byte: &u8| byte.is_ascii_digit();
    let Some(start) = input[from..].iter().position(digit).map(|at| at + from) else { return };
    let end = input[start..].iter().position(|byte| !digit(byte)).map_or(input.len(), |at| at + start);
    input.splice(start..end, number.iter().copied());
}

fn tried(input: &[u8], random: &mut Random, check: &mut impl FnMut(&[u8], &mut Random)) {
    if let Err(cause) = panic::catch_unwind(AssertUnwindSafe(|| check(input, random))) {
        eprintln!("the input that broke it, for a file of the corpus: \"{}\"", input.escape_ascii());
        panic::resume_unwind(cause);
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a whole number, and is {text:?}")))
}
