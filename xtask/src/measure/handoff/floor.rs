//! The least a hand-over can take here: the two statements of one alone, on connections that wait as long.
//!
//! A machine that has had nothing to do for a while is slow to begin, its processors as well as its disk, and both pods wait.

use std::time::Duration;

use lease_core::{BootClock, Clock};
use tokio_postgres::Statement;
use tokio_postgres::types::Type;

use super::{TOLD, WARM_UP, Way, share};
use crate::measure::database::Onlooker;
use crate::measure::pairs::statement;

/// How long a release and the acquire after it took, in milliseconds.
pub(super) async fn measure(url: &str, rounds: u32) -> anyhow::Result<Vec<f64>> {
    let sides = [Side::open(url, "bare/0").await?, Side::open(url, "bare/1").await?];
    sides[0].acquire().await?;
    let Way {
        wait: (least, more), ..
    } = TOLD;
    let mut times = Vec::new();
    for round in 0..rounds + WARM_UP {
        BootClock
            .sleep_until(BootClock.now() + least + more.mul_f64(share(round)))
            .await;
        let [holder, waiter] = [0, 1].map(|side| &sides[(round as usize + side) % 2]);
        let began = BootClock.now();
        holder.release().await?;
        waiter.acquire().await?;
        if round >= WARM_UP {
            times.push(BootClock.now().since(began).as_secs_f64() * 1_000.0);
        }
    }
    Ok(times)
}

/// A connection that takes turns with another.
struct Side {
    client: Onlooker,
    acquire: Statement,
    release: Statement,
    holder: &'static str,
}

impl Side {
    async fn open(url: &str, holder: &'static str) -> anyhow::Result<Self> {
        let client = Onlooker::connect(url).await?;
        let prepare = async |name| {
            let text = statement(name).unwrap_or_default();
            client.prepare_typed(text, &[Type::TEXT, Type::TEXT, Type::INT8]).await
        };
        let (acquire, release) = (prepare("Acquire").await?, prepare("ReleaseAndTell").await?);
        Ok(Self {
            client,
            acquire,
            release,
            holder,
        })
    }

    async fn acquire(&self) -> anyhow::Result<()> {
        let ttl = i64::try_from(Duration::as_micros(&TOLD.ttl))?;
        let row = self
            .client
            .query_one(&self.acquire, &[&"bare", &self.holder, &ttl])
            .await?;
        anyhow::ensure!(row.try_get::<_, Option<i64>>(0)?.is_some(), "it is free");
        Ok(())
    }

    async fn release(&self) -> anyhow::Result<()> {
        let rows = self
            .client
            .execute(&self.release, &[&"bare", &self.holder, &0_i64])
            .await?;
        anyhow::ensure!(rows == 1, "it is held");
        Ok(())
    }
}
