//! The console: its files, built from `web/` and put into the program by `build.rs`.
//!
//! A file is looked up by the path that was asked for, among those that there are: nothing is read from a disk, so there is
//! no way out of a folder. The paths of the console's pages all have the one page, which knows by its address what to show;
//! any other path is nobody's. Files whose names tell their contents may be kept for ever, the page is asked for again.

use crate::{
    Needs,
    api::{guarded::Guarded, problem::Problem},
};
use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

/// A file of the console.
struct File {
    path: &'static str,
    content_type: &'static str,
    /// Another one for another content.
    tag: &'static str,
    body: &'static [u8],
    /// The same, compressed when it was built.
    gzip: Option<&'static [u8]>,
}

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Where the console's pages are; `web/src/app.tsx` knows the same.
const PAGES: [&str; 7] = ["/", "/rules", "/rules/draft", "/rules/history", "/keys", "/playground", "/nodes"];

/// Where everything else is that they are made of.
const ASSETS: &str = "/assets/{*file}";

/// The console. It is for everybody: who is to sign in needs the page to do so, and it holds nothing of anybody's.
#[derive(Clone, Copy)]
pub(crate) struct Console;

impl Console {
    /// Adds its pages.
    pub(crate) fn add(self, pages: Guarded) -> Guarded {
        PAGES
            .into_iter()
            .chain([ASSETS])
            .fold(pages, |pages, path| pages.page(Needs::Nobody, (Method::GET, path), serve, &()))
    }
}

async fn serve(request: Request) -> Result<Response, Problem> {
    let path = request.uri().path();
    let name = if PAGES.contains(&path) { "/index.html" } else { path };
    let file = FILES.iter().find(|file| file.path == name);
    let file = file.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "the console has no such file"))?;
    Ok(file.told(request.headers()))
}

impl File {
    fn told(&self, headers: &HeaderMap) -> Response {
        let kept = if self.path.starts_with("/assets/") {
            "public, max-age=31536000, immutable"
        } else {
            "no-cache"
        };
        let common = [
            (header::CACHE_CONTROL, HeaderValue::from_static(kept)),
            (header::ETAG, HeaderValue::from_static(self.tag)),
            (header::VARY, HeaderValue::from_static("accept-encoding")),
        ];
        if says(headers, &header::IF_NONE_MATCH, |tag| tag == "*" || tag.trim_start_matches("W/") == self.tag)
        {
            return (StatusCode::NOT_MODIFIED, common).into_response();
        }
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type))];
        match self.gzip {
            Some(gzip) if takes_gzip(headers) => {
                let packed = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
                (common, kind, packed, gzip).into_response()
            }
            _ => (common, kind, self.body).into_response(),
        }
    }
}

/// Whether one of a field's values, which commas part, is so.
fn says(headers: &HeaderMap, name: &HeaderName, is: impl Fn(&str) -> bool) -> bool {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|value| is(value.trim()))
}

/// Whoever says so, and does not say that they would rather not (`gzip;q=0`).
fn takes_gzip(headers: &HeaderMap) -> bool {
    says(headers, &header::ACCEPT_ENCODING, |value| {
        let (name, rest) = value.split_once(';').unwrap_or((value, ""));
        let weight = rest.trim().strip_prefix("q=").and_then(|weight| weight.trim().parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.unwrap_or(1.0) > 0.0
    })
}
