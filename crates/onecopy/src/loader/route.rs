//! Which route a load takes.

use crate::error::{Error, ErrorKind, Result};
use crate::route::{Fallback, Hop, Route, RouteWish};
use crate::store::Source;

/// The hop that reads count on: `read` where all sources are files, `recv` otherwise (stores open what they need beside).
pub(super) fn hop_of(sources: &[&Source]) -> Hop {
    let is_file = |source: &&Source| is_local(&source.object.url);
    if !sources.is_empty() && sources.iter().all(is_file) {
        Hop::Read
    } else {
        Hop::Recv
    }
}

/// Whether `url` is a path on this machine.
pub(super) fn is_local(url: &str) -> bool {
    url.starts_with("file://") || !url.contains("://")
}

/// The route taken for a wish. Only `stream` works in this version.
pub(super) fn choose(wish: RouteWish) -> Result<(Route, Option<Fallback>)> {
    let why = "this version has the stream route only";
    match wish {
        RouteWish::Auto | RouteWish::Prefer(Route::Stream) | RouteWish::Require(Route::Stream) => {
            Ok((Route::Stream, None))
        }
        RouteWish::Prefer(route) => {
            let (wanted, used) = (route.to_string(), Route::Stream.to_string());
            Ok((
                Route::Stream,
                Some(Fallback {
                    wanted,
                    used,
                    why: why.to_owned(),
                }),
            ))
        }
        RouteWish::Require(route) => Err(Error::new(
            ErrorKind::Unsupported,
            "take the route",
            route.to_string(),
            why,
        )
        .with_help("use `require=stream`, or `route=auto`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_route_is_never_replaced() {
        assert_eq!(
            choose(RouteWish::Require(Route::Direct))
                .unwrap_err()
                .kind(),
            ErrorKind::Unsupported
        );
        let (route, fallback) = choose(RouteWish::Prefer(Route::Cache)).unwrap();
        assert_eq!(
            (route, fallback.unwrap().wanted.as_str()),
            (Route::Stream, "cache")
        );
    }
}
