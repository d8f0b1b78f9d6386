//! Time: real time, the pods' clocks, the database's clock.

use super::action::Action;
use super::state::State;
use super::world::World;

impl World {
    pub(super) fn clock_actions(&self, state: &State, actions: &mut Vec<Action>) {
        // Before the first pod has asked, all times are the same.
        if state.time >= self.bounds.horizon || state.pods.iter().all(|pod| pod.asked == 0) {
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
