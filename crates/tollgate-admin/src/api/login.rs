//! Who one is, and how to become somebody: `/v1/me`, `/v1/login`, `/v1/logout`.

use super::{
    access::{Access, COOKIE, Line, Who},
    asked::Said,
    gate,
    problem::Problem,
    sessions::LASTING,
};
use axum::{
    Extension, Json,
    extract::{FromRequest, Request, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};

/// A token, with room for any.
const LONGEST: usize = 8 * 1024;

fn told(who: &Who, access: &Access) -> Value {
    json!({ "name": who.name, "role": who.role.name(), "login": access.asks() })
}

pub(crate) async fn me(Extension(who): Extension<Who>, State(access): State<Access>) -> Json<Value> {
    Json(told(&who, &access))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    token: String,
}

pub(crate) async fn login(State(access): State<Access>, request: Request) -> Result<Response, Problem> {
    if !access.asks() {
        let detail = "nobody logs in here: the rule file names no users";
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    let headers = request.headers().clone();
    let peer = gate::peer(&request);
    let Said(Login { token }) = Said::<_, LONGEST>::from_request(request, &()).await?;
    let (who, session) = access.login(&token, &headers, peer).map_err(gate::stopped)?;
    let cookie = cookie(&access, &session, LASTING.as_secs());
    Ok(([(header::SET_COOKIE, cookie)], Json(told(&who, &access))).into_response())
}

pub(crate) async fn logout(State(access): State<Access>, request: Request) -> Response {
    access.logout(request.headers());
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie(&access, "", 0))]).into_response()
}

/// No script reads it, and no request carries it that another site began.
fn cookie(access: &Access, value: &str, seconds: u64) -> String {
    let secure = if access.line() == Line::Plain { "" } else { "; Secure" };
    format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
}
