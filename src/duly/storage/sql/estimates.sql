-- What past runs have cost.

-- name: past_costs
-- Of the newest holds of a schedule that have ended, run by run.
SELECT count(*), sum(spent), sum(unmetered), currency
FROM (SELECT h.run_id, sum(h.spent) AS spent, max(CASE WHEN h.unmetered > 0 THEN 1 ELSE 0 END) AS unmetered, a.currency
      FROM (SELECT run_id, billing_account_id, spent, unmetered FROM holds
            WHERE schedule_id = :schedule_id AND schedule_id IS NOT NULL AND state <> 'held'
            ORDER BY counted_at DESC LIMIT :most) h
      JOIN billing_accounts a ON a.id = h.billing_account_id
      GROUP BY h.run_id, a.currency) AS runs
GROUP BY currency ORDER BY currency
