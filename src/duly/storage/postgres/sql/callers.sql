-- Puts in a caller's own transaction.

-- name: which_database
-- The same on two connections if they lead to the same tables: the server's start, its database, what `jobs` names there.
SELECT CAST(pg_postmaster_start_time() AS text), CAST(current_database() AS text),
       CAST(CAST(to_regclass('jobs') AS oid) AS bigint)

-- name: notify_in_transaction
-- Heard after the commit, or never.
SELECT pg_notify('duly', :payload)
