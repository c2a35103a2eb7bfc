-- Webhooks: endpoints, the outbox that triggers fill, events, deliveries and their attempts, hosts that have failed.

-- fragment: endpoint_columns
e.id, e.owner_user_id, e.url, e.host, e.events, e.everything, e.note, e.signing_key, e.old_signing_key, e.old_key_until,
e.disabled_at, e.disabled_reason, e.created_at, e.updated_at

-- fragment: delivery_columns
d.id, d.event_id, d.endpoint_id, e.owner_user_id, d.type, d.subject_id, d.state, d.tries, d.attempts, d.due_at,
d.give_up_at, d.status, d.error, d.created_at, d.ended_at

-- name: insert_endpoint
INSERT INTO webhook_endpoints (id, owner_user_id, url, host, events, everything, note, signing_key, created_at, updated_at)
VALUES (:id, :owner, :url, :host, :events, :everything, :note, :signing_key, :now, :now)
ON CONFLICT DO NOTHING

-- name: endpoint_at
SELECT {endpoint_columns} FROM webhook_endpoints e WHERE e.owner_user_id = :owner AND e.url = :url

-- name: endpoint_by_id
SELECT {endpoint_columns} FROM webhook_endpoints e WHERE e.id = :id

-- name: endpoint_by_id_locked
SELECT {endpoint_columns} FROM webhook_endpoints e WHERE e.id = :id {lock}

-- name: endpoints_listed
SELECT {endpoint_columns} FROM webhook_endpoints e
WHERE e.id > :after AND (CAST(:owner AS text) IS NULL OR e.owner_user_id = :owner) ORDER BY e.id LIMIT :most

-- name: endpoints_for
-- Those that may want what an owner's things tell; nobody's things are for those that want everything. None of them is
-- deleted before we commit: a delivery to nobody would never end.
SELECT {endpoint_columns} FROM webhook_endpoints e
WHERE e.disabled_at IS NULL AND (e.everything = 1 OR e.owner_user_id = CAST(:owner AS text)) ORDER BY e.id
{lock:key share}

-- name: count_endpoints
SELECT count(*) FROM webhook_endpoints WHERE owner_user_id = :owner

-- name: update_endpoint
UPDATE webhook_endpoints SET events = :events, everything = :everything, note = :note, signing_key = :signing_key,
  old_signing_key = :old_signing_key, old_key_until = :old_key_until, disabled_at = :disabled_at,
  disabled_reason = :disabled_reason, updated_at = :updated_at
WHERE id = :id

-- name: delete_endpoint
DELETE FROM webhook_endpoints WHERE id = :id

-- name: forget_attempts_of_endpoint
DELETE FROM webhook_attempts WHERE delivery_id IN (SELECT id FROM webhook_deliveries WHERE endpoint_id = :endpoint_id)

-- name: forget_deliveries_of_endpoint
DELETE FROM webhook_deliveries WHERE endpoint_id = :endpoint_id

-- name: forget_events_of_nobody
DELETE FROM webhook_events WHERE id IN (
  SELECT id FROM webhook_events v
  WHERE NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.event_id = v.id) LIMIT :most)

-- name: some_of_outbox
SELECT seq, noun, owner_user_id, url, occurred_at, subject FROM webhook_outbox
WHERE aside_at IS NULL ORDER BY seq LIMIT :most {lock:update skip locked}

-- name: some_set_aside
SELECT seq, noun, owner_user_id, url, occurred_at, subject FROM webhook_outbox
WHERE aside_at IS NOT NULL AND seq > :after ORDER BY seq LIMIT :most {lock:update skip locked}

-- name: set_aside
UPDATE webhook_outbox SET aside_at = :now, aside_reason = :reason WHERE seq = :seq

-- name: count_set_aside
SELECT count(*), max(aside_reason) FROM webhook_outbox WHERE aside_at IS NOT NULL

-- name: take_from_outbox
DELETE FROM webhook_outbox WHERE seq = :seq

-- name: was_retried
-- By itself: a retry that somebody asked for is no part of the end that it came after.
SELECT 1 FROM jobs n WHERE n.chain = :chain AND n.retry_of IS NOT NULL AND n.retry_of = :id
  AND NOT EXISTS (SELECT 1 FROM manual_retries m WHERE m.job_id = n.id)
UNION ALL
SELECT 1 FROM finished_jobs n WHERE n.chain = :chain AND n.retry_of IS NOT NULL AND n.retry_of = :id
  AND NOT EXISTS (SELECT 1 FROM manual_retries m WHERE m.job_id = n.id)
LIMIT 1

