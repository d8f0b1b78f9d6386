//! [`Book`]: the laws L1 to L4 a second time, as a book of what was granted, not as columns of a row.
//!
//! It shares nothing with `Rows`: it counts in `i128`, which nothing here overflows, and cuts at the end.

use std::time::Duration;

use lease_core::{Acquire, Claim, Holder, Incumbent, Loss, Release, Renew, Token};

/// All tenures of one lease, in the order of their grants.
#[derive(Debug, Default)]
pub(crate) struct Book(Vec<Tenure>);

#[derive(Debug)]
struct Tenure {
    holder: Holder,
    token: i128,
    granted: i128,
    /// From this instant on the lease is free.
    free_from: i128,
    over: bool,
}

/// The last instant that an `i64` of microseconds can say.
const FAR: i128 = i64::MAX as i128;

impl Book {
    /// L1, L2.
    pub(crate) fn acquire(&mut self, claim: &Claim, now: i64) -> Acquire {
        let (until, now) = (after(now.into(), claim.ttl), i128::from(now));
        let last = self.0.last_mut();
        let token = match last {
            Some(last) if now < last.free_from => {
                if last.holder != claim.holder || last.over {
                    return Acquire::Busy(Some(last.incumbent(now)));
                }
                last.free_from = last.free_from.max(until);
                return granted(last.token);
            }
            Some(last) => now.max(last.token + 1),
            None => now.max(1),
        };
        self.0.push(Tenure {
            holder: claim.holder.clone(),
            token,
            granted: now,
            free_from: until,
            over: false,
        });
        granted(token)
    }

    /// L3.
    pub(crate) fn renew(&mut self, claim: &Claim, now: i64) -> Renew {
        let (until, now) = (after(now.into(), claim.ttl), i128::from(now));
        let Some(last) = self.0.last_mut() else {
            return Renew::Lost(Loss::Gone);
        };
        if last.holder != claim.holder {
            return Renew::Lost(Loss::Taken(last.incumbent(now)));
        }
        if last.over {
            return Renew::Lost(Loss::Released);
        }
        if now >= last.free_from {
            return Renew::Lost(Loss::Expired);
        }
        last.free_from = last.free_from.max(until);
        Renew::Renewed
    }

    /// L4.
    pub(crate) fn release(&mut self, claim: &Claim, now: i64) -> Release {
        let now = i128::from(now);
        match self.0.last_mut() {
            Some(last) if last.holder == claim.holder && !last.over => {
                last.over = true;
                if now < last.free_from {
                    last.free_from = now.max(after(last.granted, claim.at_least_for));
                }
                Release::Released
            }
            _ => Release::NotHeld,
        }
    }

    /// All tokens, in the order of the grants.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = i128> {
        self.0.iter().map(|tenure| tenure.token)
    }
}

impl Tenure {
    fn incumbent(&self, now: i128) -> Incumbent {
        let left = u64::try_from(self.free_from - now).unwrap_or(0);
        Incumbent::new(
            self.holder.as_str(),
            Duration::from_micros(left.min(i64::MAX.unsigned_abs())),
        )
    }
}

/// A fraction of a microsecond is rounded up.
fn after(start: i128, duration: Duration) -> i128 {
    let us = i128::try_from(duration.as_nanos().div_ceil(1_000)).unwrap();
    (start + us.min(FAR)).min(FAR)
}

fn granted(token: i128) -> Acquire {
    Acquire::Granted(Token::new(i64::try_from(token).unwrap()).unwrap())
}
