-- Groups: one row that counts its open members, and a row for each member.

-- fragment: group_columns
id, owner_user_id, name, mode, stop_on_failure, webhook_url, size, open, status, cancel_reason, created_at, ended_at

-- fragment: member_columns
group_id, place, name, job_id, state, reason, last_job, ended_at, spec

-- fragment: as_its_last_job
state = f.status, reason = CASE WHEN f.status = 'COMPLETED' THEN NULL ELSE f.error END, last_job = f.id,
  ended_at = f.finished_at

-- name: insert_group
INSERT INTO job_groups (id, owner_user_id, name, mode, stop_on_failure, webhook_url, size, open, status, created_at)
VALUES (:id, :owner, :name, :mode, :stop_on_failure, :webhook_url, :size, :size, 'RUNNING', :now)
ON CONFLICT (id) DO NOTHING
RETURNING id

-- name: group_by_id
SELECT {group_columns} FROM job_groups WHERE id = :id

-- name: group_by_id_locked
SELECT {group_columns} FROM job_groups WHERE id = :id {lock}

-- name: groups_listed
SELECT {group_columns} FROM job_groups
WHERE id < :before ORDER BY id DESC LIMIT :most

-- name: groups_listed_by_status
SELECT {group_columns} FROM job_groups
WHERE (status, id) < (:status, :before) AND status >= :status ORDER BY status DESC, id DESC LIMIT :most

-- name: groups_listed_of_owner
SELECT {group_columns} FROM job_groups
WHERE (owner_user_id, id) < (:owner, :before) AND owner_user_id >= :owner
ORDER BY owner_user_id DESC, id DESC LIMIT :most

-- name: groups_listed_of_owner_by_status
SELECT {group_columns} FROM job_groups
WHERE (owner_user_id, status, id) < (:owner, :status, :before) AND (owner_user_id, status) >= (:owner, :status)
ORDER BY owner_user_id DESC, status DESC, id DESC LIMIT :most

-- name: members_of_group
SELECT {member_columns} FROM group_members WHERE group_id = :group_id AND place > :after ORDER BY place LIMIT :most

-- name: member_at
SELECT {member_columns} FROM group_members WHERE group_id = :group_id AND place = :place

-- name: member_of_chain
-- A chain that was replaced when its group was tried again is no member's any more.
SELECT id FROM group_members WHERE job_id = :chain

-- name: member_places
SELECT name, place FROM group_members WHERE group_id = :group_id AND name IS NOT NULL

-- name: next_pending
SELECT {member_columns} FROM group_members WHERE group_id = :group_id AND state = 'pending' ORDER BY place LIMIT 1

-- name: live_jobs_of_group
-- By their chains, so that jobs need no index for it.
SELECT j.id FROM group_members m JOIN jobs j ON j.id = m.job_id WHERE m.group_id = :group_id AND m.state = 'live'
UNION ALL
SELECT j.id FROM group_members m JOIN jobs j ON j.chain = m.job_id AND j.retry_of IS NOT NULL
WHERE m.group_id = :group_id AND m.state = 'live'

-- name: count_members
SELECT state, count(*) FROM group_members WHERE group_id = :group_id GROUP BY state

-- name: end_pending
-- Members whose turn will not come.
UPDATE group_members SET state = 'CANCELLED', reason = :reason, ended_at = :now
WHERE group_id = :group_id AND state = 'pending'
RETURNING place

-- name: fail_pending
-- A member that could not be put.
UPDATE group_members SET state = 'FAILED', reason = :reason, ended_at = :now
WHERE group_id = :group_id AND place = :place AND state = 'pending'

-- name: count_open
UPDATE job_groups SET open = (SELECT count(*) FROM group_members m WHERE m.group_id = :id AND m.state IN ('pending', 'live'))
WHERE id = :id

-- name: close_members
-- Some of its members have ended; answers how many are still open.
UPDATE job_groups SET open = open - :ended WHERE id = :id RETURNING open

-- name: settle_group
UPDATE job_groups SET status = :status, ended_at = :now WHERE id = :id

-- name: ask_group_to_stop
UPDATE job_groups SET cancel_reason = :reason WHERE id = :id

-- name: reopen_group
UPDATE job_groups SET status = 'RUNNING', ended_at = NULL, cancel_reason = NULL WHERE id = :id

-- name: revive_member
-- Its chain goes on, by hand.
UPDATE group_members SET state = 'live', reason = NULL, last_job = NULL, ended_at = NULL
WHERE group_id = :group_id AND place = :place

-- name: revive_followers
-- Members that were never put because one before them had failed.
UPDATE group_members SET state = 'pending', reason = NULL, ended_at = NULL
WHERE group_id = :group_id AND place > :place AND state = 'CANCELLED' AND last_job IS NULL

-- name: result_of
SELECT result FROM finished_jobs WHERE id = :id

-- name: prune_groups
DELETE FROM job_groups WHERE id IN (
  SELECT id FROM job_groups WHERE ended_at IS NOT NULL AND ended_at < :before ORDER BY ended_at LIMIT :most)
RETURNING id

-- name: forget_members
DELETE FROM group_members WHERE group_id = :group_id
