//! The store and the way to it: statements execute by the real laws, arrive late, twice or not at all.

use lease_core::{Acquire, Label, Loss, Note, Release, Renew, Row};

use super::action::Action;
use super::bounds::{Network, UNIT};
use super::observe::{Executed, Observed};
use super::state::{Granted, State};
use super::wire::{Answer, Stage, Statement};
use super::world::World;

/// How long an operator pauses, in units.
const PAUSE: u32 = 2;

impl World {
    pub(super) fn wire_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let messages = state.wire.messages();
        for (at, message) in messages.iter().enumerate() {
            if at > 0 && messages[at - 1] == *message {
                continue;
            }
            if message.is_request() {
                actions.push(Action::Execute { at });
            } else {
                actions.push(Action::Deliver { at });
            }
            if state.budget.faults == 0 {
                continue;
            }
            match message.stage {
                Stage::Answered(_) => actions.push(Action::LoseAnswer { at }),
                Stage::Waiting => {
                    actions.extend([Action::LoseRequest { at }, Action::GiveUp { at }, Action::Refuse { at }]);
                    if self.bounds.network == Network::Repeats {
                        actions.push(Action::ExecuteAndRepeat { at });
                    }
                }
                Stage::Adrift => {}
            }
        }
    }

    /// A statement executes. If nobody waits for the answer, it goes nowhere.
    pub(super) fn execute(&self, state: &mut State, at: usize, repeat: bool) {
        let mut message = state.wire.take(at);
        if repeat {
            state.budget.faults -= 1;
            state.wire.push(message.adrift());
        }
        let pod = usize::from(message.pod);
        let claim = self.claim(pod, message.serial);
        let (now, before) = (self.store_now(state), state.row().cloned());
        let answer = match message.statement {
            Statement::Acquire => match state.rows.acquire(claim, now) {
                Acquire::Granted(token) => Answer::Granted(token),
                Acquire::Busy(_) => Answer::Busy,
            },
            Statement::Renew => match state.rows.renew(claim, now) {
                Renew::Renewed => Answer::Renewed,
                Renew::Lost(loss) => Answer::Lost {
                    evicted: matches!(loss, Loss::Evicted { .. }),
                },
            },
            Statement::Release(least) => {
                let claim = claim.clone().at_least_for(least);
                match state.rows.release(&claim, now) {
                    Release::Released => Answer::Released,
                    Release::NotHeld => Answer::NotHeld,
                }
            }
        };
        let after = state.row().cloned();
        let executed = Executed {
            statement: message.statement,
            holder: claim.holder.as_str(),
            before: before.as_ref(),
            after: after.as_ref(),
            answer,
            now,
        };
        // A copy that comes when the tenure has its end behind it, or a loss, is granted anew, to nobody. It costs the
        // others a ttl, and is as far as undoing reaches.
        let granted_anew = executed.granted() && executed.live_before().is_none();
        if self.bounds.network == Network::Repeats && message.stage == Stage::Adrift && granted_anew {
            state.pods[pod].excused |= 1 << message.serial;
        }
        if let (Answer::Granted(token), None) = (answer, executed.own_before()) {
            state.granted = Some(Granted {
                token,
                pod: message.pod,
                serial: message.serial,
            });
        }
        self.observe(state, &Observed::Executed(executed));
        if message.stage == Stage::Waiting {
            message.stage = Stage::Answered(answer);
            state.wire.push(message);
        }
    }

    /// An answer arrives.
    pub(super) fn deliver(&self, state: &mut State, at: usize) {
        let message = state.wire.take(at);
        if let Stage::Answered(answer) = message.stage {
            self.tell_of(state, &message, answer.event());
        }
    }

    /// A pod learns that there is no answer.
    pub(super) fn fail(&self, state: &mut State, at: usize, how: Action) {
        state.budget.faults -= 1;
        let message = state.wire.take(at);
        if matches!(how, Action::GiveUp { .. }) {
            state.wire.push(message.adrift());
        }
        let may_have_executed = !matches!(how, Action::Refuse { .. });
        self.tell_of(state, &message, message.statement.failed(may_have_executed));
    }

    pub(super) fn operator_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let live = |row: &Row| row.expires_at > self.store_now(state);
        if state.budget.evictions > 0 && state.row().is_some_and(live) {
            actions.push(Action::Evict);
        }
        if state.budget.pauses > 0 && state.row().is_some() {
            actions.push(Action::Pause);
        }
        if self.bounds.budget.pauses > 0 {
            actions.push(Action::Resume);
        }
    }

    pub(super) fn evict(&self, state: &mut State) {
        state.budget.evictions -= 1;
        let now = self.store_now(state);
        state.rows.evict(&self.name, &operator(), &reason(), now, false);
    }

    pub(super) fn pause(&self, state: &mut State) {
        state.budget.pauses -= 1;
        let (now, duration) = (self.store_now(state), lease_core::microseconds(UNIT * PAUSE));
        state.rows.pause(&self.name, duration, &operator(), &reason(), now);
    }

    pub(super) fn resume(&self, state: &mut State) {
        let now = self.store_now(state);
        state.rows.resume(&self.name, now);
    }
}

fn operator() -> Label {
    Label::new("op").expect("a label")
}

fn reason() -> Note {
    Note::new("by hand").expect("a note")
}
