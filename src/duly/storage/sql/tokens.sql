-- Tokens: found by what their secrets hash to.

-- fragment: token_columns
id, owner_user_id, role, name, created_at, expires_at, revoked_at, last_used_at

-- name: insert_token
INSERT INTO api_tokens (id, owner_user_id, role, name, secret_hash, created_at, expires_at)
VALUES (:id, :owner, :role, :name, :secret_hash, :created_at, :expires_at)
ON CONFLICT (id) DO NOTHING

-- name: token_by_hash
SELECT {token_columns} FROM api_tokens WHERE secret_hash = :secret_hash

-- name: token_by_id_locked
SELECT {token_columns} FROM api_tokens WHERE id = :id {lock}

-- name: all_tokens
SELECT {token_columns} FROM api_tokens ORDER BY id

-- name: tokens_of_owner
SELECT {token_columns} FROM api_tokens WHERE owner_user_id = :owner ORDER BY id

-- name: revoke_token
-- The first time stands.
UPDATE api_tokens SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL

-- name: touch_token
UPDATE api_tokens SET last_used_at = :now WHERE id = :id AND (last_used_at IS NULL OR last_used_at < :now)
