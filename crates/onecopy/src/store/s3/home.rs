//! Where a bucket is believed to be, and how that is learned.

use super::address::{Address, Addressing};
use super::bucket::Bucket;
use crate::error::Result;
use crate::sync::{Arc, Mutex};

/// A bucket's place: where its requests go, and what they are signed for.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) address: Address,
    pub(super) region: String,
    pub(super) service: &'static str,
    addressing: Addressing,
}

/// The place of one bucket, learned once and remembered.
#[derive(Debug)]
pub(super) struct Home {
    bucket: Bucket,
    /// Guards the place; held for a look or a change only.
    now: Mutex<Arc<Place>>,
}

impl Home {
    /// The bucket where its name or the configuration puts it.
    pub(super) fn new(bucket: Bucket, addressing: &Addressing, region: &str) -> Result<Self> {
        let region = bucket.region().unwrap_or_else(|| region.to_owned());
        let place = Place {
            address: addressing.address(&bucket, &region)?,
            region,
            service: bucket.service(),
            addressing: addressing.clone(),
        };
        Ok(Self {
            bucket,
            now: Mutex::new(Arc::new(place)),
        })
    }

    pub(super) fn place(&self) -> Arc<Place> {
        Arc::clone(&self.now.lock())
    }

    /// Notes that a request to `asked` was told that the bucket is in `region`; whether asking again makes sense.
    pub(super) fn learn(&self, asked: &Place, region: &str) -> bool {
        let mut now = self.now.lock();
        if now.region != asked.region {
            // Another request of the same time has learned it.
            return true;
        }
        let is_movable =
            matches!(self.bucket, Bucket::Service | Bucket::Plain(_)) && region != asked.region;
        let moved = is_movable
            .then(|| asked.addressing.moved(&self.bucket, &asked.region, region))
            .flatten();
        let Some(addressing) = moved else {
            return false;
        };
        let Ok(address) = addressing.address(&self.bucket, region) else {
            return false;
        };
        tracing::info!(region, "the bucket is in another region");
        *now = Arc::new(Place {
            address,
            region: region.to_owned(),
            service: asked.service,
            addressing,
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(bucket: &str) -> Home {
        let bucket = Bucket::read(bucket).unwrap();
        Home::new(bucket, &Addressing::default(), "us-east-1").unwrap()
    }

    #[test]
    fn a_region_is_learned_once_and_goes_for_all_who_asked_before() {
        let home = home("bkt");
        let asked = home.place();
        assert!(!home.learn(&asked, "us-east-1"), "nothing new");
        assert!(!home.learn(&asked, "cn-north-1"), "another partition");
        assert!(home.learn(&asked, "eu-west-1"));
        let now = home.place();
        assert_eq!(
            (&*now.region, &*now.address.endpoint.host),
            ("eu-west-1", "bkt.s3.eu-west-1.amazonaws.com")
        );
        assert!(home.learn(&asked, "eu-west-1"), "asked before it was known");
        assert!(!home.learn(&now, "eu-west-1"), "told what it did");
    }

    #[test]
    fn names_that_tell_their_region_stay_there() {
        for (bucket, region, service) in [
            ("d--usw2-az1--x-s3", "us-west-2", "s3express"),
            ("arn:aws:s3:eu-west-1:1:accesspoint/a", "eu-west-1", "s3"),
        ] {
            let home = home(bucket);
            let place = home.place();
            assert_eq!((&*place.region, place.service), (region, service));
            assert!(!home.learn(&place, "ap-east-1"));
        }
    }
}
