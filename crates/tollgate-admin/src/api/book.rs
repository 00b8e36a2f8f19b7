//! `/v1/book`, `/v1/changes`, `/v1/switch`, `/v1/audit`: the rules as they are kept, and their changes.
//!
//! A change is judged before it is written, and in force on this node before it is answered. Changes here come one after the
//! other, so that what is answered is what is in force. All of it runs beside the thread that answers requests.

use super::{
    Api,
    access::Who,
    asked::{Asked, Said},
    problem::Problem,
    secrets::Cover,
};
use axum::{Extension, Json, extract::State};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{runtime::Handle, task};
use tollgate_book::{Book, BookError, Change, Versions, Wrong, applied};
use tollgate_rules::RuleFile;

/// Changes at a time.
const MOST: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Changes {
    changes: Vec<Change>,
}

impl Changes {
    pub(super) fn checked(self) -> Result<Vec<Change>, Problem> {
        match self.changes.len() {
            1..=MOST => Ok(self.changes),
            _ => Err(Problem::asked_wrong(format!("changes must be a list of 1 to {MOST} changes"))),
        }
    }
}

pub(super) async fn book(
    State(api): State<Api>,
    Extension(who): Extension<Who>,
    asked: Asked,
) -> Result<Json<Value>, Problem> {
    asked.only(&[])?;
    aside(async move { Ok(shown(&api, &who, api.program.keeper().read().await.map_err(refused)?)) }).await
}

pub(super) async fn change(
    State(api): State<Api>,
    Extension(who): Extension<Who>,
    Said(changes): Said<Changes>,
) -> Result<Json<Value>, Problem> {
    let changes = changes.checked()?;
    aside(async move { Ok(shown(&api, &who, publish(&api, &who, &changes).await?)) }).await
}

pub(super) async fn check(
    State(api): State<Api>,
    Said(changes): Said<Changes>,
) -> Result<Json<Value>, Problem> {
    let changes = changes.checked()?;
    let judged = aside(async move { draft(&api, &changes).await }).await?;
    Ok(Json(json!({ "mistakes": judged.err().unwrap_or_default() })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Switch {
    enabled: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchRule {
    #[serde(default)]
    route: Option<String>,
    rule: String,
    enabled: bool,
}

pub(super) async fn switch(
    State(api): State<Api>,
    Extension(who): Extension<Who>,
    Said(Switch { enabled }): Said<Switch>,
) -> Result<Json<Value>, Problem> {
    turn(api, who, Change::Switch { enabled }, enabled).await
}

pub(super) async fn switch_rule(
    State(api): State<Api>,
    Extension(who): Extension<Who>,
    Said(SwitchRule { route, rule, enabled }): Said<SwitchRule>,
) -> Result<Json<Value>, Problem> {
    turn(api, who, Change::SwitchRule { route, rule, enabled }, enabled).await
}

async fn turn(api: Api, who: Who, change: Change, enabled: bool) -> Result<Json<Value>, Problem> {
    aside(async move { publish(&api, &who, &[change]).await }).await?;
    Ok(Json(json!({ "enabled": enabled })))
}

pub(super) async fn audit(
    State(api): State<Api>,
    Extension(who): Extension<Who>,
    asked: Asked,
) -> Result<Json<Value>, Problem> {
    asked.only(&["before", "n"])?;
    let before = asked.one("before", "the number of an entry")?;
    let n: usize = asked.one("n", "a number from 1 to 500")?.unwrap_or(50);
    if !(1..=500).contains(&n) {
        return Err(Problem::asked_wrong("n must be a number from 1 to 500"));
    }
    aside(async move {
        let mut entries = api.program.keeper().history(before, n).await.map_err(refused)?;
        let cover = Cover::of(&api, who.role);
        // Switches and places are told in our own words.
        let texts =
            entries.iter_mut().filter(|entry| !["switch", "enable", "move"].contains(&&*entry.action));
        for text in texts.flat_map(|entry| [&mut entry.before, &mut entry.after]).flatten() {
            *text = cover.over(text);
        }
        Ok(Json(json!({ "entries": entries })))
    })
    .await
}

/// Writes changes down, and puts them in force here.
async fn publish(api: &Api, who: &Who, changes: &[Change]) -> Result<Book, Problem> {
    let _one = api.changing.lock().await;
    let judge = |book: &Book| api.program.judge(book).map(|_: RuleFile| ());
    let book = api.program.keeper().change(changes, &who.name, &judge).await.map_err(refused)?;
    if let Err(why) = api.program.take(&book).await {
        // Beside a mistake of somebody's hand the switch alone counts, and may have been so before.
        let mut is_so = changes.iter().all(Change::is_switch);
        api.program.in_force(&mut |program, _| is_so &= program.file().enabled == book.enabled);
        if !is_so {
            let detail = format!("it is written down, and not in force on this node: {why}");
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
        }
    }
    api.events.rules(&book.revision, Some(&who.name));
    Ok(book)
}

/// The rules that there would be after these changes, or what is wrong with them. Nothing is written, and nobody asks
/// whether somebody else was faster.
pub(super) async fn draft(api: &Api, changes: &[Change]) -> Result<Result<RuleFile, Vec<Wrong>>, Problem> {
    let book = api.program.keeper().read().await.map_err(refused)?;
    match applied(&book, changes, Versions::Waived) {
        Ok(draft) => Ok(api.program.judge(&draft)),
        Err(BookError::Wrong(mistakes)) => Ok(Err(mistakes)),
        Err(why) => Err(refused(why)),
    }
}

fn shown(api: &Api, who: &Who, mut book: Book) -> Json<Value> {
    let cover = Cover::of(api, who.role);
    book.pieces.iter_mut().for_each(|piece| piece.text = cover.over(&piece.text));
    let source = api.program.keeper().source();
    Json(
        json!({ "revision": book.revision, "enabled": book.enabled, "source": source, "pieces": book.pieces }),
    )
}

/// Runs what reads, compiles or writes rules on a thread that may block: many rules take a while, at every key somebody
/// presses, and no other request waits for that. It goes on when the client is gone, so that a change is never half made.
pub(super) async fn aside<T: Send + 'static>(
    work: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    let runtime = Handle::current();
    let done = task::spawn_blocking(move || runtime.block_on(work)).await;
    done.map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the rules could not be read"))?
}

/// What a keeper says no with.
pub(super) fn refused(why: BookError) -> Problem {
    let detail = why.to_string();
    match why {
        BookError::Stale(stale) => Problem::new(StatusCode::CONFLICT, detail).with("stale", json!(stale)),
        BookError::Wrong(mistakes) => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with("mistakes", json!(mistakes))
        }
        BookError::Missing(_) => Problem::new(StatusCode::NOT_FOUND, detail),
        BookError::Refused(_) => Problem::new(StatusCode::FORBIDDEN, detail),
        _ => Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail),
    }
}
