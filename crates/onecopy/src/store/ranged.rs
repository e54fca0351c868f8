//! A range of an object on HTTP, read into its target over as many requests as it takes.

use http::{Method, header};

use super::checksum::{Checksum, Sum};
use super::http1::{Answer, Body, Failure, Gap};
use super::origin::{self, ContentRange, Origin};
use super::retry::Retry;
use super::{Filled, Object, Taker, Target};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Await, OpenAwait, OpenHop};
use crate::size::to_usize;

/// One range on its way.
#[derive(Debug)]
struct Reading<'a> {
    origin: &'a dyn Origin,
    hop: &'a OpenHop,
    object: Object,
    offset: u64,
    target: Target,
    /// Bytes that the target holds.
    room: u64,
    /// Bytes that are in it.
    filled: u64,
    /// Whether to ask without a range: the object was known to fit when reading began, or its server refuses ranges.
    is_whole: bool,
    /// The checksum over what is filled, where it can be held against the store's.
    sum: Option<Sum>,
    /// What the answer with the whole of the object said that this must come to.
    expected: Option<Checksum>,
    /// The checksum over what was handed over.
    handed: Option<Sum>,
    taker: Option<&'a mut dyn Taker>,
}

/// Reads from `offset` on into `target`, as [`super::Store::read_into`] promises.
pub(super) async fn read_into(
    origin: &dyn Origin,
    hop: &OpenHop,
    object: &Object,
    offset: u64,
    target: Target,
) -> Result<Filled> {
    read_run(origin, hop, object, offset, target, None).await
}

/// The same, handing over what is full, as [`super::Store::read_run`] promises.
pub(super) async fn read_run<'a>(
    origin: &'a dyn Origin,
    hop: &'a OpenHop,
    object: &'a Object,
    offset: u64,
    target: Target,
    taker: Option<&'a mut dyn Taker>,
) -> Result<Filled> {
    let room: u64 = target.iter().map(|slab| slab.len() as u64).sum();
    let object = object.clone();
    let is_whole = offset == 0 && object.len_bytes.is_some_and(|len| len <= room);
    let mut reading = Reading {
        origin,
        hop,
        object,
        offset,
        target,
        room,
        filled: 0,
        is_whole,
        sum: None,
        expected: None,
        handed: None,
        taker,
    };
    if reading.object.len_bytes.is_some_and(|len| offset > len) {
        return Err(reading.error(origin::past_the_end(reading.object.len_bytes)));
    }
    if !is_whole && !reading.is_done() {
        let summing = origin.summing(&reading.object, hop.ledger()).await;
        reading.sum = summing.map(Sum::new);
        reading.handed.clone_from(&reading.sum);
    }
    let _under_way = reading.under_way();
    let mut retry = Retry::counted(origin.client(), hop.ledger());
    while !reading.is_done() {
        let began = reading.offset;
        if let Err(failure) = reading.go_on().await {
            if reading.offset > began {
                // What was handed over went well; the next slab has its own tries.
                retry.succeeded();
                retry = Retry::counted(origin.client(), hop.ledger());
            }
            if failure.is_odd() {
                // Nothing of an odd answer counts, and it may have written over what was there.
                reading.begin_anew();
            }
            let next = retry.after(failure).await;
            next.map_err(|failure| reading.error(failure))?;
        } else if reading.is_done() {
            retry.succeeded();
        }
    }
    if let Some(sum) = reading.sum.take() {
        let passed = origin.passed(&reading.object, offset, sum, hop.ledger());
        passed.map_err(|failure| reading.error(failure))?;
    }
    Ok(Filled {
        target: reading.target,
        len_bytes: reading.filled,
        object: reading.object,
    })
}

