//! The loop below the protocol: accept, TLS, HTTP/1.1, one record per request.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use s3s::Body;
use s3s::service::S3Service;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use super::record::{Records, RequestRecord};

/// What every connection shares.
pub(crate) struct Shared {
    pub(crate) service: S3Service,
    pub(crate) records: Arc<Records>,
    pub(crate) region: String,
    pub(crate) acceptor: Option<TlsAcceptor>,
    pub(crate) connections: AtomicU64,
}

/// Serves until `stop` fires or its sender is dropped.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    shared: Arc<Shared>,
    mut stop: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let accepted = tokio::select! {
            _ = &mut stop => return Ok(()),
            accepted = listener.accept() => accepted,
        };
        // Failures here are of one connection (aborted before we came to it), or pass by
        // themselves (too many open files); neither ends the server.
        let Ok((socket, _)) = accepted else {
            tokio::task::yield_now().await;
            continue;
        };
        let number = shared.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(begin(socket, number, Arc::clone(&shared)));
    }
}

async fn begin(socket: TcpStream, number: u64, shared: Arc<Shared>) {
    // Without it, the last segment of an answer waits for the client's delayed ACK.
    drop(socket.set_nodelay(true));
    match shared.acceptor.clone() {
        None => speak(socket, number, shared).await,
        Some(acceptor) => {
            // A client that does not trust us ends here, as it should.
            if let Ok(socket) = acceptor.accept(socket).await {
                speak(socket, number, shared).await;
            }
        }
    }
}

async fn speak(socket: impl AsyncRead + AsyncWrite + Unpin, number: u64, shared: Arc<Shared>) {
    let service = service_fn(move |request| answer(request, number, Arc::clone(&shared)));
    // An error is the client's going away; there is nobody left to tell.
    let spoken = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(socket), service)
        .await;
    drop(spoken);
}

fn answer(
    request: Request<Incoming>,
    connection: u64,
    shared: Arc<Shared>,
) -> impl Future<Output = Result<Response<Body>, Infallible>> {
    let text = |name| {
        Some(
            request
                .headers()
                .get::<header::HeaderName>(name)?
                .to_str()
                .ok()?
                .to_owned(),
        )
    };
    let mut record = RequestRecord {
        connection,
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
        query: request.uri().query().map(str::to_owned),
        range: text(header::RANGE),
        if_match: text(header::IF_MATCH),
        status: 0,
        length_bytes: None,
    };
    async move {
        let mut response = match wrong_region(&request, &shared.region) {
            Some(response) => response,
            None => match shared.service.call(request.map(Body::from)).await {
                Ok(response) => response,
                Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, String::new()),
            },
        };
        if response.status() == StatusCode::NOT_MODIFIED {
            // RFC 9110, 15.4.5: a 304 has no content; `s3s` gives every error an XML body.
            *response.body_mut() = Body::empty();
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
        record.status = response.status().as_u16();
        record.length_bytes = content_length(response.headers());
        shared.records.push(record);
        Ok(response)
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

fn plain(status: StatusCode, xml: String) -> Response<Body> {
    let mut response = Response::new(Body::from(xml));
    *response.status_mut() = status;
    response
}

/// S3 refuses a signature for another region and names its own; `s3s` knows no region.
fn wrong_region<B>(request: &Request<B>, region: &str) -> Option<Response<Body>> {
    let scope = request
        .headers()
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?;
    let signed_for = scope.split_once("Credential=")?.1.split('/').nth(2)?;
    if signed_for == region {
        return None;
    }
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>AuthorizationHeaderMalformed\
         </Code><Message>The authorization header is malformed; the region is wrong; expecting \
         '{region}'</Message><Region>{region}</Region></Error>"
    );
    let mut response = plain(StatusCode::BAD_REQUEST, xml);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/xml"),
    );
    if let Ok(region) = header::HeaderValue::from_str(region) {
        headers.insert("x-amz-bucket-region", region);
    }
    Some(response)
}
