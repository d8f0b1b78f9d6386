//! [`World`]: the transitions, as the model checker wants them.

use std::fmt;
use std::sync::Arc;

use lease_core::tenure::TenureMutant;
use lease_core::{Claim, Holder, LeaseName, Moment, Mutant, Rows, Timing};
use stateright::{Model, Property};

use super::action::Action;
use super::bounds::{Bounds, UNIT};
use super::observe::Observed;
use super::rules;
use super::sightings::Sightings;
use super::state::{Entry, F, Pod, State};

/// How far each clock is from its start when a run begins, so that nothing saturates at zero.
const START: u32 = 100;

/// A rule broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// One of the tenure's or of its guard's.
    Tenure(TenureMutant),
    /// One of the store's.
    Rows(Mutant),
}

impl Break {
    /// What then goes wrong.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Self::Tenure(mutant) => mutant.says(),
            Self::Rows(mutant) => mutant.says(),
        }
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenure(mutant) => write!(f, "{mutant:?}"),
            Self::Rows(mutant) => write!(f, "{mutant:?}"),
        }
    }
}

/// What does not change in a run.
#[derive(Debug)]
pub struct World {
    pub(super) bounds: Bounds,
    pub(super) timing: Timing,
    pub(super) name: LeaseName,
    /// By pod and tenure: what each says to the store.
    claims: Vec<Vec<Claim>>,
    broken: Option<Break>,
    pub(super) sightings: Arc<Sightings>,
}

impl World {
    /// A world within `bounds`, with one rule broken or none.
    ///
    /// # Errors
    /// The times do not fit together.
    pub fn new(bounds: Bounds, broken: Option<Break>) -> anyhow::Result<Self> {
        let options = bounds.times.options();
        let options = match broken {
            Some(Break::Tenure(mutant)) => options.break_rule(mutant),
            _ => options,
        };
        let timing = Timing::new(&options)?;
        let name = LeaseName::new("lease")?;
        let claim = |pod: u8, serial: u8| {
            let same = broken == Some(Break::Tenure(TenureMutant::ReusesTheHolder));
            let holder = Holder::new(format!("{pod}/{}", if same { 0 } else { serial }))?;
            anyhow::Ok(Claim::new(name.clone(), holder, timing.ttl()))
        };
        let claims = (0..bounds.pods)
            .map(|pod| (0..bounds.asks).map(|serial| claim(pod, serial)).collect())
            .collect::<anyhow::Result<_>>()?;
        Ok(Self {
            bounds,
            timing,
            name,
            claims,
            broken,
            sightings: Arc::default(),
        })
    }

    /// What was seen on the way.
    #[must_use]
    pub fn sightings(&self) -> Arc<Sightings> {
        self.sightings.clone()
    }

    pub(super) fn breaks(&self, mutant: TenureMutant) -> bool {
        self.broken == Some(Break::Tenure(mutant))
    }

    pub(super) fn claim(&self, pod: usize, serial: u8) -> &Claim {
        &self.claims[pod][usize::from(serial)]
    }

    /// A pod's clock.
    pub(super) fn now(&self, state: &State, pod: usize) -> Moment {
        Moment::after_start(UNIT * (START + state.time - state.pods[pod].behind))
    }

    /// The database's clock, in microseconds.
    pub(super) fn store_now(&self, state: &State) -> i64 {
        let units = i64::from(START) + i64::from(state.time) + i64::from(state.ahead);
        units * lease_core::microseconds(UNIT)
    }

    /// Whether a poll of this tenure's f may begin now. It changes nothing by itself, so it is no action: the rules
    /// about polls judge every state in which one may begin.
    pub(super) fn may_poll(&self, state: &State, pod: usize, entry: &Entry) -> bool {
        let gate = self.now(state, pod) < entry.tenure.drop_at() || self.breaks(TenureMutant::HasNoGate);
        entry.f == F::Runs && !entry.dropped && gate
    }

    /// Every tenure of which a poll may begin now, with its pod.
    pub(super) fn polls<'a>(&'a self, state: &'a State) -> impl Iterator<Item = (usize, &'a Entry)> {
        let pods = state.pods.iter().enumerate();
        let entries = pods.flat_map(|(pod, this)| this.entries.iter().map(move |entry| (pod, entry)));
        entries.filter(|(pod, entry)| self.may_poll(state, *pod, entry))
    }

    /// Lets every rule judge what happened.
    pub(super) fn observe(&self, state: &mut State, observed: &Observed<'_>) {
        self.sightings.see(observed);
        rules::judge(self, observed, &mut state.broken);
    }

    fn no_rows(&self) -> Rows {
        let mut rows = Rows::default();
        if let Some(Break::Rows(mutant)) = self.broken {
            rows.break_rule(mutant);
        }
        rows
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            time: 0,
            ahead: 0,
            disturbed_at: None,
            rows: self.no_rows(),
            pods: vec![Pod::default(); usize::from(self.bounds.pods)],
            wire: super::wire::Wire::default(),
            budget: self.bounds.budget,
            granted: None,
            broken: rules::Broken::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.clock_actions(state, actions);
        for pod in 0..state.pods.len() {
            self.pod_actions(state, pod, actions);
        }
        self.wire_actions(state, actions);
        self.operator_actions(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Wait | Action::WaitWhileStandsStill { .. } | Action::StepClock { .. } => {
                Self::pass_time(&mut state, action);
            }
            Action::Ask { pod } => self.ask(&mut state, pod),
            Action::Tick { pod, at } => self.tick(&mut state, pod, at),
            Action::Start { pod, at } => self.start(&mut state, pod, at),
            Action::Finish { pod, at } => self.finish(&mut state, pod, at),
            Action::Abandon { pod, at } => self.abandon(&mut state, pod, at),
            Action::ShutDown { pod } => self.shut_down(&mut state, pod),
            Action::GraceOver { pod } => self.grace_over(&mut state, pod),
            Action::Forsake { pod } => self.forsake(&mut state, pod),
            Action::Crash { pod } => Self::crash(&mut state, pod),
            Action::Execute { at } => self.execute(&mut state, at, false),
            Action::ExecuteAndRepeat { at } => self.execute(&mut state, at, true),
            Action::Deliver { at } => self.deliver(&mut state, at),
            Action::LoseAnswer { at } | Action::LoseRequest { at } | Action::GiveUp { at } | Action::Refuse { at } => {
                self.fail(&mut state, at, action)
            }
            Action::Evict => self.evict(&mut state),
            Action::Pause => self.pause(&mut state),
            Action::Resume => self.resume(&mut state),
        }
        // A step that changes nothing leads nowhere.
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        rules::properties()
    }
}
