//! The pods: what keeper, guard and f do around the real machine, as `lease-core/src/keeper/entry.rs` and `guard.rs`
//! do.

use lease_core::Moment;
use lease_core::tenure::{Call, Effect, Event, Phase, Tenure, TenureMutant};

use super::action::Action;
use super::observe::{Asked, Observed, Told};
use super::state::{Entry, F, Shutdown, State};
use super::wire::{Message, Stage, Statement};
use super::world::World;

impl World {
    pub(super) fn pod_actions(&self, state: &State, pod: usize, actions: &mut Vec<Action>) {
        let (now, this) = (self.now(state, pod), &state.pods[pod]);
        // Pods differ in nothing but their names, so they come in the order of their names.
        let in_order = pod == 0 || state.pods[pod - 1].asked > 0;
        let free = !this.entries.iter().any(Entry::reserves);
        if in_order && free && this.asked < self.bounds.asks && this.shutdown == Shutdown::No {
            actions.push(Action::Ask { pod });
        }
        for (at, entry) in this.entries.iter().enumerate() {
            if entry.tenure.next_at().is_some_and(|next_at| next_at <= now) {
                actions.push(Action::Tick { pod, at });
            }
            let told = entry.is_told(now);
            if entry.f == F::Ready && !told {
                actions.push(Action::Start { pod, at });
            }
            let returns = entry.f == F::Runs && (told || state.budget.returns > 0);
            if returns || entry.f == F::Ready {
                actions.push(Action::Finish { pod, at });
            }
            if state.budget.abandons > 0 && (entry.waited_for || entry.f == F::Ready) {
                actions.push(Action::Abandon { pod, at });
            }
        }
        match this.shutdown {
            Shutdown::No if state.budget.shutdowns > 0 && this.asked > 0 => actions.push(Action::ShutDown { pod }),
            Shutdown::Asked => actions.push(Action::GraceOver { pod }),
            Shutdown::GraceOver => actions.push(Action::Forsake { pod }),
            Shutdown::No | Shutdown::Forsaken => {}
        }
        if state.budget.crashes > 0 && this.asked > 0 {
            actions.push(Action::Crash { pod });
        }
    }

    pub(super) fn ask(&self, state: &mut State, pod: usize) {
        let now = self.now(state, pod);
        let this = &mut state.pods[pod];
        let serial = this.asked;
        let burned = this.burned != 0 && self.breaks(TenureMutant::ReusesTheHolder);
        this.asked += 1;
        this.entries.push(Entry {
            serial,
            tenure: Tenure::ask(self.timing, now),
            waited_for: true,
            token: None,
            base: Moment::ZERO,
            f: F::None,
            started_at: None,
            stop: None,
            dropped: false,
            last_error: false,
        });
        self.send(state, pod, serial, Statement::Acquire, now);
        self.observe(state, &Observed::Asked(Asked { burned }));
    }

    pub(super) fn tick(&self, state: &mut State, pod: usize, at: usize) {
        let entry = &state.pods[pod].entries[at];
        let (serial, repeats) = (entry.serial, is_repeating(entry));
        self.tell(state, pod, at, Event::Tick, None);
        let gave_up = !state.pods[pod].entries.iter().any(|entry| entry.serial == serial);
        if repeats && gave_up {
            state.pods[pod].excused |= 1 << serial;
        }
    }

    /// The first poll of f.
    pub(super) fn start(&self, state: &mut State, pod: usize, at: usize) {
        let now = self.now(state, pod);
        let entry = &mut state.pods[pod].entries[at];
        entry.f = F::Runs;
        // Without a limit nothing depends on when f started, and the machine need not remember it.
        if self.timing.time_limit().is_some() {
            entry.started_at = Some(now);
            self.tell(state, pod, at, Event::Started, None);
        }
    }

    pub(super) fn finish(&self, state: &mut State, pod: usize, at: usize) {
        let now = self.now(state, pod);
        let entry = &mut state.pods[pod].entries[at];
        let ran = entry.f == F::Runs;
        let told = entry.is_told(now);
        if ran && !told {
            state.budget.returns -= 1;
        }
        entry.f = F::Gone { ran };
        self.tell(state, pod, at, Event::Finished { ran }, None);
    }

    pub(super) fn abandon(&self, state: &mut State, pod: usize, at: usize) {
        state.budget.abandons -= 1;
        let entry = &mut state.pods[pod].entries[at];
        entry.waited_for = false;
        if entry.f == F::Ready {
            entry.f = F::Gone { ran: false };
        }
        self.tell(state, pod, at, Event::Abandoned, None);
    }

    pub(super) fn shut_down(&self, state: &mut State, pod: usize) {
        state.budget.shutdowns -= 1;
        state.pods[pod].shutdown = Shutdown::Asked;
        self.tell_all(state, pod, Event::ShutDown, |_| true);
    }

    pub(super) fn grace_over(&self, state: &mut State, pod: usize) {
        state.pods[pod].shutdown = Shutdown::GraceOver;
        self.tell_all(state, pod, Event::GraceOver, |_| true);
    }

