//! One request, asked anew where the refusal itself says how.

use http::{HeaderMap, HeaderValue, Method, header};

use super::super::http1::{Answer, Failure, Request};
use super::super::origin;
use super::home::Place;
use super::keep::Held;
use super::refusal::{self, Cure, Refusal, Scene, Told};
use super::sign::{self, Scope};
use super::{MAX_LISTING, S3Store, list, page, session};
use crate::ledger::Ledger;
use crate::sync::Arc;

/// Turns that one request may take: a region, a clock and a credential may each have to be learned, and a region twice
/// (where the store that is asked first knows only the partition).
const MAX_TURNS: usize = 5;

/// What is asked of a bucket.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) method: Method,
    /// Behind the bucket: empty, or the encoded key with a slash in front.
    pub(super) path: String,
    pub(super) query: String,
    pub(super) with: With,
    /// Headers of its own; all are signed.
    pub(super) headers: HeaderMap,
    pub(super) body: bytes::Bytes,
}

impl Ask {
    /// Asks for something, and brings nothing along.
    pub(super) fn new(method: Method, path: String, query: String, with: With) -> Self {
        Self {
            method,
            path,
            query,
            with,
            headers: HeaderMap::new(),
            body: bytes::Bytes::new(),
        }
    }
}

/// What a request is signed with, and brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum With {
    /// The account's credential: what makes a session has none yet.
    Account,
    /// The session of a directory bucket, and the account's credential for all others.
    Session,
    /// The same, the key of the customer where there is one, and the wish for checksums: for objects.
    Object,
}

/// What a request was signed with, to hold a refusal against.
struct Stamp {
    place: Arc<Place>,
    held: Option<Arc<Held>>,
    is_session: bool,
    ahead_seconds: i64,
}

impl S3Store {
    /// Asks, and asks anew where the store says that the bucket is elsewhere, the time another, or the credential old,
    /// and something can be done about it. An answer that is no such refusal is returned with its body unread.
    pub(super) async fn exchange(
        &self,
        ask: &Ask,
        conditions: &HeaderMap,
        ledger: Option<&Ledger>,
    ) -> Result<Answer, Failure> {
        let mut turns = 1;
        loop {
            let (mut request, stamp) = self.signed(ask).await?;
            request.headers.extend(conditions.clone());
            let answer = self.account.client().send(&request).await?;
            if !refusal::is_curable(answer.head.status) {
                return Ok(answer);
            }
            let mut refused = self.understood(&ask.method, answer, &stamp.place).await;
            if ask.method == Method::HEAD && refused.cure.is_none() {
                refused = self.reason(ask).await.unwrap_or(refused);
            }
            let is_cured = refused
                .cure
                .as_ref()
                .is_some_and(|cure| self.cure(cure, &stamp, ledger));
            if !is_cured || turns == MAX_TURNS {
                return Err(refused.failure);
            }
            if let Some(ledger) = ledger {
                ledger.retried(refused.failure.cause);
            }
            turns += 1;
        }
    }

