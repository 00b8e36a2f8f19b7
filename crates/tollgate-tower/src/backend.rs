//! The limits of a layer in their store, whatever the store's type.
//!
//! A layer's type would otherwise carry its store through every signature that it appears in. A store in memory decides on the
//! caller's stack; only a store that has to ask somebody, and a request that may wait or holds slots, cost a future.
//!
//! Slots are held for as long as a response takes, and renewed meanwhile. A permit loses its slots `max_hold` after its last
//! renewal, and a response cannot see to that itself: its body is not polled while a slow client's socket is full. So the
//! backend keeps the permits, and one task renews them every third of the shortest `max_hold`. The task begins with the first
//! permit that needs it and ends when it finds none. (Permits of a shared store renew themselves.)

use pin_project_lite::pin_project;
use smallvec::SmallVec;
use std::{
    any::Any,
    borrow::Cow,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::runtime::Handle;
use tollgate::{
    Charge, Enter, Entered, Held, Key, Limit, NewLimit, Numbers, OwnedCharges, Reason, Refused, SetStatus,
    StoreError, WaitError,
};

/// As many as a request is commonly charged, off the heap.
pub(crate) type Few<T> = SmallVec<[T; 4]>;

/// A decision that is waited for. It owns what it needs.
pub(crate) type Admitting = Pin<Box<dyn Future<Output = Result<Admission, WaitError>> + Send>>;

/// One charge of a request, before its store is known.
#[derive(Clone, Copy)]
pub(crate) struct KeyCharge<'r> {
    /// Which of the layer's limits.
    pub(crate) limit: usize,
    pub(crate) key: Key<'r>,
    pub(crate) cost: u32,
    pub(crate) up_to: Option<Duration>,
}

/// How charges are decided that hold nothing and do not wait.
pub(crate) enum Checked {
    Now(Result<SetStatus, StoreError>),
    Later(Admitting),
}

/// All charges are made.
pub(crate) struct Admission {
    pub(crate) status: SetStatus,
    pub(crate) slots: Option<HeldSlots>,
}

