//! Pages, each with whom it is for.
//!
//! There is one way to add a page, and it takes a [`Needs`]: a page that nobody thought about cannot be reached. What was
//! added is listed, for the document that describes it all and the test that holds it to its word.

use super::{
    access::Access,
    gate::{self, Needs},
    problem::Problem,
};
use axum::{Router, handler::Handler, middleware, response::IntoResponse, routing::on};
use http::{Method, StatusCode};

/// Pages, each with whom it is for.
pub(crate) struct Guarded {
    router: Router,
    access: Access,
    listed: Vec<Operation>,
}

/// Something that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// How.
    pub method: Method,
    /// Where.
    pub path: &'static str,
    /// Who may.
    pub needs: Needs,
}

impl Guarded {
    pub(crate) fn new(access: Access) -> Self {
        Self { router: Router::new(), access, listed: Vec::new() }
    }

    /// A page for those who have what it needs, made from `state`. A GET answers HEAD too.
    pub(crate) fn page<H: Handler<T, S>, T: 'static, S: Clone + Send + Sync + 'static>(
        self,
        needs: Needs,
        (method, path): (Method, &'static str),
        handler: H,
        state: &S,
    ) -> Self {
        let filter = method.clone().try_into();
        let filter = filter.unwrap_or_else(|_| unreachable!("{method} is one of the usual methods"));
        let gate = middleware::from_fn_with_state((self.access.clone(), needs), gate::pass);
        let page = on(filter, handler).route_layer(gate).with_state(state.clone());
        let mut listed = self.listed;
        listed.push(Operation { method, path, needs });
        Self { router: self.router.route(path, page), access: self.access, listed }
    }

    /// What can be asked for.
    pub(crate) fn listed(&self) -> &[Operation] {
        &self.listed
    }

    /// All of them, and an answer for what is not there.
    pub(crate) fn into_router(self) -> Router {
        let there: Vec<_> = self.listed.iter().map(|it| it.path).filter(|path| !path.contains('{')).collect();
        let nowhere = format!("there are {}", listed(there));
        self.router
            .fallback(async move || Problem::new(StatusCode::NOT_FOUND, nowhere.clone()).into_response())
            .method_not_allowed_fallback(async || {
                Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this page is not for that method")
                    .into_response()
            })
    }
}

fn listed(mut paths: Vec<&str>) -> String {
    paths.sort_unstable();
    paths.dedup();
    let last = paths.pop().unwrap_or_default();
    if paths.is_empty() { last.to_owned() } else { format!("{} and {last}", paths.join(", ")) }
}
