//! [`Entry`]: one tenure in the keeper, with what its decisions do not depend on: texts, errors, and who waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::call::{Answered, Call, Reply, Sent, call};
use super::{Context, Given, Outgoing, TenureId};
use crate::held::Tenancy;
use crate::names::Reservation;
use crate::observe::Event;
use crate::tenure::{self, Cause, Effect, Event as TenureEvent, Phase, Refusal, Settlement, Spread, Tenure};
use crate::{
    Acquire, Claim, Incumbent, LeaseName, Loss, Moment, Operation, Release, Renew, RepoError, RepoErrorKind, Stop,
    Timing, Token,
};

pub(super) struct Entry {
    pub(super) tenure: Tenure,
    /// When the keeper's timer for it is set to.
    pub(super) tick_at: Option<Moment>,
    /// Who waits for the release.
    pub(super) settle: Option<oneshot::Sender<Result<Release, RepoError>>>,
    /// The name, from f's end until the release is answered.
    pub(super) reservation: Option<Reservation>,
    claim: Claim,
    /// Who waits for the grant.
    reply: Option<oneshot::Sender<Given>>,
    tenancy: Option<Arc<Tenancy>>,
    // Each in a box: of ten thousand tenures most never meet one.
    incumbent: Option<Box<Incumbent>>,
    loss: Option<Box<Loss>>,
    last_error: Option<Box<RepoError>>,
    /// Whether a release has had an answer, be it an error.
    release_tried: bool,
    /// How long past `drop_at` it was still running at the last event.
    overrun: Duration,
}

impl Entry {
    pub(super) fn ask(claim: Claim, timing: Timing, now: Moment, reply: oneshot::Sender<Given>) -> Self {
        Self {
            tenure: Tenure::ask(timing, now),
            tick_at: None,
            settle: None,
            reservation: None,
            claim,
            reply: Some(reply),
            tenancy: None,
            incumbent: None,
            loss: None,
            last_error: None,
            release_tried: false,
            overrun: Duration::ZERO,
        }
    }

    pub(super) const fn name(&self) -> &LeaseName {
        &self.claim.name
    }

    pub(super) fn tenancy(&self) -> Option<Arc<Tenancy>> {
        self.tenancy.clone()
    }

    pub(super) const fn is_running(&self) -> bool {
        matches!(self.tenure.phase(), Phase::Held | Phase::Stopping)
    }

    /// Whether a shutdown need not wait for it any longer.
    pub(super) const fn is_quiet(&self) -> bool {
        matches!(self.tenure.phase(), Phase::Releasing | Phase::Undoing) && self.release_tried
    }

    /// What a statement is told, with its limit.
    pub(super) fn claim(&self, limit: Duration) -> Claim {
        self.claim.clone().limit(limit)
    }

    pub(super) fn acquire(&self, context: &Context, id: TenureId, now: Moment) -> Call {
        let claim = self.claim(self.tenure.timing().limit());
        let sent = Sent {
            id,
            at: now,
            operation: Operation::Acquire,
        };
        call(
            sent,
            &claim,
            &context.clock,
            context.repo.acquire(claim.clone()),
            Reply::Acquire,
        )
    }

    pub(super) fn renew(&self, context: &Context, id: TenureId, now: Moment) -> Call {
        let claim = self.claim(self.tenure.timing().limit());
        let sent = Sent {
            id,
            at: now,
            operation: Operation::Renew,
        };
        let answer = context.repo.renew(claim.clone());
        call(sent, &claim, &context.clock, answer, Reply::Renew)
    }

    /// How long one of its statements may take, roughly: as a power of two.
    pub(super) fn magnitude(&self) -> u32 {
        self.tenure.timing().limit().as_micros().max(1).ilog2()
    }

    /// How long a renewal together with others may take; `None` if there is no time for company.
    pub(super) fn in_company(&self, now: Moment) -> Option<Duration> {
        let limit = self.tenure.timing().limit();
        let has_time = self.tenure.drop_at().since(now) / 2 >= limit;
        has_time.then_some(limit)
    }

