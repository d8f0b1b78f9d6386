//! What the fence guards: a ledger with a row for each lease, and the journal of the writes in the order of their commits.

use crate::admin::Admin;
use crate::engine::{Engine, names};

/// The statements that make them.
pub(crate) fn schema(engine: Engine) -> Vec<String> {
    // Names are bytes on MySQL, and short everywhere.
    let (text, more) = if engine.is_postgres() {
        ("varchar(64)", "")
    } else {
        ("VARBINARY(64)", " ENGINE = InnoDB")
    };
    let app = if engine.is_postgres() { "" } else { "app." };
    let rows: Vec<String> = names().iter().map(|name| format!("('{name}', 0, 0)")).collect();
    let mut all = vec![
        format!(
            "CREATE TABLE {app}chaos_ledger (name {text} PRIMARY KEY, writes bigint NOT NULL, token bigint NOT NULL){more}"
        ),
        format!(
            "CREATE TABLE {app}chaos_journal (name {text} NOT NULL, seq bigint NOT NULL, token bigint NOT NULL, \
             pod bigint NOT NULL, PRIMARY KEY (name, seq)){more}"
        ),
        format!(
            "INSERT INTO {app}chaos_ledger (name, writes, token) VALUES {}",
            rows.join(", ")
        ),
    ];
    if engine.is_postgres() {
        all.push("GRANT SELECT, INSERT, UPDATE ON chaos_ledger, chaos_journal TO service".to_owned());
    }
    all
}

/// The tokens of one lease's writes, in the order of their commits.
pub(crate) async fn tokens(admin: &mut Admin, engine: Engine, name: &str) -> anyhow::Result<Vec<i64>> {
    let app = if engine.is_postgres() { "" } else { "app." };
    let text = format!("SELECT token FROM {app}chaos_journal WHERE name = '{name}' ORDER BY seq");
    let limit = std::time::Duration::from_secs(60);
    let rows = admin.sql_within(&text, limit).await?;
    rows.iter().map(|token| Ok(token.parse()?)).collect()
}
