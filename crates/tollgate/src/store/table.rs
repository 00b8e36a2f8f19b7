//! A bounded table of slots, each a fingerprint and a state, in memory that is had once and never moves.
//!
//! ```text
//! bucket: 128 bytes, two cache lines      slot: fingerprint (44 bits) and tag (20) | word 0 and its lock | word 1
//!   [slot][slot]...                       8 slots of two words (STRIDE 2), or 5 of three (STRIDE 3)
//! ```
//!
//! A key has [`CHOICES`] buckets and lives in the first of them that had room. Slots are never emptied, only given to
//! another key, so a bucket with an empty slot has never been full and ends the search: most keys cost one bucket.
//! Nothing is swept; a new key takes an empty slot in any of its buckets, or one whose key is as if never used, or, where the table may evict,
//! the one nearest to that. So there is no stall, no thread, and no more memory than was asked for.
//!
//! **Locks.** A slot's state, and which key has it, change only under its lock. A key enters the table under the lock of
//! its first bucket's first slot, so that two threads cannot enter it twice. Locks are waited for in address order or
//! while holding none; a slot to be taken over is only ever tried.
//!
//! **Two keys in one slot.** A key is taken for another if 44 bits of fingerprint agree and a bucket is shared: for a
//! million keys two new keys in 10^12 meet such a twin.
//!
//! **Bounds.** A table has slots for `max_keys` and half as many again, allocated once as zeroed memory; the system provides
//! pages as they are touched. At `max_keys` live keys one new key in 12,000 finds its four buckets full, and evicts or is
//! denied although the table as a whole is not full. In a table of a few dozen keys this happens sooner, since the four
//! choices often fall on fewer buckets. A store has two tables, one for states of one word and one for all others, and
//! `max_keys` bounds each. One bound over both would need a shared counter on every new key, and a flood of keys with one
//! shape of state could evict the keys of the other. A limit that was added with a bound of its own has its own two tables.
//! Logs, sub-windows and permits are kept outside the table and are bounded by their limit.

use crate::sync::{AtomicU64, Ordering, Word};

/// How many buckets a key may live in. At two thirds full, 8 in 100,000 new keys find all of theirs full.
const CHOICES: usize = 4;
/// Two to the 32: more than any machine's memory holds at 24 bytes each, and no sum overflows.
const MOST_KEYS: usize = 1 << 32;
/// When to come again where every place is pinned or being used: nobody knows, so soon.
const BUSY: u64 = 1_000_000;
const BUCKET_WORDS: usize = 16;
type Bucket = [AtomicU64; BUCKET_WORDS];
const CACHE_LINE_PAIR: usize = 128;
/// How much of a slot's first word is the tag: room for a million limits.
const TAG_BITS: u32 = 20;
const TAG: u64 = (1 << TAG_BITS) - 1;

/// The number of a limit in its store.
pub(crate) type Tag = u32;

pub(crate) struct Table<const STRIDE: usize> {
    words: Box<[AtomicU64]>,
    /// Words to skip so that buckets begin at a cache line.
    first: usize,
    buckets: usize,
    /// Slots that some key has or had. Counted for whoever looks on; nothing is decided by it.
    taken: std::sync::atomic::AtomicUsize,
}

/// Where to look for a key, and what to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Print {
    meta: u64,
    hash: [u64; 2],
}

/// A place in a table. Whose it is may change until its lock is held.
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a> {
    meta: &'a AtomicU64,
    word: &'a AtomicU64,
    second: Option<&'a AtomicU64>,
}

/// What may be done with a slot that a new key could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Its key is as if never used.
    Idle,
    /// Its key is in use for so many nanoseconds more.
    Live(u64),
    /// Its key must not be forgotten.
    Pinned,
}

/// Why a key did not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoEntry {
    /// Every place is taken; the first to be idle will be so in this many nanoseconds.
    Full(u64),
    /// The numbers changed meanwhile: begin again.
    Changed,
}

/// What a table asks of whoever owns the states in it.
pub(crate) trait Landlord {
    /// What may be done with the slot of a key under `tag`.
    fn life(&self, tag: Tag, words: [u64; 2]) -> Life;
    /// Whether live keys may be evicted.
    fn evicts(&self) -> bool;
    /// The numbers that the entering key was looked up under still hold.
    fn in_force(&self) -> bool;
    /// A slot was given away; what its words point at is to be freed.
    fn vacated(&self, meta: u64, words: [u64; 2], life: Life);
}

impl Print {
    pub(crate) fn new(hash: [u64; 2], tag: Tag) -> Self {
        Self { meta: hash[1] & !TAG | u64::from(tag), hash }
    }

    /// Fingerprint and tag: what names the key in its slot.
    pub(crate) fn meta(&self) -> u64 {
        self.meta
    }

    /// The whole fingerprint, for what is kept beside the table.
    pub(crate) const fn full(&self) -> [u64; 2] {
        self.hash
    }
}

impl<const STRIDE: usize> Table<STRIDE> {
    const SLOTS: usize = BUCKET_WORDS / STRIDE;