-- name: insert_event
INSERT INTO webhook_events (id, type, owner_user_id, subject_id, occurred_at, body)
VALUES (:id, :type, :owner, :subject_id, :occurred_at, :body) ON CONFLICT DO NOTHING

-- name: insert_delivery
INSERT INTO webhook_deliveries
  (id, event_id, endpoint_id, type, subject_id, state, tries, attempts, due_at, give_up_at, created_at, owner_user_id)
VALUES (:id, :event_id, :endpoint_id, :type, :subject_id, 'pending', 0, 0, :now, :give_up_at, :now,
  (SELECT owner_user_id FROM webhook_endpoints WHERE webhook_endpoints.id = :endpoint_id))
ON CONFLICT DO NOTHING

-- name: next_delivery_at
SELECT min(due_at) FROM webhook_deliveries WHERE state = 'pending'

-- name: has_outbox
SELECT 1 FROM webhook_outbox WHERE aside_at IS NULL LIMIT 1

-- name: has_endpoints
SELECT 1 FROM webhook_endpoints LIMIT 1

-- name: deliveries_due
SELECT {delivery_columns}, v.body, {endpoint_columns}
FROM webhook_deliveries d
JOIN webhook_endpoints e ON e.id = d.endpoint_id
JOIN webhook_events v ON v.id = d.event_id
WHERE d.state = 'pending' AND d.due_at <= :now ORDER BY d.due_at, d.id LIMIT :most {lock:update of d skip locked}

-- name: endpoints_due
-- One look into an index for each endpoint, however much waits for it.
SELECT {endpoint_columns} FROM (
  SELECT w.*, (SELECT min(d.due_at) FROM webhook_deliveries d WHERE d.endpoint_id = w.id AND d.state = 'pending') AS next_at
  FROM webhook_endpoints w) AS e
WHERE e.next_at <= :now ORDER BY e.next_at, e.id

-- name: deliveries_due_of_endpoint
SELECT {delivery_columns}, v.body, {endpoint_columns}
FROM webhook_deliveries d
JOIN webhook_endpoints e ON e.id = d.endpoint_id
JOIN webhook_events v ON v.id = d.event_id
WHERE d.endpoint_id = :endpoint_id AND d.state = 'pending' AND d.due_at <= :now ORDER BY d.due_at, d.id LIMIT 1
{lock:update of d skip locked}

-- name: deliveries_held
SELECT {delivery_columns}, v.body, {endpoint_columns}
FROM webhook_deliveries d
JOIN webhook_endpoints e ON e.id = d.endpoint_id
JOIN webhook_events v ON v.id = d.event_id
WHERE d.state = 'pending' AND d.claim = :claim

-- name: claim_delivery
UPDATE webhook_deliveries SET claim = :claim, due_at = :until WHERE id = :id

-- name: postpone_delivery
UPDATE webhook_deliveries SET claim = NULL, due_at = :until WHERE id = :id

-- name: postpone_host
-- So that what cannot be sent does not stand in the way of what can.
UPDATE webhook_deliveries SET due_at = :until
WHERE state = 'pending' AND claim IS NULL AND due_at < :until
  AND endpoint_id IN (SELECT id FROM webhook_endpoints WHERE owner_user_id = :owner AND host = :host)

-- name: fail_delivery
UPDATE webhook_deliveries SET state = 'failed', claim = NULL, error = :error, ended_at = :now WHERE id = :id

-- name: fail_deliveries_of_endpoint
UPDATE webhook_deliveries SET state = 'failed', claim = NULL, error = :error, ended_at = :now
WHERE endpoint_id = :endpoint_id AND state = 'pending'

-- name: report_delivery
-- Only under its claim: whoever lost it changes nothing.
UPDATE webhook_deliveries SET state = :state, tries = :tries, attempts = :attempts, due_at = :due_at, status = :status,
  error = :error, ended_at = :ended_at, claim = NULL
WHERE id = :id AND claim = :claim AND state = 'pending'
RETURNING id

-- name: insert_attempt
INSERT INTO webhook_attempts (delivery_id, number, at, ms, status, error, excerpt)
VALUES (:delivery_id, :number, :at, :ms, :status, :error, :excerpt) ON CONFLICT DO NOTHING

-- name: attempts_of
SELECT number, at, ms, status, error, excerpt FROM webhook_attempts WHERE delivery_id = :delivery_id ORDER BY number

-- name: delivery_by_id
SELECT {delivery_columns} FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id WHERE d.id = :id

-- name: delivery_by_id_locked
SELECT {delivery_columns} FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
WHERE d.id = :id {lock:update of d}

