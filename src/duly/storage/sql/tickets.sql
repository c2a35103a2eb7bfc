-- Tickets: places of direct calls, next in turn before the queue.

-- fragment: ticket_columns
id, pool, session, created_at, expires_at, state

-- name: ticket_by_id_locked
SELECT {ticket_columns} FROM tickets WHERE id = :id {lock}

-- name: add_ticket
INSERT INTO tickets (id, pool, session, created_at, expires_at, state)
VALUES (:id, :pool, :session, :created_at, :expires_at, 'waiting')
ON CONFLICT (id) DO NOTHING RETURNING id

-- name: count_waiting
UPDATE pools SET tickets = tickets + :change WHERE name = :name RETURNING parked > 0

-- name: count_held
UPDATE pools SET used = used + :change WHERE name = :name

-- name: tickets_ahead
SELECT count(*) FROM tickets
WHERE pool = :pool AND state = 'waiting' AND (created_at < :created_at OR (created_at = :created_at AND id < :id))

-- name: hold_ticket
UPDATE tickets SET state = 'held' WHERE id = :id

-- name: remove_ticket
DELETE FROM tickets WHERE id = :id

-- name: tickets_of_session
SELECT {ticket_columns} FROM tickets WHERE session = :session ORDER BY id {lock}

-- name: overdue_tickets
-- Waited longer than their caller would.
SELECT {ticket_columns} FROM tickets WHERE state = 'waiting' AND expires_at <= :now ORDER BY id {lock:update skip locked}