    fn release(&self, context: &Context, id: TenureId, now: Moment, at_least_for: Duration) -> Call {
        let claim = self
            .claim(self.tenure.timing().release_limit())
            .at_least_for(at_least_for);
        let sent = Sent {
            id,
            at: now,
            operation: Operation::Release,
        };
        let answer = context.repo.release(claim.clone());
        call(sent, &claim, &context.clock, answer, Reply::Release)
    }

    /// Keeps what an answer says, and makes the tenure's event of it.
    pub(super) fn answered(&mut self, context: &Context, now: Moment, answered: Answered) -> TenureEvent {
        let took = now.since(answered.sent_at);
        match answered.reply {
            Reply::Acquire(Ok(Acquire::Granted(token))) => TenureEvent::Granted(token),
            Reply::Acquire(Ok(Acquire::Busy(incumbent))) => {
                self.incumbent = incumbent.map(Box::new);
                TenureEvent::Busy
            }
            Reply::Acquire(Err(error)) => {
                let may_have_executed = error.may_have_executed();
                self.last_error = Some(Box::new(error));
                TenureEvent::AcquireFailed { may_have_executed }
            }
            Reply::Renew(Ok(Renew::Renewed)) => {
                self.last_error = None;
                if let Some((name, token)) = self.held() {
                    context.events.send(Event::Renewed { name, token, took });
                }
                TenureEvent::Renewed
            }
            Reply::Renew(Ok(Renew::Lost(loss))) => {
                let evicted = matches!(loss, Loss::Evicted { .. });
                if let Loss::Taken(incumbent) = &loss {
                    self.incumbent = Some(Box::new(incumbent.clone()));
                }
                self.loss = Some(Box::new(loss));
                TenureEvent::Lost { evicted }
            }
            Reply::Renew(Err(error)) => {
                if let Some((name, token)) = self.held() {
                    let remaining = self.tenure.drop_at().since(now);
                    context.events.send(Event::RenewFailed {
                        name,
                        token,
                        error: error.clone(),
                        remaining,
                    });
                }
                self.last_error = Some(Box::new(error));
                TenureEvent::RenewFailed(Spread(fastrand::u8(..)))
            }
            Reply::Release(result) => {
                self.release_tried = true;
                match result {
                    Ok(Release::Released) => TenureEvent::Released,
                    Ok(Release::NotHeld) => TenureEvent::NotHeld,
                    Err(error) => {
                        self.last_error = Some(Box::new(error));
                        TenureEvent::ReleaseFailed
                    }
                }
            }
        }
    }

    /// Gives the tenure an event and carries out its effects.
    pub(super) fn handle(&mut self, context: &mut Context, id: TenureId, now: Moment, event: TenureEvent) {
        if self.is_running() {
            self.overrun = now.since(self.tenure.drop_at());
        }
        let mut effects = Vec::new();
        self.tenure.handle(now, event, &mut effects);
        // Before anybody is woken, the gate must know until when it may open.
        if let Some(tenancy) = &self.tenancy {
            tenancy.set_drop_at(self.tenure.drop_at());
        }
        for effect in effects {
            self.effect(context, id, now, effect);
        }
        if let Some(tenancy) = &self.tenancy
            && !self.is_running()
        {
            // For whatever f left behind with a clone of `Held`: the lease is not ours any more.
            tenancy.tell(Stop::Lost(Loss::Released));
            tenancy.dropped.cancel();
        }
    }

