-- Requests that carry idempotency keys.

-- fragment: is_request
owner_user_id = :owner AND route = :route AND key = :key

-- name: claim_request
INSERT INTO idempotency_keys (owner_user_id, route, key, hash, draw, token, era, expires_at, claimed_at)
VALUES (:owner, :route, :key, :hash, :draw, :token, :era, :expires_at, :now)
ON CONFLICT (owner_user_id, route, key) DO NOTHING
RETURNING token

-- name: request_locked
SELECT hash, draw, token, era, expires_at, status, content_type, headers, body
FROM idempotency_keys WHERE {is_request} {lock}

-- name: take_over_request
UPDATE idempotency_keys SET token = :token, era = :era, expires_at = :expires_at, claimed_at = :now WHERE {is_request}

-- name: answer_request
UPDATE idempotency_keys SET status = :status, content_type = :content_type, headers = :headers, body = :body
WHERE {is_request} AND token = :token AND status IS NULL

-- name: abandon_request
-- A lease that has run out: the next claim takes over at once.
UPDATE idempotency_keys SET expires_at = 0 WHERE {is_request} AND token = :token AND status IS NULL

-- name: prune_requests
-- Whoever executes one still stands by its lease, whatever the time of day was set to.
DELETE FROM idempotency_keys WHERE (owner_user_id, route, key) IN
  (SELECT owner_user_id, route, key FROM idempotency_keys
   WHERE claimed_at < :before AND (status IS NOT NULL OR era <> :era OR expires_at <= :lease_now)
   ORDER BY claimed_at LIMIT :most)
RETURNING 1
