-- Grants, and which schedules act under them.

-- fragment: grant_columns
id, user_id, billing_account_id, scopes, expires_at, revoked_at, created_at, last_used_at

-- name: insert_grant
INSERT INTO execution_grants (id, user_id, billing_account_id, scopes, expires_at, created_at)
VALUES (:id, :user, :account, :scopes, :expires_at, :created_at)
ON CONFLICT (id) DO NOTHING

-- name: grant_by_id
SELECT {grant_columns} FROM execution_grants WHERE id = :id

-- name: all_grants
SELECT {grant_columns} FROM execution_grants ORDER BY id

-- name: grants_of_user
SELECT {grant_columns} FROM execution_grants WHERE user_id = :user ORDER BY id

-- name: revoke_grant
-- The first time stands.
UPDATE execution_grants SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL

-- name: touch_grant
UPDATE execution_grants SET last_used_at = :now WHERE id = :id AND (last_used_at IS NULL OR last_used_at < :now)

-- name: grant_of_schedule
SELECT {grant_columns} FROM execution_grants
WHERE id = (SELECT execution_grant_id FROM schedules WHERE schedules.id = :schedule_id)

-- name: grant_of_launches
SELECT {grant_columns} FROM execution_grants
WHERE id = (SELECT launch_grant_id FROM workflow_versions WHERE name = :workflow AND version = :version)

-- name: launch_under
UPDATE workflow_versions SET launch_grant_id = :grant_id WHERE name = :workflow AND version = :version

-- name: assign_grant
UPDATE schedules SET execution_grant_id = :grant_id WHERE id = :schedule_id

-- name: active_schedules_of_grant
SELECT id FROM schedules WHERE execution_grant_id = :grant_id AND state = 'active' ORDER BY id
