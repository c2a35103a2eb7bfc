-- Budgets: what holds of an account or of a schedule may come to within a window.

-- fragment: budget_columns
id, owner_user_id, scope, scope_id, period, timezone, limit_amount, on_exceeded, window_start, used, created_at

-- name: budget_by_id
SELECT {budget_columns} FROM budgets WHERE id = :id

-- name: all_budgets
SELECT {budget_columns} FROM budgets ORDER BY id

-- name: budgets_of_owner
SELECT {budget_columns} FROM budgets WHERE owner_user_id = :owner ORDER BY id

-- name: budgets_covering
SELECT {budget_columns} FROM budgets
WHERE (scope = 'account' AND scope_id = :account) OR (scope = 'schedule' AND scope_id = :schedule)
ORDER BY scope, scope_id, period {lock:no key update}

-- name: count_budget
UPDATE budgets SET window_start = :window_start, used = :used WHERE id = :id

-- name: stop_holds
-- One writer at a time: nobody else is at it.
SELECT 1

-- name: used_of_account_since
SELECT sum(CASE WHEN state = 'held' THEN amount ELSE spent END) FROM holds
WHERE billing_account_id = :scope_id AND counted_at >= :start

-- name: used_of_schedule_since
SELECT sum(CASE WHEN state = 'held' THEN amount ELSE spent END) FROM holds
WHERE schedule_id = :scope_id AND counted_at >= :start

-- name: save_budget
INSERT INTO budgets ({budget_columns})
VALUES (:id, :owner, :scope, :scope_id, :period, :timezone, :limit_amount, :on_exceeded, :window_start, :used, :created_at)
ON CONFLICT (scope, scope_id, period) DO UPDATE SET
  timezone = excluded.timezone, limit_amount = excluded.limit_amount, on_exceeded = excluded.on_exceeded,
  window_start = excluded.window_start, used = excluded.used
RETURNING {budget_columns}

-- name: delete_budget
DELETE FROM budgets WHERE id = :id
