-- Lanes: one job of a lane is its head; the others wait. A lane has no row of its own: its head is what is locked.

-- name: head_of_lane_locked
SELECT id, state FROM jobs WHERE lane = :lane AND state NOT IN ('scheduled', 'waiting') {lock}

-- name: demote
-- A head that has not been claimed steps back behind a better one.
UPDATE jobs SET state = 'waiting', parked_on = NULL WHERE id = :id AND state IN ('ready', 'parked') RETURNING id
