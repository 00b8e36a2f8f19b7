//! `/v1/keys`: what one key holds, by its exact name; and reset, grant, ban.
//!
//! A limit is called here as `/v1/top` calls it: by its name in the file, or `route/rule[place]` for a rule's own.

use super::{
    Api,
    access::Who,
    asked::{Asked, Said},
    problem::Problem,
};
use crate::{Held, KeyAct, KeyError};
use axum::{Extension, Json, extract::State};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{borrow::Cow, time::Duration};
use tollgate::{Decision, Key};
use tollgate_rules::json::{KeyText, owned_key};

/// More, and longer, than any rule makes.
const PARTS: usize = 32;
const LONGEST: usize = 8 * 1024;

/// A ban of ten years is one that somebody lifts.
const LONGEST_BAN: u64 = 10 * 365 * 86_400;

/// A key, value by value.
struct Whose(Vec<Option<String>>);

pub(super) async fn look(State(api): State<Api>, asked: Asked) -> Result<Json<Value>, Problem> {
    asked.only(&["limit", "key", "missing"])?;
    let limit: Option<String> = asked.one("limit", "the name of a limit")?;
    let limit = limit
        .ok_or_else(|| Problem::asked_wrong("limit is missing: the name of a limit, as /v1/top has it"))?;
    let mut values: Vec<_> = asked.all("key").map(|value| Some(value.to_owned())).collect();
    let mut missing: Vec<usize> = Vec::new();
    for place in asked.all("missing") {
        let place = place.parse().ok().filter(|place| *place < PARTS);
        missing
            .push(place.ok_or_else(|| Problem::asked_wrong("missing must be a place in the key, from 0"))?);
    }
    missing.sort_unstable();
    for place in missing {
        if place > values.len() {
            return Err(Problem::asked_wrong("missing must be a place in the key, from 0"));
        }
        values.insert(place, None);
    }
    let whose = Whose(values).checked()?;
    act(&api, &limit, &whose, KeyAct::Look).await.map(Json)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reset {
    limit: String,
    #[serde(default, deserialize_with = "owned_key")]
    key: KeyText<'static>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grant {
    limit: String,
    #[serde(default, deserialize_with = "owned_key")]
    key: KeyText<'static>,
    units: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ban {
    limit: String,
    #[serde(default, deserialize_with = "owned_key")]
    key: KeyText<'static>,
    seconds: u64,
}

pub(super) async fn reset(
    State(api): State<Api>,
    Extension(who): Extension<Who>,
    Said(said): Said<Reset>,
) -> Result<Json<Value>, Problem> {
    done(&api, &who, &said.limit, said.key, (KeyAct::Reset, "reset")).await
}

pub(super) async fn grant(
    State(api): State<Api>,
    Extension(who): Extension<Who>,
    Said(said): Said<Grant>,
) -> Result<Json<Value>, Problem> {
    if said.units == 0 {
        return Err(Problem::asked_wrong("units must be greater than zero"));
    }
    let about = format!("grant {}", said.units);
    done(&api, &who, &said.limit, said.key, (KeyAct::Grant(said.units), &about)).await
}

pub(super) async fn ban(
    State(api): State<Api>,
    Extension(who): Extension<Who>,
    Said(said): Said<Ban>,
) -> Result<Json<Value>, Problem> {
    if said.seconds > LONGEST_BAN {
        return Err(Problem::asked_wrong(format!(
            "seconds must be at most {LONGEST_BAN}, ten years; 0 lifts a ban"
        )));
    }
    let act = KeyAct::Ban(Duration::from_secs(said.seconds));
    let about = if said.seconds == 0 { "lift ban".to_owned() } else { format!("ban {} s", said.seconds) };
    done(&api, &who, &said.limit, said.key, (act, &about)).await
}

async fn done(
    api: &Api,
    who: &Who,
    limit: &str,
    key: KeyText<'static>,
    (act, action): (KeyAct, &str),
) -> Result<Json<Value>, Problem> {
    let whose = Whose(key.0.into_iter().map(|value| value.map(Cow::into_owned)).collect()).checked()?;
    let (api, by) = (api.clone(), who.name.clone());
    let (limit, action) = (limit.to_owned(), action.to_owned());
    // A task of its own: whoever hangs up in the middle does not keep it from being written down.
    let doing = tokio::spawn(async move {
        let mut told = self::act(&api, &limit, &whose, act).await?;
        let about = format!("limit {limit} key {}", whose.told());
        // It is done. Where it cannot be written down, as in a folder that nobody may write to, that is told.
        if let Err(why) = api.program.keeper().note(&by, &action, &about).await {
            told["not_noted"] = json!(why.to_string());
        }
        Ok(Json(told))
    });
    doing.await.map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "it could not be done"))?
}

async fn act(api: &Api, limit: &str, whose: &Whose, act: KeyAct) -> Result<Value, Problem> {
    let texts: Vec<_> = whose.0.iter().map(Option::as_deref).collect();
    // As rules make their keys.
    let key = match texts.as_slice() {
        [] => Key::All,
        [Some(text)] => Key::Text(text),
        texts => Key::List(texts),
    };
    let Held { asked, now } = api.program.key(limit, key, act).await.map_err(|why| {
        let status = match why {
            KeyError::UnknownLimit { .. } => StatusCode::NOT_FOUND,
            KeyError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem::new(status, why.to_string())
    })?;
    let decision = match asked.decision() {
        Decision::Allow => "allow",
        Decision::Wait(_) => "wait",
        Decision::Deny(_) => "deny",
    };
    let (refused, used) = api.sketch.rates(limit, key);
    Ok(json!({
        "limit": limit,
        "key": whose.0,
        "decision": decision,
        "remaining": now.remaining(),
        "of": asked.limit(),
        "reset_after_ms": now.reset_after().map(millis),
        "retry_after_ms": asked.retry_after().map(millis),
        "decided_by": asked.decided_by().as_str(),
        "refused_per_second": refused,
        "used_per_second": used,
    }))
}

impl Whose {
    fn checked(self) -> Result<Self, Problem> {
        let length: usize = self.0.iter().flatten().map(String::len).sum();
        if self.0.len() > PARTS || length > LONGEST {
            return Err(Problem::asked_wrong("a key has at most 32 parts, of 8 KiB together"));
        }
        Ok(self)
    }

    /// For people; a list is told as one.
    fn told(&self) -> String {
        match self.0.as_slice() {
            [Some(one)] => one.clone(),
            several => json!(several).to_string(),
        }
    }
}

/// Rounded up, as every hint is: who comes back then is not early.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}
