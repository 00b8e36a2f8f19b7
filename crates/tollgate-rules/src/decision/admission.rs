//! How a set of charges is put to a store: in turn, sleeping until it comes and holding slots; or at once.

use std::{sync::Arc, time::Duration};
use tollgate::{Answer, Charge, Decision, Enter, Entered, Held, PermitId, SetStatus, Store, StoreError};

/// The decision on a set, and what it holds.
#[derive(Debug)]
#[must_use = "a permit that is dropped gives its slots back"]
pub struct SetDecision<P> {
    /// The status of every charge.
    pub status: SetStatus,
    /// How long it waited for its turn, or is to wait where nobody slept.
    pub waited: Duration,
    /// What it holds; nothing where it was denied, or where nothing was entered.
    pub permit: Option<P>,
}

/// How a set is put to a store.
pub(super) trait Admission<S: Store> {
    /// What is held until the request is done.
    type Permit: Send + Sync;

    /// Whether it sleeps until the turn comes.
    const SLEEPS: bool;

    /// Puts a set to the store; `enters` says whether it may have to wait, or holds slots.
    fn ask(
        store: &Arc<S>,
        charges: &[Charge<'_, S::Limit>],
        enters: bool,
    ) -> impl Answer<SetDecision<Self::Permit>>;
}

/// The request goes when its turn comes, and holds its slots.
pub(super) enum InTurn {}

/// Only the decision is wanted, at once; slots are held for as long as their limit lets them be.
pub(super) enum AtOnce {}

impl<S: Enter> Admission<S> for InTurn {
    type Permit = S::Permit;

    const SLEEPS: bool = true;

    async fn ask(
        store: &Arc<S>,
        charges: &[Charge<'_, S::Limit>],
        enters: bool,
    ) -> Result<SetDecision<S::Permit>, StoreError> {
        if !enters {
            let status = store.check(charges).await?;
            if let Some(permit) = status.permit() {
                give_back(store, charges, permit).await;
            }
            return Ok(SetDecision { status, permit: None, waited: Duration::ZERO });
        }
        Ok(match store.enter(charges).await? {
            Entered::In(permit) => SetDecision {
                status: SetStatus::new(permit.statuses().iter().copied(), None),
                waited: permit.waited(),
                permit: Some(permit),
            },
            Entered::Refused(refused) => {
                SetDecision { status: refused.status(), permit: None, waited: Duration::ZERO }
            }
        })
    }
}

impl<S: Store> Admission<S> for AtOnce {
    type Permit = ();

    const SLEEPS: bool = false;

    async fn ask(
        store: &Arc<S>,
        charges: &[Charge<'_, S::Limit>],
        _: bool,
    ) -> Result<SetDecision<()>, StoreError> {
        let status = store.check(charges).await?;
        let waited = match status.decision() {
            Decision::Wait(wait) => wait,
            _ => Duration::ZERO,
        };
        Ok(SetDecision { status, permit: None, waited })
    }
}

/// Gives back slots that nobody of these rules holds: those that come into force in a moment have made a limit one of slots
/// that was none. Where that fails they come back by time.
async fn give_back<S: Store>(store: &Arc<S>, charges: &[Charge<'_, S::Limit>], permit: PermitId) {
    // In a box, so that a request, to which this hardly ever happens, is no larger for it.
    let _: Result<u32, StoreError> = Box::pin(store.leave(charges, permit)).await;
}