/// Where charges are made.
pub(crate) trait Backend: Send + Sync {
    /// Charges all or none, now.
    fn check(&self, charges: &[KeyCharge<'_>]) -> Checked;

    /// Charges all or none, when their turn comes, and holds their slots. Its place is taken when it is first polled.
    fn enter(self: Arc<Self>, charges: &[KeyCharge<'_>]) -> Admitting;

    /// Gives back what is held there.
    fn release(&self, place: usize);

    /// A limit as its store names it.
    fn limit(&self, limit: usize) -> Option<&dyn Any>;
}

/// The limits of a layer in a store.
pub(crate) struct StoreBackend<S: Enter> {
    store: Arc<S>,
    limits: Vec<S::Limit>,
    /// How often permits are renewed; `None` where no limit has slots.
    renew_every: Option<Duration>,
    permits: Mutex<PermitTable<S::Permit>>,
}

struct PermitTable<P> {
    permits: Vec<Option<P>>,
    free: Vec<usize>,
    /// Whether there is a task that renews them.
    is_renewed: bool,
}

/// Slots, until this is dropped.
pub(crate) struct HeldSlots {
    backend: Arc<dyn Backend>,
    place: usize,
}

/// No timer is finer than this.
const SHORTEST: Duration = Duration::from_millis(1);

/// For how long slots of a limit are held without a renewal.
pub(crate) fn max_hold(limit: &Limit) -> Option<Duration> {
    match limit.numbers() {
        Numbers::Concurrency { max_hold, .. } => Some(max_hold),
        _ => None,
    }
}

impl<S: Enter + 'static> StoreBackend<S> {
    /// Adds these limits to a store, each under its name.
    pub(crate) fn add<'l>(
        store: &Arc<S>,
        limits: impl Iterator<Item = (&'l str, &'l Limit)> + Clone,
    ) -> Result<Arc<Self>, StoreError> {
        let shortest = limits.clone().filter_map(|(_, limit)| max_hold(limit)).min();
        let new = |(name, limit)| NewLimit {
            name: Cow::Borrowed(name),
            limit: Cow::Borrowed(limit),
            max_keys: None,
        };
        let added = store.add_all(&limits.map(new).collect::<Vec<_>>());
        Ok(Arc::new(Self {
            store: Arc::clone(store),
            limits: added.map_err(|(_, error)| error)?,
            renew_every: shortest.map(|shortest| (shortest / 3).max(SHORTEST)),
            permits: Mutex::new(PermitTable { permits: Vec::new(), free: Vec::new(), is_renewed: false }),
        }))
    }

    fn charge<'c>(&'c self, charge: &KeyCharge<'c>) -> Charge<'c, S::Limit> {
        let KeyCharge { limit, key, cost, up_to } = *charge;
        Charge { limit: &self.limits[limit], key, cost, up_to }
    }

    #[inline(always)]
    fn check_set(&self, charges: &[Charge<'_, S::Limit>]) -> Checked {
        match self.store.check_now(charges) {
            Some(decided) => Checked::Now(decided),
            None => Checked::Later(self.check_later(OwnedCharges::new(charges))),
        }
    }

    #[cold]
    fn check_later(&self, owned: OwnedCharges<S::Limit>) -> Admitting {
        let store = Arc::clone(&self.store);
        Box::pin(async move {
            let borrowed = owned.borrow();
            let charges = borrowed.charges();
            let status = store.check(&charges).await?;
            if status.is_deny() {
                let no_room = |after| Reason::NoRoom { retry_after: Some(after) };
                return Err(Refused::from_status(&status, &charges, no_room).into());
            }
            Ok(Admission { status, slots: None })
        })
    }

    /// Keeps a permit until what is returned is dropped; nothing, where the layer has no slots.
    fn hold(self: &Arc<Self>, permit: S::Permit) -> Option<HeldSlots> {
        let every = self.renew_every?;
        let is_to_renew = permit.renew_every().is_some();
        let mut table = self.permits();
        let place = table.free.pop().unwrap_or(table.permits.len());
        match table.permits.get_mut(place) {
            Some(slot) => *slot = Some(permit),
            None => table.permits.push(Some(permit)),
        }
        if is_to_renew
            && !table.is_renewed
            && let Ok(runtime) = Handle::try_current()
        {
            table.is_renewed = true;
            let renewal = Renewal { backend: Arc::clone(self), is_over: false };
            drop(table);
            runtime.spawn(renewal.run(every));
        }
        Some(HeldSlots { backend: Arc::clone(self) as Arc<dyn Backend>, place })
    }

    fn permits(&self) -> MutexGuard<'_, PermitTable<S::Permit>> {
        self.permits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Enter + 'static> Backend for StoreBackend<S> {
    fn check(&self, charges: &[KeyCharge<'_>]) -> Checked {
        match charges {
            // One charge needs no list.
            [one] => self.check_set(&[self.charge(one)]),
            several => self.check_set(&several.iter().map(|it| self.charge(it)).collect::<Few<_>>()),
        }
    }

    fn enter(self: Arc<Self>, charges: &[KeyCharge<'_>]) -> Admitting {
        let entering = {
            let charges: Few<_> = charges.iter().map(|it| self.charge(it)).collect();
            self.store.enter(&charges)
        };
        Box::pin(EnterFuture { backend: self, entering })
    }

    fn release(&self, place: usize) {
        let mut table = self.permits();
        let permit = table.permits.get_mut(place).and_then(Option::take);
        table.free.push(place);
        drop(table);
        // Giving the slots back wakes whoever waits for them, which is not to be done under a lock.
        drop(permit);
    }

    fn limit(&self, limit: usize) -> Option<&dyn Any> {
        self.limits.get(limit).map(|limit| limit as &dyn Any)
    }
}

pin_project! {
    /// A turn that is waited for, and then keeps its permit. An async block would keep the turn twice.
    struct EnterFuture<S: Enter, F> {
        backend: Arc<StoreBackend<S>>,
        #[pin]
        entering: F,
    }
}

impl<S, F> Future for EnterFuture<S, F>
where
    S: Enter + 'static,
    F: Future<Output = Result<Entered<S::Permit>, StoreError>>,
{
    type Output = Result<Admission, WaitError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Poll::Ready(match ready!(this.entering.poll(context))? {
            Entered::In(permit) => {
                let status = SetStatus::new(permit.statuses().iter().copied(), None);
                Ok(Admission { status, slots: this.backend.hold(permit) })
            }
            Entered::Refused(refused) => Err(WaitError::Refused(refused)),
        })
    }
}

impl Drop for HeldSlots {
    fn drop(&mut self) {
        self.backend.release(self.place);
    }
}

/// The task that renews. Should its runtime end before it, the next permit begins another.
struct Renewal<S: Enter + 'static> {
    backend: Arc<StoreBackend<S>>,
    is_over: bool,
}

impl<S: Enter> Renewal<S> {
    async fn run(mut self, every: Duration) {
        while !self.is_over {
            self.backend.store.sleep(every).await;
            let mut table = self.backend.permits();
            let mut held = 0;
            for permit in table.permits.iter().flatten().filter(|permit| permit.renew_every().is_some()) {
                permit.renew();
                held += 1;
            }
            // Said under the lock: whoever comes after that sees it.
            table.is_renewed = held > 0;
            self.is_over = held == 0;
        }
    }
}

impl<S: Enter + 'static> Drop for Renewal<S> {
    fn drop(&mut self) {
        if !self.is_over {
            self.backend.permits().is_renewed = false;
        }
    }
}

impl fmt::Debug for HeldSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldSlots")
    }
}
