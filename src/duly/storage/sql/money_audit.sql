-- What an audit of money reads: sums made anew from what was appended.

-- fragment: recorded_sums
(SELECT coalesce(sum(c.amount), 0) FROM credits c WHERE c.billing_account_id = a.id),
(SELECT coalesce(sum(h.amount), 0) FROM holds h WHERE h.billing_account_id = a.id AND h.state = 'held'),
(SELECT coalesce(sum(r.amount), 0) FROM charge_receipts r JOIN holds h ON h.run_id = r.run_id AND h.attempt = r.attempt
    WHERE r.billing_account_id = a.id AND h.state <> 'held')

-- name: recorded_money
SELECT {account_columns}, {recorded_sums}
FROM billing_accounts a WHERE id > :after ORDER BY id LIMIT :most

-- name: recorded_money_of_owner
SELECT {account_columns}, {recorded_sums}
FROM billing_accounts a WHERE owner_user_id = :owner AND id > :after ORDER BY id LIMIT :most

-- name: doubled_receipts
SELECT source_reference, count(*) FROM charge_receipts WHERE billing_account_id = :account
GROUP BY source_reference HAVING count(*) > 1 ORDER BY source_reference LIMIT :most

-- name: miscounted_holds
SELECT h.run_id, h.attempt, h.spent, h.unmetered, coalesce(sum(r.amount), 0), count(r.id) - count(r.amount)
FROM holds h LEFT JOIN charge_receipts r ON r.run_id = h.run_id AND r.attempt = h.attempt
WHERE h.billing_account_id = :account
GROUP BY h.run_id, h.attempt, h.spent, h.unmetered
HAVING h.spent <> coalesce(sum(r.amount), 0) OR h.unmetered <> count(r.id) - count(r.amount)
ORDER BY h.run_id, h.attempt LIMIT :most

-- name: receipts_astray
-- Without their hold, or at the cost of another account than it.
SELECT r.source_reference FROM charge_receipts r
LEFT JOIN holds h ON h.run_id = r.run_id AND h.attempt = r.attempt
WHERE r.billing_account_id = :account AND (h.run_id IS NULL OR h.billing_account_id <> r.billing_account_id)
ORDER BY r.source_reference LIMIT :most

-- name: budgets_of_account
-- And those of the schedules that it pays for.
SELECT {budget_columns} FROM budgets b
WHERE (scope = 'account' AND scope_id = :account) OR (scope = 'schedule' AND EXISTS
  (SELECT 1 FROM holds h WHERE h.schedule_id = b.scope_id AND h.billing_account_id = :account))
ORDER BY scope, scope_id, period

-- name: orphaned_holds
SELECT run_id, attempt, amount FROM holds
WHERE billing_account_id = :account AND state = 'held' AND held_at <= :held_before
  AND (expires_at <= :lease_before OR era <> :era)
ORDER BY run_id, attempt LIMIT :most
