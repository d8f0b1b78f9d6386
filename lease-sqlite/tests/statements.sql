-- Peek
SELECT holder, expires_at, released_at, NOW FROM task_leases WHERE name = $1;
-- Acquire
INSERT INTO task_leases AS t (name, holder, token, acquired_at, expires_at, released_at, note) VALUES ($1, $2, max(NOW, 1), NOW, NOW + $3, NULL, NULL) ON CONFLICT (name) DO UPDATE SET holder = $2, token = CASE WHEN t.expires_at <= NOW THEN max(t.token + 1, NOW) ELSE t.token END, acquired_at = CASE WHEN t.expires_at <= NOW THEN NOW ELSE t.acquired_at END, expires_at = CASE WHEN t.expires_at <= NOW THEN NOW + $3 ELSE max(t.expires_at, NOW + $3) END, released_at = NULL, note = CASE WHEN t.expires_at <= NOW THEN NULL ELSE t.note END WHERE t.expires_at <= NOW OR (t.holder = $2 AND t.released_at IS NULL) RETURNING token;
-- Renew
UPDATE task_leases SET expires_at = max(expires_at, NOW + $3) WHERE name = $1 AND holder = $2 AND released_at IS NULL AND expires_at > NOW;
-- Release
UPDATE task_leases SET released_at = NOW, expires_at = CASE WHEN expires_at > NOW THEN max(NOW, acquired_at + $3) ELSE expires_at END WHERE name = $1 AND holder = $2 AND released_at IS NULL;
-- List
SELECT name, holder, token, acquired_at, expires_at, released_at, note, NOW FROM task_leases ORDER BY name;
-- Get
SELECT name, holder, token, acquired_at, expires_at, released_at, note, NOW FROM task_leases WHERE name = $1;
-- Evict
UPDATE task_leases SET holder = $2, token = max(token + 1, NOW), acquired_at = NOW, released_at = NULL, note = $3 WHERE name = $1 AND expires_at > NOW RETURNING expires_at, NOW;
-- EvictNow
UPDATE task_leases SET holder = $2, token = max(token + 1, NOW), acquired_at = NOW, expires_at = NOW, released_at = NULL, note = $3 WHERE name = $1 AND expires_at > NOW RETURNING expires_at, NOW;
-- Pause
INSERT INTO task_leases AS t (name, holder, token, acquired_at, expires_at, released_at, note) VALUES ($1, $2, max(NOW, 1), NOW, NOW + $3, NULL, $4) ON CONFLICT (name) DO UPDATE SET holder = $2, token = max(t.token + 1, NOW), acquired_at = max(NOW, CASE WHEN substr(t.holder, 1, 6) = 'pause/' AND t.released_at IS NULL THEN t.acquired_at ELSE t.expires_at END), expires_at = max(NOW + $3, CASE WHEN substr(t.holder, 1, 6) = 'pause/' AND t.released_at IS NULL THEN t.acquired_at ELSE t.expires_at END), released_at = NULL, note = $4;
-- Resume
UPDATE task_leases SET released_at = NOW, expires_at = max(acquired_at, NOW) WHERE name = $1 AND substr(holder, 1, 6) = 'pause/' AND released_at IS NULL AND expires_at > NOW;
-- Purge
DELETE FROM task_leases WHERE expires_at <= NOW - $1 AND token < NOW;
-- NOW stands for
(CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000);
