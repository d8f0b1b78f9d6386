CREATE TABLE IF NOT EXISTS task_leases (
    name varchar(128) COLLATE "C" PRIMARY KEY,
    holder varchar(128) COLLATE "C" NOT NULL,
    token bigint NOT NULL DEFAULT ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
    acquired_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    released_at timestamptz,
    note varchar(255)
) WITH (fillfactor = 50)
