//! Questions that were asked with an `id`, so that one that is sent again counts once.
//!
//! What passed is remembered, with its answer, for a while and in bounded memory: the oldest are forgotten first. A refusal
//! costs nothing and is not remembered, so that whoever comes again later is asked anew. Two that come at the same time are
//! one question: the second waits for the first's answer. All of it is known to this node alone.

use super::reply::Reply;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// What an entry takes beside its texts, about.
const OVERHEAD: usize = 256;

/// What was asked.
pub(super) type Print = [u64; 2];

/// Questions by their ids. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Known(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    lasting: Duration,
    most_bytes: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_id: HashMap<Arc<str>, Entry>,
    /// Those that are answered, oldest first.
    answered: VecDeque<(Instant, Arc<str>)>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    asked: Print,
    answer: Answered,
}

#[derive(Debug)]
enum Answered {
    /// Somebody is asking.
    NotYet(watch::Receiver<Option<Reply>>),
    Told(Reply),
}

/// What becomes of a question with an id.
pub(super) enum Turn {
    /// It is to be asked, and its answer told here.
    Ask(Ticket),
    /// It was answered.
    Told(Reply),
    /// It was another question that had this id.
    Taken,
}

/// Who asks. Dropped without an answer, the next may ask.
pub(super) struct Ticket {
    known: Known,
    id: Arc<str>,
    tell: watch::Sender<Option<Reply>>,
}

impl Known {
    pub(super) fn new(lasting: Duration, most_bytes: usize) -> Self {
        Self(Arc::new(Inner { lasting, most_bytes, entries: Mutex::default() }))
    }

    /// Whose turn it is to ask, or what was answered.
    pub(super) async fn turn(&self, id: &str, asked: Print) -> Turn {
        loop {
            let mut answer = match self.look(id, asked) {
                Ok(turn) => return turn,
                Err(answer) => answer,
            };
            // Without one, whoever asked has gone: then it may be this one's turn.
            if let Ok(told) = answer.wait_for(Option::is_some).await
                && let Some(reply) = &*told
            {
                return Turn::Told(reply.clone());
            }
        }
    }

    fn look(&self, id: &str, asked: Print) -> Result<Turn, watch::Receiver<Option<Reply>>> {
        let mut entries = self.hold();
        entries.forget(self.0.lasting, self.0.most_bytes);
        match entries.by_id.get(id) {
            Some(entry) if entry.asked != asked => Ok(Turn::Taken),
            Some(Entry { answer: Answered::Told(reply), .. }) => Ok(Turn::Told(reply.clone())),
            Some(Entry { answer: Answered::NotYet(answer), .. }) => Err(answer.clone()),
            None => {
                let (tell, answer) = watch::channel(None);
                let id: Arc<str> = id.into();
                entries.by_id.insert(Arc::clone(&id), Entry { asked, answer: Answered::NotYet(answer) });
                Ok(Turn::Ask(Ticket { known: self.clone(), id, tell }))
            }
        }
    }

    fn hold(&self) -> MutexGuard<'_, Entries> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn forget(&mut self, lasting: Duration, most_bytes: usize) {
        while let Some((at, id)) = self.answered.front()
            && (self.bytes > most_bytes || at.elapsed() >= lasting)
        {
            if let Some(Entry { answer: Answered::Told(reply), .. }) = self.by_id.remove(id) {
                self.bytes -= weight(id, &reply);
            }
            self.answered.pop_front();
        }
    }
}

fn weight(id: &str, reply: &Reply) -> usize {
    id.len() + reply.body.len() + OVERHEAD
}

impl Ticket {
    /// Tells all who wait; remembered where something was charged.
    pub(super) fn tell(self, reply: &Reply, remember: bool) {
        if remember {
            let mut entries = self.known.hold();
            if let Some(entry) = entries.by_id.get_mut(&self.id) {
                entry.answer = Answered::Told(reply.clone());
                entries.bytes += weight(&self.id, reply);
                entries.answered.push_back((Instant::now(), Arc::clone(&self.id)));
                entries.forget(self.known.0.lasting, self.known.0.most_bytes);
            }
        }
        self.tell.send_replace(Some(reply.clone()));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut entries = self.known.hold();
        if let Some(Entry { answer: Answered::NotYet(_), .. }) = entries.by_id.get(&self.id) {
            entries.by_id.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    fn reply(text: &'static str) -> Reply {
        Reply::json(StatusCode::OK, text)
    }

    async fn ticket(known: &Known, id: &str) -> Ticket {
        match known.turn(id, [1, 2]).await {
            Turn::Ask(ticket) => ticket,
            _ => panic!("{id} is known"),
        }
    }

    async fn is_known(known: &Known, id: &str) -> bool {
        matches!(known.turn(id, [1, 2]).await, Turn::Told(_))
    }

    #[tokio::test]
    async fn the_second_of_two_waits_for_the_firsts_answer() {
        let known = Known::new(Duration::from_secs(60), 1 << 20);
        let first = ticket(&known, "a").await;
        let second = known.clone();
        let second = tokio::spawn(async move { second.turn("a", [1, 2]).await });
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        assert!(matches!(known.turn("a", [3, 4]).await, Turn::Taken), "another question");
        first.tell(&reply("yes"), false);
        assert!(matches!(second.await, Ok(Turn::Told(told)) if told.body == "yes"));
        assert!(!is_known(&known, "a").await, "a refusal is not remembered");
    }

    #[tokio::test]
    async fn who_goes_without_an_answer_leaves_the_question_to_the_next() {
        let known = Known::new(Duration::from_secs(60), 1 << 20);
        let first = ticket(&known, "a").await;
        let second = known.clone();
        let second = tokio::spawn(async move { matches!(second.turn("a", [1, 2]).await, Turn::Ask(_)) });
        tokio::task::yield_now().await;
        drop(first);
        assert!(second.await.expect("no panic"));
    }

    #[tokio::test]
    async fn answers_are_remembered_for_a_while_and_in_bounded_memory() {
        let known = Known::new(Duration::from_millis(200), 10 * (OVERHEAD + 10));
        for number in 0..1_000 {
            ticket(&known, &format!("{number}")).await.tell(&reply("yes"), true);
        }
        assert!(is_known(&known, "999").await);
        assert!(!is_known(&known, "900").await, "the oldest go first");
        assert!(known.hold().by_id.len() <= 11 && known.hold().answered.len() <= 10);
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert!(!is_known(&known, "999").await);
        assert_eq!(known.hold().bytes, 0);
    }
}
