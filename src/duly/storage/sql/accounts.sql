-- Accounts, their keys and what came in.

-- fragment: account_columns
id, owner_user_id, name, currency, granted, available, held, charged, overrun, created_at

-- fragment: credit_columns
id, billing_account_id, key, amount, created_at

-- name: insert_user
INSERT INTO users (id, created_at) VALUES (:id, :now) ON CONFLICT (id) DO NOTHING

-- name: lock_user
SELECT id FROM users WHERE id = :id {lock:no key update}

-- name: insert_account
INSERT INTO billing_accounts ({account_columns})
VALUES (:id, :owner, :name, :currency, 0, 0, 0, 0, 0, :created_at)
ON CONFLICT (id) DO NOTHING

-- name: insert_virtual_key
INSERT INTO virtual_keys (id, billing_account_id, is_default, created_at)
VALUES (:id, :account, :is_default, :created_at)
ON CONFLICT (id) DO NOTHING

-- name: default_key_of
SELECT id, billing_account_id, is_default, created_at FROM virtual_keys
WHERE billing_account_id = :account AND is_default = 1

-- name: account_by_id
SELECT {account_columns} FROM billing_accounts WHERE id = :id

-- name: all_accounts
SELECT {account_columns} FROM billing_accounts WHERE id > :after ORDER BY id LIMIT :most

-- name: accounts_of_owner
SELECT {account_columns} FROM billing_accounts WHERE owner_user_id = :owner AND id > :after ORDER BY id LIMIT :most

-- name: reserve_money
-- Whoever waited for the row judges it anew, so no two take the same money.
UPDATE billing_accounts SET available = available - :amount, held = held + :amount
WHERE id = :id AND available >= :amount
RETURNING available

-- name: move_money
-- What is left after all three changes is available, or, below nothing, the overrun.
UPDATE billing_accounts SET
  granted = granted + :granted,
  held = held + :held,
  available = CASE WHEN available - overrun + :granted - :held - :used > 0
    THEN available - overrun + :granted - :held - :used ELSE 0 END,
  overrun = CASE WHEN available - overrun + :granted - :held - :used < 0
    THEN overrun - available - :granted + :held + :used ELSE 0 END,
  charged = granted + :granted - held - :held - CASE WHEN available - overrun + :granted - :held - :used > 0
    THEN available - overrun + :granted - :held - :used ELSE 0 END
WHERE id = :id
RETURNING {account_columns}

-- name: insert_credit
INSERT INTO credits ({credit_columns}) VALUES (:id, :account, :key, :amount, :created_at)
ON CONFLICT (billing_account_id, key) DO NOTHING RETURNING id

-- name: credit_by_key
SELECT {credit_columns} FROM credits WHERE billing_account_id = :account AND key = :key

-- name: credits_before
SELECT {credit_columns} FROM credits
WHERE billing_account_id = :account AND (created_at, id) < (:at, :id)
ORDER BY created_at DESC, id DESC LIMIT :most

-- name: receipts_before
SELECT {receipt_columns} FROM charge_receipts
WHERE billing_account_id = :account AND (created_at, id) < (:at, :id)
ORDER BY created_at DESC, id DESC LIMIT :most

-- name: unmetered_receipts
SELECT count(*) FROM charge_receipts WHERE billing_account_id = :account AND amount IS NULL
