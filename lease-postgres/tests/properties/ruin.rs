//! How a table is ruined and repaired, as statements: its shape by hand-made changes, its rows by values that no pod writes.

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

/// A table of which only some statements may be possible, since each is drawn without regard to the others.
#[derive(Debug, Clone)]
pub(crate) struct Ruin {
    pub(crate) shape: Vec<String>,
    pub(crate) rows: Vec<String>,
}

const SHAPES: &[&str] = &[
    "DROP CONSTRAINT task_leases_pkey",
    "DROP CONSTRAINT task_leases_pkey, ADD UNIQUE (name, holder)",
    "DROP CONSTRAINT task_leases_pkey, ADD UNIQUE (name) DEFERRABLE",
    "ALTER holder DROP NOT NULL",
    "ALTER token DROP NOT NULL, ALTER token DROP DEFAULT",
    "ALTER acquired_at DROP NOT NULL",
    "ALTER expires_at DROP NOT NULL",
    "ALTER name TYPE text, ALTER holder TYPE text, ALTER note TYPE text",
    "ALTER name TYPE varchar(10000), ALTER holder TYPE varchar(10000), ALTER note TYPE varchar(10000)",
    "ALTER holder TYPE varchar(5)",
    "ALTER holder TYPE char(128)",
    "ALTER holder TYPE bytea USING holder::bytea",
    "ALTER token TYPE text",
    "ALTER token TYPE integer USING 7",
    "ALTER token TYPE smallint USING 7",
    "ALTER token TYPE numeric",
    "ALTER token TYPE double precision",
    "ALTER acquired_at TYPE timestamp, ALTER expires_at TYPE timestamp, ALTER released_at TYPE timestamp",
    "ALTER acquired_at TYPE date, ALTER expires_at TYPE date",
    "ALTER expires_at TYPE timestamptz(0)",
    "ALTER expires_at TYPE bigint USING 1",
    "ALTER expires_at TYPE text",
    "ALTER released_at TYPE text",
    "ALTER note TYPE integer USING 1",
    "ALTER released_at SET DEFAULT now()",
    "DROP COLUMN token",
    "DROP COLUMN holder",
    "DROP COLUMN expires_at",
    "DROP COLUMN acquired_at",
    "DROP COLUMN released_at",
    "DROP COLUMN note",
    "ADD extra text NOT NULL DEFAULT 'x', ALTER extra DROP DEFAULT",
    "ADD extra text",
    "RENAME TO gone",
    "SET UNLOGGED",
    "ADD CHECK (token < 5) NOT VALID",
];

/// Names beside that of the lease that is used.
const NAMES: &[&str] = &[
    "'job'",
    "'job'",
    "'job'",
    "'job'",
    "''",
    "repeat('n', 10000)",
    "E'a\\nb'",
    "'JOB'",
    "NULL",
];

/// Some are those of the test's own pods.
const HOLDERS: &[&str] = &[
    "'pod-a/0'",
    "'pod-b/0'",
    "'other/1'",
    "''",
    "' '",
    "'/'",
    "'evict/'",
    "'evict/ops'",
    "'pause/'",
    "'pause/ops'",
    "repeat('h', 128)",
    "repeat('h', 10000)",
    "E'\\x01\\x7f\\x1b[2J'",
    "U&'\\202E\\FFFF'",
    "NULL",
];

const TOKENS: &[&str] = &[
    "1",
    "0",
    "-1",
    "9223372036854775807",
    "9223372036854775806",
    "-9223372036854775808",
    "9007199254740992",
    "NULL",
];

const TIMES: &[&str] = &[
    "clock_timestamp()",
    "clock_timestamp() + interval '20 s'",
    "clock_timestamp() - interval '20 s'",
    "clock_timestamp() - interval '40 days'",
    "clock_timestamp() + interval '40 days'",
    "timestamptz 'infinity'",
    "timestamptz '-infinity'",
    "timestamptz '4714-11-24 00:00:00+00 BC'",
    "timestamptz '294276-12-31 23:59:59.999999+00'",
    "timestamptz '0001-01-01 00:00:00+00 BC'",
    "NULL",
];

const NOTES: &[&str] = &[
    "NULL",
    "''",
    "E'\\x01\\n'",
    "repeat('n', 255)",
    "repeat('n', 10000)",
    "'a note'",
];

/// Any ruin: up to two changes of the shape, often none, and up to three rows, which a table with its key can't all take.
pub(crate) fn ruin() -> impl Strategy<Value = Ruin> {
    let change = select(SHAPES).prop_map(|change| format!("ALTER TABLE task_leases {change}"));
    let keyless = weighted(0.2, Just(format!("ALTER TABLE task_leases {}", SHAPES[0])));
    (keyless, vec(change, 0..3), vec(row(), 0..4), any::<bool>()).prop_map(|(keyless, changes, rows, whole)| Ruin {
        shape: if whole {
            Vec::new()
        } else {
            keyless.into_iter().chain(changes).collect()
        },
        rows,
    })
}

fn row() -> impl Strategy<Value = String> {
    let times = (select(TIMES), select(TIMES), prop_oneof![Just("NULL"), select(TIMES)]);
    (select(NAMES), select(HOLDERS), select(TOKENS), times, select(NOTES)).prop_map(
        |(name, holder, token, (acquired_at, expires_at, released_at), note)| {
            format!(
                "INSERT INTO task_leases (name, holder, token, acquired_at, expires_at, released_at, note) \
                 VALUES ({name}, {holder}, {token}, {acquired_at}, {expires_at}, {released_at}, {note})"
            )
        },
    )
}

/// The row as a pod would have left it an hour ago.
pub(crate) const SANE_ROWS: &str = "DELETE FROM task_leases WHERE name IS DISTINCT FROM 'job'; \
    UPDATE task_leases SET holder = 'pod/1', token = 1, acquired_at = now() - interval '1 hour', \
    expires_at = now() - interval '1 hour', released_at = NULL, note = NULL";

/// The table with the same identity and all its columns anew.
pub(crate) const SANE_TABLE: &str = "DO $$ BEGIN \
    IF to_regclass('gone') IS NOT NULL THEN ALTER TABLE gone RENAME TO task_leases; END IF; END $$; \
    ALTER TABLE task_leases SET LOGGED; \
    DELETE FROM task_leases; \
    ALTER TABLE task_leases DROP COLUMN IF EXISTS name, DROP COLUMN IF EXISTS holder, DROP COLUMN IF EXISTS token, \
    DROP COLUMN IF EXISTS acquired_at, DROP COLUMN IF EXISTS expires_at, DROP COLUMN IF EXISTS released_at, \
    DROP COLUMN IF EXISTS note, DROP COLUMN IF EXISTS extra; \
    ALTER TABLE task_leases ADD name varchar(128) COLLATE \"C\" PRIMARY KEY, \
    ADD holder varchar(128) COLLATE \"C\" NOT NULL, \
    ADD token bigint NOT NULL DEFAULT ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint), \
    ADD acquired_at timestamptz NOT NULL, ADD expires_at timestamptz NOT NULL, \
    ADD released_at timestamptz, ADD note varchar(255)";
