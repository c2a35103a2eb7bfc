-- Holds and their receipts.

-- fragment: hold_columns
run_id, attempt, billing_account_id, virtual_key_id, schedule_id, amount, state, spent, unmetered, era, expires_at,
held_at, counted_at, ended_at

-- fragment: receipt_columns
id, billing_account_id, virtual_key_id, run_id, attempt, unit, model, input_tokens, output_tokens, cache_read_tokens,
cache_write_tokens, amount, created_at, price

-- fragment: is_hold
run_id = :run_id AND attempt = :attempt

-- name: insert_hold
INSERT INTO holds ({hold_columns})
SELECT :run_id, :attempt, billing_account_id, id, :schedule_id, :amount, 'held', 0, 0, :era, :expires_at, :now, :now, NULL
FROM virtual_keys WHERE billing_account_id = :account AND is_default = 1
ON CONFLICT (run_id, attempt) DO NOTHING
RETURNING {hold_columns}, (SELECT owner_user_id FROM schedules WHERE schedules.id = holds.schedule_id)

-- name: hold_by_key
SELECT {hold_columns} FROM holds WHERE {is_hold}

-- name: hold_by_key_locked
SELECT {hold_columns} FROM holds WHERE {is_hold} {lock:no key update}

-- name: renew_hold
UPDATE holds SET era = :era, expires_at = :expires_at WHERE {is_hold}

-- name: count_hold_at
UPDATE holds SET counted_at = :counted_at WHERE {is_hold}

-- name: end_hold
-- The first end stands. What was spent cannot be released.
UPDATE holds SET ended_at = :now, state =
  CASE WHEN :state = 'released' AND (spent > 0 OR unmetered > 0) THEN 'settled' ELSE CAST(:state AS text) END
WHERE {is_hold} AND state = 'held'
RETURNING {hold_columns}

-- name: insert_receipt
INSERT INTO charge_receipts ({receipt_columns}, source_reference)
VALUES (:id, :account, :virtual_key_id, :run_id, :attempt, :unit, :model, :input_tokens, :output_tokens,
        :cache_read_tokens, :cache_write_tokens, :amount, :created_at, :price, :reference)
ON CONFLICT (source_reference) DO NOTHING RETURNING id

-- name: receipt_by_reference
SELECT {receipt_columns} FROM charge_receipts WHERE source_reference = :reference

-- name: spend_hold
UPDATE holds SET spent = spent + :amount, unmetered = unmetered + :unmetered WHERE {is_hold}

-- name: holds_run_out
SELECT {hold_columns} FROM holds
WHERE state = 'held' AND (expires_at <= :lease_now OR era <> :era) ORDER BY expires_at LIMIT :most

-- name: open_holds_of_account
SELECT {hold_columns} FROM holds
WHERE billing_account_id = :account AND state = 'held' ORDER BY counted_at DESC, run_id DESC, attempt DESC LIMIT :most

-- name: holds_of_run
SELECT {hold_columns} FROM holds WHERE run_id = :run_id ORDER BY attempt

-- name: receipts_of_run
SELECT {receipt_columns} FROM charge_receipts WHERE run_id = :run_id ORDER BY attempt, created_at, id LIMIT :most

-- name: count_receipts_of_run
SELECT count(*) FROM charge_receipts WHERE run_id = :run_id