    fn effect(&mut self, context: &mut Context, id: TenureId, now: Moment, effect: Effect) {
        match effect {
            Effect::Send(tenure::Call::Renew) => context.due.push(id),
            Effect::Send(tenure::Call::RenewAlone) => context.calls.push(self.renew(context, id, now)),
            Effect::Send(tenure::Call::Release { at_least_for }) => {
                context.calls.push(self.release(context, id, now, at_least_for));
            }
            Effect::Grant(token) => self.grant(context, token),
            Effect::Refuse(refusal) => self.refuse(context, refusal),
            Effect::Stop(cause) => {
                let stop = self.stop(cause);
                if let Some(tenancy) = &self.tenancy {
                    // Told before, as by a `Periodic` that ends, f is not told again.
                    if tenancy.stop().is_none() {
                        context.events.send(Event::Stopped {
                            name: tenancy.name.clone(),
                            token: tenancy.token,
                            stop: stop.clone(),
                        });
                    }
                    tenancy.tell(stop);
                }
            }
            Effect::Drop => {
                if let Some(tenancy) = &self.tenancy {
                    tenancy.dropped.cancel();
                }
                if let Some((name, token)) = self.held() {
                    context.events.send(Event::Overrun { name, token });
                }
            }
            Effect::Settle(settlement) => self.settle(context, settlement),
        }
    }

    fn grant(&mut self, context: &mut Context, token: Token) {
        let Claim { name, holder, .. } = &self.claim;
        let (clock, drop_at) = (context.clock.clone(), self.tenure.drop_at());
        let tenancy = Tenancy::new(
            name.clone(),
            holder.clone(),
            token,
            self.tenure.timing(),
            clock,
            drop_at,
        );
        let tenancy = Arc::new(tenancy);
        self.tenancy = Some(tenancy.clone());
        context.events.granted(&tenancy);
        context.events.send(Event::Acquired {
            name: name.clone(),
            holder: holder.clone(),
            token,
        });
        if let Some(reply) = self.reply.take() {
            context.outbox.push(Outgoing::Given(reply, Given::Granted(tenancy)));
        }
    }

    fn refuse(&mut self, context: &mut Context, refusal: Refusal) {
        let given = match refusal {
            Refusal::Busy => Given::Busy(self.incumbent.take().map(|incumbent| *incumbent)),
            Refusal::Failed => Given::Failed(self.last_error().unwrap_or_else(|| self.late())),
            Refusal::Late => Given::Failed(self.late()),
            Refusal::ShuttingDown => Given::ShuttingDown,
        };
        if let Some(reply) = self.reply.take() {
            context.outbox.push(Outgoing::Given(reply, given));
        }
    }

    fn late(&self) -> RepoError {
        let error = RepoError::new(RepoErrorKind::Timeout, Operation::Acquire).with_lease(self.name());
        error.with_source("the grant came too late to start the job, and is given back")
    }

    fn stop(&self, cause: Cause) -> Stop {
        match cause {
            Cause::Lost => Stop::Lost(self.loss.as_deref().cloned().unwrap_or(Loss::Gone)),
            Cause::Overdue => Stop::Overdue {
                last_error: self.last_error(),
            },
            Cause::TimeLimit => Stop::TimeLimit,
            Cause::ShutDown => Stop::ShutDown,
        }
    }

    fn settle(&mut self, context: &mut Context, settlement: Settlement) {
        let release = match settlement {
            Settlement::Released => Ok(Release::Released),
            Settlement::NotHeld => Ok(Release::NotHeld),
            Settlement::Failed => Err(self.last_error().unwrap_or_else(|| self.given_up())),
            Settlement::Forsaken => Err(self.given_up()),
        };
        if let Some((name, token)) = self.held() {
            context.events.send(Event::Ended {
                name,
                token,
                release: release.clone(),
                overrun: self.overrun,
            });
        }
        self.reservation = None;
        if let Some(settle) = self.settle.take() {
            context.outbox.push(Outgoing::Settled(settle, release));
        }
    }

    fn last_error(&self) -> Option<RepoError> {
        self.last_error.as_deref().cloned()
    }

    fn given_up(&self) -> RepoError {
        let error = RepoError::new(RepoErrorKind::Other, Operation::Release).with_lease(self.name());
        error.with_source("f was still running when the shutdown's grace was over: the row is freed at its expiry")
    }

    fn held(&self) -> Option<(LeaseName, Token)> {
        self.tenancy
            .as_ref()
            .map(|tenancy| (tenancy.name.clone(), tenancy.token))
    }
}