    /// The signed request for `ask`.
    async fn signed(&self, ask: &Ask) -> Result<(Request, Stamp), Failure> {
        let place = self.home.place();
        let mut headers = ask.headers.clone();
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(super::super::USER_AGENT),
        );
        if self.account.is_requester_paying() {
            headers.insert("x-amz-request-payer", HeaderValue::from_static("requester"));
        }
        if ask.with == With::Object {
            if let Some(key) = self.account.customer_key() {
                key.add(&mut headers, &place.address.endpoint)?;
            }
            let is_read = matches!(ask.method, Method::GET | Method::HEAD);
            if is_read && self.account.is_verifying() {
                headers.insert("x-amz-checksum-mode", HeaderValue::from_static("ENABLED"));
            }
        }
        let mut path = format!("{}{}", place.address.base, ask.path);
        if path.is_empty() {
            path.push('/');
        }
        if !ask.query.is_empty() {
            path.push('?');
            path.push_str(&ask.query);
        }
        let mut request = Request {
            method: ask.method.clone(),
            endpoint: place.address.endpoint.clone(),
            path_and_query: path,
            headers,
            body: ask.body.clone(),
        };
        let mut stamp = Stamp {
            place,
            held: None,
            is_session: false,
            ahead_seconds: 0,
        };
        if let Some(signer) = self.account.signer() {
            let session = self.session.as_ref().filter(|_| ask.with != With::Account);
            let (held, token_header) = match session {
                Some(session) => {
                    let now = signer.now().0;
                    let held = session.get(now, || Box::pin(self.open_session())).await?;
                    (held, sign::SESSION_TOKEN)
                }
                None => (signer.credential().await?, sign::SECURITY_TOKEN),
            };
            let scope = Scope {
                region: &stamp.place.region,
                service: stamp.place.service,
                token_header,
            };
            stamp.ahead_seconds = signer.sign(&mut request, &held, scope)?;
            stamp.is_session = session.is_some();
            stamp.held = Some(held);
        }
        Ok((request, stamp))
    }

    /// CreateSession: a credential for this directory bucket alone.
    async fn open_session(&self) -> Result<reqsign_aws_v4::Credential, Failure> {
        let ask = Ask::new(
            Method::GET,
            "/".to_owned(),
            "session".to_owned(),
            With::Account,
        );
        let answer = self.exchange(&ask, &HeaderMap::new(), None).await?;
        if answer.head.status != 200 {
            let place = self.home.place();
            return Err(self.understood(&ask.method, answer, &place).await.failure);
        }
        let (told, way) = (Told::of(&answer.head), answer.way());
        let text = answer.body.collect(MAX_LISTING).await?;
        self.check_text(told, &text, &ask.method)
            .and_then(|()| session::read(&text))
            .map_err(|failure| failure.on(&way))
    }

    /// Reads a refusal to its end.
    pub(super) async fn understood(
        &self,
        method: &Method,
        answer: Answer,
        place: &Place,
    ) -> Refusal {
        let (told, way) = (Told::of(&answer.head), answer.way());
        // The text is a help, not a need: a refusal whose text is cut off is still a refusal.
        let text = answer.body.collect(MAX_LISTING).await.unwrap_or_default();
        let mut refused = refusal::read(told, &text, &self.scene(method, place));
        refused.failure = refused.failure.on(&way);
        refused
    }

    /// Whether the text of a success is one. Some stores begin an answer before they know that they cannot give it, and
    /// what is no S3 answers anything with a page.
    pub(super) fn check_text(
        &self,
        told: Told,
        text: &[u8],
        method: &Method,
    ) -> Result<(), Failure> {
        if !page::is_page(text) && !list::is_error(text) {
            return Ok(());
        }
        let place = self.home.place();
        let scene = self.scene(method, &place);
        Err(refusal::read(told, text, &scene).failure)
    }

    /// Why a HEAD was refused: it has no text, so the first byte is asked for in its place. None where that tells no
    /// more.
    async fn reason(&self, ask: &Ask) -> Option<Refusal> {
        let (path, query) = (ask.path.clone(), ask.query.clone());
        let ask = Ask::new(Method::GET, path, query, ask.with);
        let (mut request, stamp) = self.signed(&ask).await.ok()?;
        request.headers.extend(origin::range(0, 1));
        let answer = self.account.client().send(&request).await.ok()?;
        if !refusal::is_curable(answer.head.status) {
            return None;
        }
        let refused = self.understood(&Method::HEAD, answer, &stamp.place);
        Some(refused.await)
    }

    /// Does what `cure` says; whether asking again makes sense.
    fn cure(&self, cure: &Cure, stamp: &Stamp, ledger: Option<&Ledger>) -> bool {
        match (cure, self.account.signer()) {
            (Cure::Region(region), _) => {
                let is_learned = self.home.learn(&stamp.place, region);
                if let (true, Some(ledger)) = (is_learned, ledger) {
                    let (bucket, before) = (&self.bucket, &stamp.place.region);
                    ledger.note(format!(
                        "the bucket {bucket} was looked for in {before} and is in {region}: \
                         `region={region}` saves a request"
                    ));
                }
                is_learned
            }
            (Cure::Time(store_seconds), Some(signer)) => {
                let learned = signer.learn_time(stamp.ahead_seconds, *store_seconds);
                if let (Some(ahead), Some(ledger)) = (learned, ledger) {
                    let way = if ahead > 0 { "behind" } else { "ahead of" };
                    // In minutes: the seconds would make a note of their own of each request.
                    ledger.note(format!(
                        "this machine's clock is some {} min {way} the store's: requests are signed with \
                         the store's time",
                        ahead.unsigned_abs().div_ceil(60)
                    ));
                }
                learned.is_some()
            }
            (Cure::Credential, Some(signer)) => {
                let Some(held) = &stamp.held else {
                    return false;
                };
                match &self.session {
                    Some(session) if stamp.is_session => session.refuse(held),
                    _ => signer.refuse(held),
                }
                true
            }
            (_, None) => false,
        }
    }

    pub(super) fn scene<'a>(&'a self, method: &Method, place: &'a Place) -> Scene<'a> {
        Scene {
            bucket: &self.bucket,
            region: &place.region,
            endpoint: place.address.endpoint.to_string(),
            is_head: method == Method::HEAD,
            is_anonymous: self.account.signer().is_none(),
            has_customer_key: self.account.customer_key().is_some(),
        }
    }
}
