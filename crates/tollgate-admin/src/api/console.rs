//! The console's files: whatever the program has built in, each under its own path and no other.
//!
//! A file is looked up by the path that was asked for, among those that there are: nothing is read from a disk, so there is
//! no way out of a folder.

use super::{guarded::Guarded, problem::Problem};
use crate::Needs;
use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{Method, StatusCode, header};

/// A file of the console.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Where it is asked for: `/`, `/assets/main-1a2b3c.js`.
    pub path: &'static str,
    /// What it is: `text/html; charset=utf-8`.
    pub content_type: &'static str,
    /// What it says.
    pub body: &'static [u8],
    /// How its name tells what is in it.
    pub naming: Naming,
}

/// Whether a file's name tells what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// It does: another content has another name, so that it may be kept for ever.
    ByContent,
    /// It does not: it is to be asked for again.
    Fixed,
}

/// Adds them. They are for everybody: who is to log in needs the page to do so.
pub(crate) fn add(pages: Guarded, assets: &'static [Asset]) -> Guarded {
    pages.page(Needs::Nobody, (Method::GET, "/"), serve, &assets).page(
        Needs::Nobody,
        (Method::GET, "/assets/{*file}"),
        serve,
        &assets,
    )
}

async fn serve(State(assets): State<&'static [Asset]>, request: Request) -> Result<Response, Problem> {
    let asset = assets.iter().find(|asset| asset.path == request.uri().path());
    let asset = asset.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "the console has no such file"))?;
    let kept = match asset.naming {
        Naming::ByContent => "public, max-age=31536000, immutable",
        Naming::Fixed => "no-cache",
    };
    let headers = [(header::CONTENT_TYPE, asset.content_type), (header::CACHE_CONTROL, kept)];
    Ok((headers, asset.body).into_response())
}