    /// Room for `keys` with a third to spare, or as near as whole buckets come: 24 bytes a key, or 39.
    pub(crate) fn new(keys: usize) -> Self {
        let keys = keys.min(MOST_KEYS);
        let slots = keys.saturating_add(keys / 100 * 49).saturating_add(keys % 100 / 2);
        let buckets = (slots / Self::SLOTS).max(1);
        let words = zeroed((buckets + 1) * BUCKET_WORDS);
        let misaligned = words.as_ptr().addr() % CACHE_LINE_PAIR / size_of::<AtomicU64>();
        Self { first: (BUCKET_WORDS - misaligned) % BUCKET_WORDS, words, buckets, taken: 0.into() }
    }

    /// How many slots some key has or had.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(std::sync::atomic::Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * size_of::<AtomicU64>()
    }

    /// The key's slot, if it has one.
    #[inline(always)]
    pub(crate) fn locate(&self, print: &Print) -> Option<Slot<'_>> {
        for choice in 0..CHOICES {
            let bucket = self.bucket(self.choose(print, choice));
            let mut roomy = false;
            for slot in 0..Self::SLOTS {
                let meta = bucket[slot * STRIDE].load(Ordering::Acquire);
                if meta == print.meta {
                    return Some(Self::slot(bucket, slot));
                }
                roomy |= meta == 0;
            }
            if roomy {
                return None;
            }
        }
        None
    }

    /// Has the processor fetch the key's first bucket while other keys are prepared.
    #[inline]
    pub(crate) fn touch(&self, print: &Print) -> u64 {
        let bucket = self.bucket(self.choose(print, 0));
        bucket[0].load(Ordering::Relaxed) ^ bucket[BUCKET_WORDS - 1].load(Ordering::Relaxed)
    }

    /// A slot for a key that has none, or the one it was given meanwhile. Slots at the addresses in `spared` are not
    /// taken: the caller is about to use them.
    #[cold]
    pub(crate) fn enter(
        &self,
        print: &Print,
        spared: &[usize],
        landlord: &dyn Landlord,
    ) -> Result<Slot<'_>, NoEntry> {
        let door = Self::slot(self.bucket(self.choose(print, 0)), 0);
        let behind_door = door.word().lock();
        Entering { table: self, print, spared, landlord, door, behind_door }.run()
    }

    /// Every slot, in address order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        (0..self.buckets)
            .flat_map(move |bucket| (0..Self::SLOTS).map(move |slot| Self::slot(self.bucket(bucket), slot)))
    }

    #[inline(always)]
    fn choose(&self, print: &Print, choice: usize) -> usize {
        // Any odd numbers do: the hash is uniform already, they only part the choices.
        const SPREAD: [u64; CHOICES] =
            [1, 0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9];
        let hash = print.hash[0].wrapping_mul(SPREAD[choice]);
        let hash = if choice == 0 { hash } else { hash ^ print.hash[1].rotate_left(choice as u32 * 16) };
        ((u128::from(hash) * self.buckets as u128) >> 64) as usize
    }

    #[inline(always)]
    fn bucket(&self, bucket: usize) -> &Bucket {
        // There is a bucket more than can be chosen, since the first may not begin at a cache line.
        match self.words[self.first + bucket * BUCKET_WORDS..].first_chunk() {
            Some(bucket) => bucket,
            None => unreachable!("a bucket beyond the table"),
        }
    }

    #[inline(always)]
    fn slot(bucket: &Bucket, slot: usize) -> Slot<'_> {
        let words = &bucket[slot * STRIDE..(slot + 1) * STRIDE];
        Slot { meta: &words[0], word: &words[1], second: words.get(2) }
    }
}

/// One key entering, with its door locked.
struct Entering<'t, 'a, const STRIDE: usize> {
    table: &'t Table<STRIDE>,
    print: &'a Print,
    spared: &'a [usize],
    landlord: &'a dyn Landlord,
    door: Slot<'t>,
    /// The value of the slot that serves as door.
    behind_door: u64,
}

