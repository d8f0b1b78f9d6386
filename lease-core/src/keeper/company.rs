//! Renewals that are sent together, in one statement for up to as many as the store can do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::call::{self, Answered, Answers};
use super::{Keeper, TenureId};
use crate::Moment;
use crate::tenure::Event as TenureEvent;

impl Keeper {
    /// Sends the renewals that are due, together where the store can do that; then those that are half due come along, so that
    /// what was acquired at different times is soon renewed at one.
    ///
    /// Only those of about the same limit go together: one that has little time would not leave the others enough, and would have
    /// them renewed at its own pace.
    pub(super) fn renew(&mut self) {
        if self.context.due.is_empty() {
            return;
        }
        let now = self.context.clock.now();
        let size = self.context.repo.batch_size();
        if size > 1 {
            self.gather(now);
        }
        let mut companies: BTreeMap<u32, Vec<(TenureId, Duration)>> = BTreeMap::new();
        for id in std::mem::take(&mut self.context.due) {
            // What came in between may have ended it, and a release may be on its way: nothing follows that.
            let Some(entry) = self.entries.get(&id).filter(|entry| entry.tenure.is_renewing()) else {
                continue;
            };
            match entry.in_company(now).filter(|_| size > 1) {
                Some(limit) => companies.entry(entry.magnitude()).or_default().push((id, limit)),
                None => self.context.calls.push(entry.renew(&self.context, id, now)),
            }
        }
        for company in companies.values().flat_map(|company| company.chunks(size)) {
            if let [(id, _)] = company {
                if let Some(entry) = self.entries.get(id) {
                    self.context.calls.push(entry.renew(&self.context, *id, now));
                }
                continue;
            }
            let limit = company.iter().map(|(_, limit)| *limit).min().unwrap_or_default();
            let batch = company
                .iter()
                .filter_map(|(id, _)| Some((*id, self.entries.get(id)?.claim(limit))));
            let (ids, claims) = batch.unzip();
            self.context.calls.push(call::batch(ids, claims, now, &self.context));
        }
    }

    fn gather(&mut self, now: Moment) {
        let due = self.context.due.iter().filter_map(|id| self.entries.get(id));
        let magnitudes: BTreeSet<u32> = due.map(|entry| entry.magnitude()).collect();
        let company = self
            .entries
            .iter()
            .filter(|(_, entry)| magnitudes.contains(&entry.magnitude()));
        let ids: Vec<TenureId> = company.map(|(id, _)| *id).collect();
        for id in ids {
            self.tell(id, now, TenureEvent::Gather);
        }
    }

    pub(super) fn answers(&mut self, answers: Answers) {
        match answers {
            Answers::One(answered) => self.answered(answered),
            Answers::Batch(batch) => {
                // With no answer at all it is the store, and single statements would only add to its troubles.
                let any = batch.iter().any(Answered::is_answer);
                for answered in batch {
                    if any && !answered.is_answer() {
                        self.tell(answered.id, self.context.clock.now(), TenureEvent::LeftOut);
                    } else {
                        self.answered(answered);
                    }
                }
            }
        }
    }
}
