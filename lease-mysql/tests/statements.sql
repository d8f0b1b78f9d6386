-- Peek
SELECT l.name IS NOT NULL, CAST(l.token AS SIGNED), CAST(GREATEST(COALESCE(l.token + 1, 0), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) AS SIGNED), CAST(l.holder AS BINARY), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.expires_at), l.released_at IS NOT NULL FROM (SELECT 1 AS one) o LEFT JOIN task_leases l ON l.name = $1;
-- Make
INSERT INTO task_leases (name, holder, token, acquired_at, expires_at, released_at, note) VALUES ($1, $2, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', NOW), NOW, NOW + INTERVAL $3 MICROSECOND, NULL, NULL);
-- Take
UPDATE task_leases SET token = $4, holder = $2, acquired_at = NOW, expires_at = NOW + INTERVAL $3 MICROSECOND, released_at = NULL, note = NULL WHERE name = (SELECT f.name FROM (SELECT l.name FROM task_leases l WHERE l.name = $1 AND l.token = $5 FOR UPDATE SKIP LOCKED) f) AND token = $5 AND expires_at <= NOW;
-- Renew
UPDATE task_leases SET expires_at = GREATEST(expires_at, NOW + INTERVAL $3 MICROSECOND) WHERE name = $1 AND holder = $2 AND released_at IS NULL AND expires_at > NOW;
-- RenewAll
UPDATE (SELECT DISTINCT l.name, a.ttl FROM JSON_TABLE(CONVERT($1 USING utf8mb4), '$[*]' COLUMNS (n FOR ORDINALITY, name VARCHAR(256) PATH '$[0]', holder VARCHAR(256) PATH '$[1]', ttl BIGINT PATH '$[2]')) a STRAIGHT_JOIN task_leases l FORCE INDEX (PRIMARY) ON l.name = UNHEX(a.name) WHERE l.holder = UNHEX(a.holder) FOR UPDATE /*!80001 OF l */ SKIP LOCKED) f STRAIGHT_JOIN task_leases t FORCE INDEX (PRIMARY) ON t.name = f.name SET t.expires_at = GREATEST(t.expires_at, NOW + INTERVAL f.ttl MICROSECOND) WHERE t.released_at IS NULL AND t.expires_at > NOW;
-- PeekAll
SELECT CAST(a.n AS SIGNED), CAST(l.token AS SIGNED), CAST(l.holder AS BINARY), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.expires_at), l.released_at IS NOT NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM JSON_TABLE(CONVERT($1 USING utf8mb4), '$[*]' COLUMNS (n FOR ORDINALITY, name VARCHAR(256) PATH '$[0]', holder VARCHAR(256) PATH '$[1]', ttl BIGINT PATH '$[2]')) a STRAIGHT_JOIN task_leases l FORCE INDEX (PRIMARY) ON l.name = UNHEX(a.name);
-- Release
UPDATE task_leases SET released_at = NOW, expires_at = CASE WHEN expires_at > NOW THEN GREATEST(NOW, acquired_at + INTERVAL $3 MICROSECOND) ELSE expires_at END WHERE name = $1 AND holder = $2 AND released_at IS NULL;
-- Delete
DELETE FROM task_leases WHERE name = $1 AND holder = $2 AND released_at IS NULL AND (expires_at <= NOW OR acquired_at + INTERVAL $3 MICROSECOND <= NOW);
-- List
SELECT CAST(name AS BINARY), CAST(holder AS BINARY), CAST(COALESCE(token, 0) AS SIGNED), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', acquired_at), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expires_at), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', released_at), CAST(note AS BINARY), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM task_leases ORDER BY CAST(name AS BINARY);
-- Get
SELECT CAST(name AS BINARY), CAST(holder AS BINARY), CAST(COALESCE(token, 0) AS SIGNED), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', acquired_at), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expires_at), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', released_at), CAST(note AS BINARY), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM task_leases WHERE name = $1;
-- Evict
UPDATE task_leases SET token = GREATEST(token + 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', NOW)), holder = $2, acquired_at = NOW, released_at = NULL, note = $3 WHERE name = $1 AND expires_at > NOW;
-- EvictNow
UPDATE task_leases SET token = GREATEST(token + 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', NOW)), holder = $2, acquired_at = NOW, expires_at = NOW, released_at = NULL, note = $3 WHERE name = $1 AND expires_at > NOW;
-- Pause
INSERT INTO task_leases (name, holder, token, acquired_at, expires_at, released_at, note) VALUES ($1, $2, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', NOW), NOW, NOW + INTERVAL $3 MICROSECOND, NULL, $4) ON DUPLICATE KEY UPDATE token = GREATEST(token + 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', NOW)), acquired_at = GREATEST(NOW, CASE WHEN LEFT(holder, 6) = 'pause/' AND released_at IS NULL THEN acquired_at ELSE expires_at END), expires_at = GREATEST(NOW + INTERVAL $3 MICROSECOND, acquired_at), holder = $2, released_at = NULL, note = $4;
-- Resume
UPDATE task_leases SET released_at = NOW, expires_at = GREATEST(acquired_at, NOW) WHERE name = $1 AND LEFT(holder, 6) = 'pause/' AND released_at IS NULL AND expires_at > NOW;
-- Purgeable
SELECT CAST(name AS BINARY) FROM task_leases WHERE expires_at <= UTC_TIMESTAMP(6) - INTERVAL $1 MICROSECOND AND token < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) ORDER BY CAST(name AS BINARY);
-- Purge
DELETE FROM task_leases WHERE name = $1 AND expires_at <= NOW - INTERVAL $2 MICROSECOND AND token < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', NOW);
-- Conditions
SELECT CAST(@lease_e1 AS SIGNED), CAST(@lease_m1 AS BINARY), CAST(@lease_e2 AS SIGNED), CAST(@lease_m2 AS BINARY);
-- Autocommit
SELECT @@autocommit;
-- Check
SELECT 1 FROM task_leases WHERE name = $1 AND holder = $2 AND token = $3 AND released_at IS NULL AND expires_at > NOW FOR UPDATE;
-- NOW stands for
(UTC_TIMESTAMP(6) + INTERVAL MOD(TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) + 86850000000, 900000000) - 450000000 MICROSECOND);