    pub(super) fn forsake(&self, state: &mut State, pod: usize) {
        let this = &mut state.pods[pod];
        this.shutdown = Shutdown::Forsaken;
        for entry in this.entries.iter().filter(|entry| entry.is_running()) {
            this.excused |= 1 << entry.serial;
        }
        self.tell_all(state, pod, Event::Forsaken, Entry::is_running);
    }

    /// The process is gone with all it knew. What it sent may still execute.
    pub(super) fn crash(state: &mut State, pod: usize) {
        state.budget.crashes -= 1;
        let this = &mut state.pods[pod];
        for entry in this.entries.drain(..) {
            this.excused |= 1 << entry.serial;
        }
        this.shutdown = Shutdown::No;
        state.wire.disown(|message| usize::from(message.pod) == pod);
    }

    /// An answer, or that there is none.
    pub(super) fn tell_of(&self, state: &mut State, message: &Message, event: Event) {
        let pod = usize::from(message.pod);
        let mut entries = state.pods[pod].entries.iter();
        if let Some(at) = entries.position(|entry| entry.serial == message.serial) {
            self.tell(state, pod, at, event, Some(message.sent_at));
        }
    }

    fn tell_all(&self, state: &mut State, pod: usize, event: Event, whom: fn(&Entry) -> bool) {
        let theirs = state.pods[pod].entries.iter().filter(|entry| whom(entry));
        let serials: Vec<u8> = theirs.map(|entry| entry.serial).collect();
        for serial in serials {
            let mut entries = state.pods[pod].entries.iter();
            if let Some(at) = entries.position(|entry| entry.serial == serial) {
                self.tell(state, pod, at, event, None);
            }
        }
    }

    /// Gives an event to a tenure and carries out its effects.
    fn tell(&self, state: &mut State, pod: usize, at: usize, event: Event, sent_at: Option<Moment>) {
        let now = self.now(state, pod);
        let before = state.pods[pod].entries[at].clone();
        let serial = before.serial;
        let burned = state.pods[pod].burned & (1 << serial) != 0;
        let mut effects = Vec::new();
        let entry = &mut state.pods[pod].entries[at];
        entry.tenure.handle(now, event, &mut effects);
        entry.learn(&before, event, sent_at, now);
        for effect in &effects {
            entry.carry_out(*effect);
        }
        if entry.f != F::None && !entry.is_running() {
            entry.dropped = true;
        }
        let after = entry.clone();
        for effect in &effects {
            if let Effect::Send(call) = effect {
                let statement = match call {
                    Call::Renew | Call::RenewAlone => Statement::Renew,
                    Call::Release { at_least_for } => Statement::Release(*at_least_for),
                };
                self.send(state, pod, serial, statement, now);
            }
        }
        let told = Told {
            event,
            sent_at,
            before: &before,
            after: &after,
            effects: &effects,
            now,
            burned,
        };
        self.observe(state, &Observed::Told(told));
        if after.f == F::Ready && before.f == F::None && !self.bounds.slack.starts {
            self.start(state, pod, at);
        }
        if after.tenure.phase() == Phase::Ended {
            // The keeper has forgotten it.
            state
                .wire
                .disown(|message| usize::from(message.pod) == pod && message.serial == serial);
        }
        state.pods[pod]
            .entries
            .retain(|entry| entry.has_f() || entry.tenure.phase() != Phase::Ended);
    }

    fn send(&self, state: &mut State, pod: usize, serial: u8, statement: Statement, now: Moment) {
        if matches!(statement, Statement::Release(_)) {
            state.pods[pod].burned |= 1 << serial;
        }
        state.wire.push(Message {
            pod: u8::try_from(pod).expect("few pods"),
            serial,
            statement,
            stage: Stage::Waiting,
            sent_at: now,
        });
    }
}

fn is_repeating(entry: &Entry) -> bool {
    matches!(entry.tenure.phase(), Phase::Releasing | Phase::Undoing)
}

impl Entry {
    /// Whether f has a reason to end.
    fn is_told(&self, now: Moment) -> bool {
        self.stop.is_some() || self.dropped || now >= self.tenure.drop_at()
    }

    /// What the rules need to know beside the machine, kept apart from it.
    fn learn(&mut self, before: &Self, event: Event, sent_at: Option<Moment>, now: Moment) {
        let counts = match (event, before.tenure.phase()) {
            (Event::Granted(_), Phase::Asking) | (Event::Renewed, Phase::Confirming) => true,
            (Event::Renewed, Phase::Held | Phase::Stopping) => now < before.tenure.drop_at(),
            _ => false,
        };
        if let Some(sent_at) = sent_at.filter(|_| counts) {
            self.base = sent_at;
        }
        match event {
            Event::RenewFailed(_) => self.last_error = true,
            Event::Renewed => self.last_error = false,
            _ => {}
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Grant(token) if self.waited_for => {
                self.waited_for = false;
                self.token = Some(token);
                self.f = F::Ready;
            }
            Effect::Refuse(_) => self.waited_for = false,
            Effect::Stop(cause) => self.stop = self.stop.or(Some(cause)),
            Effect::Drop => self.dropped = true,
            // Sent when the machine is done with the event; nobody in the model waits for the release.
            Effect::Send(_) | Effect::Settle(_) | Effect::Grant(_) => {}
        }
    }
}