-- fragment: as_asked_of_deliveries
(CAST(:owner AS text) IS NULL OR d.owner_user_id = :owner)
  AND (CAST(:endpoint_id AS text) IS NULL OR d.endpoint_id = :endpoint_id)
  AND (CAST(:state AS text) IS NULL OR d.state = :state)

-- name: deliveries_listed
SELECT {delivery_columns} FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
WHERE d.id < :before AND {as_asked_of_deliveries}
ORDER BY d.id DESC LIMIT :most

-- name: deliveries_listed_aside
SELECT {delivery_columns} FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
WHERE (d.state, d.id) < (:state, :before) AND d.state >= :state AND d.state <> 'delivered' AND {as_asked_of_deliveries}
ORDER BY d.state DESC, d.id DESC LIMIT :most

-- name: deliveries_listed_of_owner
SELECT {delivery_columns} FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
WHERE (d.owner_user_id, d.id) < (:owner, :before) AND d.owner_user_id >= :owner AND {as_asked_of_deliveries}
ORDER BY d.owner_user_id DESC, d.id DESC LIMIT :most

-- name: deliveries_listed_aside_of_owner
SELECT {delivery_columns} FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
WHERE (d.owner_user_id, d.state, d.id) < (:owner, :state, :before) AND (d.owner_user_id, d.state) >= (:owner, :state) AND d.state <> 'delivered' AND {as_asked_of_deliveries}
ORDER BY d.owner_user_id DESC, d.state DESC, d.id DESC LIMIT :most

-- name: deliveries_listed_of_endpoint
SELECT {delivery_columns} FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
WHERE (d.endpoint_id, d.id) < (:endpoint_id, :before) AND d.endpoint_id >= :endpoint_id AND {as_asked_of_deliveries}
ORDER BY d.endpoint_id DESC, d.id DESC LIMIT :most

-- name: deliveries_listed_aside_of_endpoint
SELECT {delivery_columns} FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
WHERE (d.endpoint_id, d.state, d.id) < (:endpoint_id, :state, :before) AND (d.endpoint_id, d.state) >= (:endpoint_id, :state) AND d.state <> 'delivered' AND {as_asked_of_deliveries}
ORDER BY d.endpoint_id DESC, d.state DESC, d.id DESC LIMIT :most

-- name: deliveries_listed_of_subject
-- What became of one thing is told to a few at most.
WITH told AS MATERIALIZED (SELECT * FROM webhook_deliveries WHERE subject_id = :subject_id)
SELECT {delivery_columns} FROM told d JOIN webhook_endpoints e ON e.id = d.endpoint_id
WHERE d.id < :before AND {as_asked_of_deliveries} ORDER BY d.id DESC LIMIT :most

-- name: send_again
UPDATE webhook_deliveries SET state = 'pending', tries = 0, due_at = :now, give_up_at = :give_up_at, claim = NULL,
  ended_at = NULL
WHERE id = :id

-- name: host_of
SELECT failures, rests, open_until, probe FROM webhook_hosts WHERE owner_user_id = :owner AND host = :host {lock}

-- name: note_host
-- So that there is a row to lock: those who find it unwell at the same moment are all counted.
INSERT INTO webhook_hosts (owner_user_id, host, failures, rests) VALUES (:owner, :host, 0, 0) ON CONFLICT DO NOTHING

-- name: save_host
INSERT INTO webhook_hosts (owner_user_id, host, failures, rests, open_until, probe)
VALUES (:owner, :host, :failures, :rests, :open_until, :probe)
ON CONFLICT (owner_user_id, host) DO UPDATE SET failures = excluded.failures, rests = excluded.rests,
  open_until = excluded.open_until, probe = excluded.probe

-- name: forget_host
DELETE FROM webhook_hosts WHERE owner_user_id = :owner AND host = :host

-- name: forget_host_of_nobody
DELETE FROM webhook_hosts WHERE owner_user_id = :owner AND host = :host
  AND NOT EXISTS (SELECT 1 FROM webhook_endpoints e WHERE e.owner_user_id = :owner AND e.host = :host)

-- name: prune_deliveries
-- Asked once more of the row itself: one that is sent again at this very moment has not ended.
DELETE FROM webhook_deliveries WHERE id IN (
  SELECT id FROM webhook_deliveries WHERE ended_at IS NOT NULL AND ended_at < :before ORDER BY ended_at LIMIT :most)
  AND ended_at IS NOT NULL
RETURNING id, event_id

-- name: forget_attempts
DELETE FROM webhook_attempts WHERE delivery_id = :delivery_id

-- name: forget_event
DELETE FROM webhook_events
WHERE id = :event_id AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.event_id = :event_id)