impl<'t, const STRIDE: usize> Entering<'t, '_, STRIDE> {
    fn run(self) -> Result<Slot<'t>, NoEntry> {
        if let Some(slot) = self.table.locate(self.print) {
            self.close_door();
            return Ok(slot);
        }
        // Room that nobody had yet comes before the place of a key that might come back.
        for slot in self.candidates().filter(|slot| slot.meta() == 0) {
            if self.look(slot) == Some([0, 0]) && self.take(slot, 0)? {
                return Ok(slot);
            }
        }
        let mut soonest: Option<(u64, Slot<'t>)> = None;
        for slot in self.candidates() {
            let Some(words) = self.look(slot) else { continue };
            match self.life(slot, words) {
                Life::Idle => match self.take(slot, words[0]) {
                    Ok(true) => return Ok(slot),
                    Ok(false) => {}
                    Err(why) => return Err(why),
                },
                Life::Live(left) if soonest.is_none_or(|(least, _)| left < least) => {
                    soonest = Some((left, slot));
                }
                Life::Live(_) | Life::Pinned => {}
            }
        }
        let Some((left, slot)) = soonest else {
            self.close_door();
            return Err(NoEntry::Full(BUSY));
        };
        if !self.landlord.evicts() {
            self.close_door();
            return Err(NoEntry::Full(left));
        }
        if let Some(words) = self.look(slot)
            && self.take(slot, words[0])?
        {
            return Ok(slot);
        }
        // Somebody was quicker; the next look will find another.
        self.close_door();
        Err(NoEntry::Changed)
    }

    /// The slots of the key's buckets, up to and with the first bucket that has never been full.
    fn candidates(&self) -> impl Iterator<Item = Slot<'t>> + use<'t, STRIDE> {
        let (table, print) = (self.table, *self.print);
        let mut roomy = false;
        (0..CHOICES)
            .map_while(move |choice| {
                if roomy {
                    return None;
                }
                let bucket = table.bucket(table.choose(&print, choice));
                let slots = (0..Table::<STRIDE>::SLOTS).map(move |slot| Table::<STRIDE>::slot(bucket, slot));
                roomy = slots.clone().any(|slot| slot.meta() == 0);
                Some(slots)
            })
            .flatten()
    }

    /// The slot's words, unless somebody has it locked or it is spared.
    fn look(&self, slot: Slot<'t>) -> Option<[u64; 2]> {
        if self.spared.contains(&slot.address()) {
            return None;
        }
        let word = if self.is_door(slot) { Some(self.behind_door) } else { slot.word().try_read() };
        word.map(|word| [word, slot.second()])
    }

    fn life(&self, slot: Slot<'t>, words: [u64; 2]) -> Life {
        match slot.meta() {
            0 => Life::Idle,
            meta => self.landlord.life(tag_of(meta), words),
        }
    }

    /// Gives the slot to the entering key, if it can be locked with the value that was looked at. Closes the door
    /// unless the answer is `Ok(false)`.
    fn take(&self, slot: Slot<'t>, word: u64) -> Result<bool, NoEntry> {
        if !self.is_door(slot) && !slot.word().try_lock(word) {
            return Ok(false);
        }
        let words = [word, slot.second()];
        let life = self.life(slot, words);
        let may = life == Life::Idle || matches!(life, Life::Live(_)) && self.landlord.evicts();
        crate::sync::order_lock_before_look();
        let in_force = self.landlord.in_force();
        if !may || !in_force {
            if !self.is_door(slot) {
                slot.word().unlock(word);
            }
            if in_force {
                return Ok(false);
            }
            self.close_door();
            return Err(NoEntry::Changed);
        }
        if slot.meta() != 0 {
            self.landlord.vacated(slot.meta(), words, life);
        } else {
            self.table.taken.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        slot.set_second(0);
        slot.meta.store(self.print.meta, Ordering::Release);
        slot.word().unlock(0);
        if !self.is_door(slot) {
            self.close_door();
        }
        Ok(true)
    }

    fn is_door(&self, slot: Slot<'t>) -> bool {
        slot.address() == self.door.address()
    }

    fn close_door(&self) {
        self.door.word().unlock(self.behind_door);
    }
}

impl<'a> Slot<'a> {
    /// Which key has the slot; zero for none yet.
    #[inline]
    pub(crate) fn meta(&self) -> u64 {
        self.meta.load(Ordering::Acquire)
    }

    /// Which limit the slot belongs to.
    pub(crate) fn tag(&self) -> Tag {
        tag_of(self.meta())
    }

    /// Whether the slot is still the key's. Certain only under the lock, or for an answer that writes nothing.
    #[inline]
    pub(crate) fn is_of(&self, print: &Print) -> bool {
        self.meta() == print.meta
    }

    #[inline]
    pub(crate) fn word(&self) -> Word<'a> {
        Word(self.word)
    }

    pub(crate) fn second(&self) -> u64 {
        self.second.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Only under the lock.
    pub(crate) fn set_second(&self, value: u64) {
        if let Some(word) = self.second {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Leaves the slot to nobody, under the lock: the fingerprint stays (a slot is never emptied), the tag goes.
    pub(crate) fn disown(&self) {
        self.meta.store(self.meta() & !TAG | u64::from(NOBODY), Ordering::Release);
    }

    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self.meta).addr()
    }
}

/// The tag of slots that belong to no limit.
pub(crate) const NOBODY: Tag = TAG as Tag;

/// Which limit a slot with this first word belongs to.
#[inline]
pub(crate) const fn tag_of(meta: u64) -> Tag {
    (meta & TAG) as Tag
}

/// The rest of it: what tells the limit's keys apart.
pub(crate) const fn fingerprint_of(meta: u64) -> u64 {
    meta >> TAG_BITS
}

/// Zeroed memory, of which the system hands out pages as they are touched.
#[cfg(not(loom))]
fn zeroed(words: usize) -> Box<[AtomicU64]> {
    bytemuck::allocation::try_zeroed_slice_box(words)
        .unwrap_or_else(|()| panic!("no memory for a table of {} MiB", words >> 17))
}

#[cfg(loom)]
fn zeroed(words: usize) -> Box<[AtomicU64]> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}