impl Reading<'_> {
    /// How many bytes there are to read, as far as it is known: what the target holds, or what the object has left.
    fn want(&self) -> u64 {
        let left = self
            .object
            .len_bytes
            .map_or(u64::MAX, |len| len.saturating_sub(self.offset));
        self.room.min(left)
    }

    /// Tells what is being read.
    fn under_way(&self) -> OpenAwait {
        let (from, url) = (self.offset, &self.object.url);
        let end = from.saturating_add(self.want());
        let what = format_args!("bytes {from}..{end} of {url}");
        self.hop.ledger().awaits(Await::Request, what)
    }

    fn is_done(&self) -> bool {
        self.filled >= self.want()
    }

    /// What was filled and not handed over does not count any more, nor does its checksum.
    fn begin_anew(&mut self) {
        self.filled = 0;
        self.expected = None;
        self.sum.clone_from(&self.handed);
    }

    fn error(&self, failure: Failure) -> Error {
        if failure.kind == ErrorKind::NotFound {
            // There is nothing of which these could be bytes.
            return failure.into_error("read", &*self.object.url);
        }
        let end = self.offset.saturating_add(self.want());
        failure.into_error(
            format!("read bytes {}..{end} of", self.offset),
            &*self.object.url,
        )
    }

    /// One request: asks for what is missing and reads what comes.
    async fn go_on(&mut self) -> Result<(), Failure> {
        let from = self.offset + self.filled;
        let to = self.offset.saturating_add(self.want());
        let is_whole = self.is_whole && from == 0;
        let mut conditions = if is_whole {
            http::HeaderMap::new()
        } else {
            origin::range(from, to)
        };
        if let Some(tag) = origin::if_match(&self.object) {
            conditions.insert(header::IF_MATCH, tag);
        }
        let ledger = Some(&**self.hop.ledger());
        let asked = self
            .origin
            .ask(Method::GET, &self.object, conditions, ledger);
        let answer = asked.await?;
        let way = answer.way();
        let taken = self.take(answer, is_whole, (from, to)).await;
        taken.map_err(|failure| failure.on(&way))
    }

    /// Takes the answer for what it is.
    async fn take(
        &mut self,
        answer: Answer,
        is_whole: bool,
        (from, to): (u64, u64),
    ) -> Result<(), Failure> {
        match answer.head.status {
            200 if self.origin.is_disguised(&answer.head, !is_whole) => {
                Err(self.origin.refused(&Method::GET, answer).await)
            }
            206 if !is_whole => self.take_part(answer, from, to).await,
            200 => self.take_whole(answer).await,
            412 => Err(origin::changed("it is not the version whose reading began")),
            416 if !is_whole => self.take_nothing(&answer, from),
            206 => Err(Failure::corrupt(
                "part of the object came back where all of it was asked for",
            )),
            _ => Err(self.origin.refused(&Method::GET, answer).await),
        }
    }

    /// 206: exactly the bytes that were asked for, or up to the end of an object whose length was not known.
    async fn take_part(&mut self, answer: Answer, from: u64, to: u64) -> Result<(), Failure> {
        origin::check_version(&mut self.object, &answer.head, self.hop.ledger())?;
        let Some(ContentRange {
            bytes: Some((got_from, got_to)),
            total,
        }) = ContentRange::read(&answer.head)
        else {
            return Err(Failure::corrupt(
                "the answer does not say which bytes it brings",
            ));
        };
        if let (Some(known), Some(total)) = (self.object.len_bytes, total)
            && known != total
        {
            let why = format!("its length was {known} and is {total}");
            return Err(origin::changed(&why));
        }
        let expected = to.min(total.unwrap_or(to));
        if (got_from, got_to) != (from, expected) {
            let why =
                format!("bytes {from}..{expected} were asked for and {got_from}..{got_to} came");
            return Err(Failure::corrupt(why));
        }
        if answer
            .body
            .len_bytes()
            .is_some_and(|len| len != got_to - got_from)
        {
            return Err(Failure::corrupt(
                "the Content-Length and the Content-Range disagree",
            ));
        }
        if self.object.len_bytes.is_none() {
            self.object.len_bytes = total;
        }
        self.learn(&answer);
        if let Some(taker) = &mut self.taker {
            taker.told(&self.object);
        }
        let mut body = answer.body;
        self.fill_up(&mut body, got_to).await?;
        if self.is_done() {
            self.verify()?;
        }
        // All that was asked for is here: what becomes of the connection is no longer this range's business.
        if let Err(failure) = body.finish().await {
            tracing::debug!(
                why = failure.why,
                "a connection did not end its answer well"
            );
        }
        Ok(())
    }

    /// 200: the whole object, which is what was wanted only if it begins at 0 and fits. What was there of it already
    /// is then read once more: a server that knows no ranges can only begin anew.
    async fn take_whole(&mut self, answer: Answer) -> Result<(), Failure> {
        origin::check_version(&mut self.object, &answer.head, self.hop.ledger())?;
        let promised = answer.body.len_bytes();
        if let (Some(known), Some(promised)) = (self.object.len_bytes, promised)
            && known != promised
        {
            let why = format!("its length was {known} and is {promised}");
            return Err(origin::changed(&why));
        }
        let len = promised.or(self.object.len_bytes);
        if self.offset != 0 || len.is_some_and(|len| len > self.room) {
            return Err(origin::ignores_ranges());
        }
        self.learn(&answer);
        self.begin_anew();
        self.expected = self.origin.expected(&answer.head);
        if let Some(expected) = &self.expected {
            self.sum = Some(expected.begin());
        }
        let mut body = answer.body;
        if body.is_unproven() && len.is_none() {
            self.hop.ledger().warned("length_unproven");
        }
        self.fill(&mut body, len.unwrap_or(self.room)).await?;
        if let Some(len) = len
            && self.filled < len
        {
            return Err(origin::short(len - self.filled));
        }
        if len.is_some() {
            self.object.len_bytes = len;
            self.verify()?;
        }
        if !body.finish().await? {
            return Err(if len.is_some() {
                Failure::corrupt("the body is longer than the object")
            } else {
                origin::ignores_ranges()
            });
        }
        self.object.len_bytes = Some(self.filled);
        self.verify()
    }

    /// Holds what is filled against the checksum that came along with the whole of the object: over one answer, or over the
    /// ranges that it was resumed by. Before a connection is handed on, so that the next try is on another one.
    fn verify(&mut self) -> Result<(), Failure> {
        let Some(expected) = self.expected.take() else {
            return Ok(());
        };
        let is_whole = |sum: &&Sum| self.object.len_bytes == Some(sum.len_bytes());
        let Some(sum) = self.sum.as_ref().filter(is_whole) else {
            return Ok(());
        };
        if expected.is(sum) {
            self.hop.ledger().verified(expected.algorithm.name());
            self.sum = None;
            return Ok(());
        }
        self.begin_anew();
        // What went wrong on the way does so once.
        let mut failure = origin::wrong_bytes(expected.algorithm);
        failure.is_worth_retrying = true;
        failure.most_tries = Some(2);
        Err(failure)
    }

    /// 416: the object ends at or before `from`. That is its end where its length was not known, and a change where it
    /// was. The status alone proves nothing, for some servers and proxies refuse any range so: `Content-Range` must say
    /// that the object ends at `from`. Where it does not, a plain GET tells what there is.
    fn take_nothing(&mut self, answer: &Answer, from: u64) -> Result<(), Failure> {
        let total = ContentRange::read(&answer.head).and_then(|range| range.total);
        if self.object.len_bytes.is_some() || self.filled > 0 {
            return Err(origin::changed("it has become shorter"));
        }
        if total != Some(from) {
            if from > 0 {
                return Err(origin::past_the_end(total));
            }
            self.is_whole = true;
            return Ok(());
        }
        origin::check_version(&mut self.object, &answer.head, self.hop.ledger())?;
        self.object.len_bytes = Some(from);
        Ok(())
    }

    fn learn(&mut self, answer: &Answer) {
        if self.object.modified_unix.is_none() {
            self.object.modified_unix = origin::modified(&answer.head);
        }
    }

    /// Reads the body up to byte `end` of the object, slab by slab where somebody takes them, no checksum of the whole is still
    /// to be held against them, and the body has a length: one in chunks may yet turn out to be odd.
    async fn fill_up(&mut self, body: &mut Body, end: u64) -> Result<(), Failure> {
        while self.offset + self.filled < end {
            let left = end - self.offset;
            let first = self.target.first().map_or(0, |slab| slab.len() as u64);
            let is_taken = self.taker.is_some()
                && self.expected.is_none()
                && body.len_bytes().is_some()
                && self.target.len() > 1
                && self.filled < first;
            let step = if is_taken { first.min(left) } else { left };
            self.fill(body, step).await?;
            if self.filled < step {
                return Err(origin::short(left - self.filled));
            }
            if is_taken && step == first {
                self.hand_over();
            }
        }
        Ok(())
    }

    /// Hands the first slab over. What is left to read is then as if reading had begun behind it.
    fn hand_over(&mut self) {
        let Some(taker) = &mut self.taker else { return };
        let slab = self.target.remove(0);
        let len = slab.len() as u64;
        self.offset += len;
        self.room -= len;
        self.filled -= len;
        self.handed.clone_from(&self.sum);
        taker.full(&self.object, slab.freeze());
    }

    /// Reads the body into the target, up to its byte `end`. What came before a failure counts.
    async fn fill(&mut self, body: &mut Body, end: u64) -> Result<(), Failure> {
        let gap = Gap::new(&mut self.target, to_usize(self.filled), to_usize(end));
        let mut gap = gap.summed(self.sum.as_mut());
        let result = body.fill(self.hop, &mut gap).await;
        self.filled = gap.filled() as u64;
        result
    }
}
