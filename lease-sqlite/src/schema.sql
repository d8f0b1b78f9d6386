CREATE TABLE IF NOT EXISTS task_leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    token INTEGER NOT NULL,
    acquired_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    released_at INTEGER,
    note TEXT
) STRICT
