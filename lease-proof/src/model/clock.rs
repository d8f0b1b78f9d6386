//! Time: real time, the pods' clocks, the database's clock.

use super::action::Action;
use super::bounds::UNIT;
use super::state::State;
use super::wire::Stage;
use super::world::World;

impl World {
    pub(super) fn clock_actions(&self, state: &State, actions: &mut Vec<Action>) {
        // Before the first pod has asked, all times are the same.
        if state.time >= self.bounds.horizon || state.pods.iter().all(|pod| pod.asked == 0) {
            return;
        }
        if self.is_overdue(state) {
            return;
        }
        actions.push(Action::Wait);
        // Two units of trouble within a ttl would be more than `drift`.
        let calm = state
            .disturbed_at
            .is_none_or(|at| state.time >= at + self.bounds.times.ttl);
        if state.budget.clocks == 0 || !calm {
            return;
        }
        actions.extend([1, -1].map(|by| Action::StepClock { by }));
        actions.extend((0..state.pods.len()).map(|pod| Action::WaitWhileStandsStill { pod }));
    }

    /// Whether something must happen before time goes on.
    fn is_overdue(&self, state: &State) -> bool {
        let slack = self.bounds.slack;
        let answers = state.wire.messages().iter().any(|message| {
            let since = self.now(state, usize::from(message.pod)).since(message.sent_at);
            message.stage != Stage::Adrift && since >= UNIT.saturating_mul(slack.answers)
        });
        let ticks = state.pods.iter().enumerate().any(|(pod, this)| {
            let now = self.now(state, pod);
            let mut due = this.entries.iter().filter_map(|entry| entry.tenure.next_at());
            due.any(|due| now >= due && now.since(due) >= UNIT.saturating_mul(slack.ticks))
        });
        answers || ticks
    }

    pub(super) fn pass_time(state: &mut State, action: Action) {
        if action != Action::Wait {
            state.budget.clocks -= 1;
            state.disturbed_at = Some(state.time);
        }
        match action {
            Action::StepClock { by } => state.ahead += by,
            Action::WaitWhileStandsStill { pod } => {
                state.time += 1;
                state.pods[pod].behind += 1;
            }
            _ => state.time += 1,
        }
    }
}
