//! What happens to tenures whose keeper died.

use std::sync::Arc;

use crate::held::Tenancy;
use crate::{Clock, Stop};

/// Tells every tenure, and drops each f when its lease ends: nobody renews it any more.
pub(super) fn execute(clock: Arc<dyn Clock>, mut orphans: Vec<Arc<Tenancy>>) {
    if orphans.is_empty() {
        return;
    }
    for tenancy in &orphans {
        tenancy.tell(Stop::Keeper);
    }
    orphans.sort_by_key(|tenancy| tenancy.drop_at());
    // Without this thread an f that is never polled again would not be dropped; the gate holds all the same.
    let _ = std::thread::Builder::new()
        .name("lease-last-will".into())
        .spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
                return;
            };
            runtime.block_on(async {
                for tenancy in orphans {
                    while !tenancy.is_over() {
                        clock.sleep_until(tenancy.drop_at()).await;
                    }
                    tenancy.dropped.cancel();
                }
            });
        });
}
