"""What must hold in the tables at every commit, whatever was done: looked up in plain SQL, apart from the stores."""

from collections.abc import Awaitable, Callable
from typing import Any

Rows = Callable[[str], Awaitable[list[tuple[Any, ...]]]]

_IS_HEAD = "state NOT IN ('scheduled', 'waiting')"

LAWS = {
    "a lane has two heads": f"SELECT lane, count(*) FROM jobs WHERE lane IS NOT NULL AND {_IS_HEAD} "
    "GROUP BY lane HAVING count(*) > 1",
    "a lane is dead: jobs wait and there is no head": "SELECT DISTINCT lane FROM jobs w WHERE state = 'waiting' "
    f"AND NOT EXISTS (SELECT 1 FROM jobs h WHERE h.lane = w.lane AND h.{_IS_HEAD})",
    "a job waits without a lane": "SELECT id FROM jobs WHERE state = 'waiting' AND lane IS NULL",
    "an unclaimed head has a better job behind it": "SELECT h.lane, h.id, w.id FROM jobs h JOIN jobs w "
    "ON w.lane = h.lane AND w.state = 'waiting' AND h.state IN ('ready', 'parked') "
    "AND (w.rank, w.position, w.created_at, w.id) < (h.rank, h.position, h.created_at, h.id)",
    "a job is both live and finished": "SELECT id FROM jobs WHERE id IN (SELECT id FROM finished_jobs)",
    "a key is held twice": "SELECT key FROM jobs WHERE key IS NOT NULL GROUP BY key HAVING count(*) > 1",
    "a session counts other runs than it has": "SELECT id, busy FROM sessions s WHERE busy <> "
    "(SELECT count(*) FROM jobs WHERE jobs.session = s.id AND state = 'running')",
    "a session runs more than it can": "SELECT id FROM sessions WHERE busy > capacity",
    "a job belongs to a session that is gone": "SELECT id FROM jobs WHERE session IS NOT NULL "
    "AND session NOT IN (SELECT id FROM sessions)",
    "a ticket belongs to a session that is gone": "SELECT id FROM tickets "
    "WHERE session NOT IN (SELECT id FROM sessions)",
    "a chain has two live ends": "SELECT chain FROM jobs GROUP BY chain HAVING count(*) > 1",
    "a job names a ledger row that is not there": "SELECT id FROM jobs WHERE ledger_run IS NOT NULL "
    "AND ledger_run NOT IN (SELECT id FROM schedule_runs)",
    "a live job's ledger row has ended": "SELECT j.id, r.status FROM jobs j JOIN schedule_runs r "
    "ON r.id = j.ledger_run WHERE r.status NOT IN ('pending', 'running')",
    "a job runs and its ledger row does not": "SELECT j.id FROM jobs j JOIN schedule_runs r "
    "ON r.id = j.ledger_run WHERE j.state = 'running' AND r.status <> 'running'",
    "a ledger row runs that never started": "SELECT id FROM schedule_runs WHERE status = 'running' "
    "AND started_at IS NULL",
    "a ledger row waits for a job that is gone": "SELECT id FROM schedule_runs r WHERE job_id IS NOT NULL "
    "AND status IN ('pending', 'running') AND (SELECT count(*) FROM jobs j WHERE j.ledger_run = r.id) <> 1",
    "a group counts other open members than it has": "SELECT id, open FROM job_groups g WHERE open <> "
    "(SELECT count(*) FROM group_members m WHERE m.group_id = g.id AND m.state IN ('pending', 'live'))",
    "a group has ended before its members, or after them": "SELECT id, status FROM job_groups "
    "WHERE (status = 'RUNNING') <> (open > 0)",
    "a live member has no live job, or two": "SELECT id FROM group_members m WHERE state = 'live' "
    "AND (SELECT count(*) FROM jobs j WHERE j.member = m.id) <> 1",
    "a member that is not live has a live job": "SELECT m.id FROM group_members m JOIN jobs j ON j.member = m.id "
    "WHERE m.state <> 'live'",
    "a sequence runs two members at once": "SELECT g.id FROM job_groups g JOIN group_members m ON m.group_id = g.id "
    "WHERE g.mode = 'sequential' AND m.state = 'live' GROUP BY g.id HAVING count(*) > 1",
    "a sequence stands still": "SELECT id FROM job_groups g WHERE status = 'RUNNING' "
    "AND NOT EXISTS (SELECT 1 FROM group_members m WHERE m.group_id = g.id AND m.state = 'live')",
    "a member ended otherwise than its last job": "SELECT m.id, m.state, f.status FROM group_members m "
    "JOIN finished_jobs f ON f.id = m.last_job WHERE m.state <> f.status",
    "an attempt beyond the policy": "SELECT id FROM jobs WHERE attempt > max_attempts "
    "UNION ALL SELECT id FROM finished_jobs WHERE attempt > max_attempts",
}

MONEY = {
    "an execution that is over still holds money": "SELECT e.run_id FROM execution_requests e JOIN holds h "
    "USING (run_id) WHERE e.status <> 'running' AND h.state = 'held'",
    "an attempt that was taken over still holds money": "SELECT e.run_id FROM execution_requests e JOIN holds h "
    "USING (run_id) WHERE h.attempt < e.attempt AND h.state = 'held'",
    "a review is open whose execution does not wait": "SELECT v.id FROM reviews v JOIN execution_requests e "
    "USING (run_id) WHERE v.state = 'open' AND (e.status <> 'waiting' OR e.reply IS NOT NULL)",
    "an execution waits for nobody": "SELECT run_id FROM execution_requests e WHERE status = 'waiting' "
    "AND reply IS NULL AND called_back_by IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM reviews v WHERE v.run_id = e.run_id AND v.state = 'open')",
    "an execution waits for a call-back that came": "SELECT run_id FROM execution_requests e JOIN dag_runs d "
    "USING (run_id) WHERE e.status = 'waiting' AND e.called_back_by IS NOT NULL AND d.callback <> 'STARTED'",
    "an execution is over and its job sleeps": "SELECT j.id FROM execution_requests e "
    "JOIN jobs j ON j.id = e.waiting_job WHERE e.status = 'done' AND j.state = 'backoff' "
    "AND j.run_at = e.called_back_by AND e.completed_at < j.run_at",
    "money was held for a call that was cancelled before it came": "SELECT run_id FROM execution_requests "
    "JOIN holds USING (run_id) WHERE request_hash = ''",
    "events are numbered with a gap": "SELECT run_id FROM execution_events GROUP BY run_id HAVING max(seq) <> count(*)",
    "an account does not add up": "SELECT id FROM billing_accounts WHERE granted <> available + held + charged "
    "OR available < 0 OR (available > 0 AND overrun > 0)",
    "an account was credited something else": "SELECT id FROM billing_accounts a WHERE granted <> "
    "(SELECT coalesce(sum(amount), 0) FROM credits c WHERE c.billing_account_id = a.id)",
    "an account holds something else": "SELECT id FROM billing_accounts a WHERE held <> "
    "(SELECT coalesce(sum(amount), 0) FROM holds h WHERE h.billing_account_id = a.id AND state = 'held')",
    "an account was charged something else": "SELECT id FROM billing_accounts a WHERE charged + overrun <> "
    "(SELECT coalesce(sum(r.amount), 0) FROM charge_receipts r JOIN holds h USING (run_id, attempt) "
    "WHERE r.billing_account_id = a.id AND h.state <> 'held')",
    "a reference has two receipts": "SELECT run_id, attempt, unit FROM charge_receipts "
    "GROUP BY run_id, attempt, unit HAVING count(*) > 1",
    "a hold counts other receipts than it has": "SELECT run_id, attempt FROM holds h WHERE spent <> "
    "(SELECT coalesce(sum(r.amount), 0) FROM charge_receipts r WHERE r.run_id = h.run_id AND r.attempt = h.attempt) "
    "OR unmetered <> (SELECT count(*) FROM charge_receipts r "
    "WHERE r.run_id = h.run_id AND r.attempt = h.attempt AND r.amount IS NULL)",
    "a budget counts other holds than it has": "SELECT id FROM budgets b WHERE used <> "
    "(SELECT coalesce(sum(CASE WHEN state = 'held' THEN amount ELSE spent END), 0) FROM holds h "
    "WHERE counted_at >= b.window_start AND ((b.scope = 'account' AND b.scope_id = h.billing_account_id) "
    "OR (b.scope = 'schedule' AND b.scope_id = h.schedule_id)))",
}


async def broken_laws(rows: Rows, *, apart_from: frozenset[str] = frozenset()) -> list[str]:
    broken = [
        f"{law}: {found}"
        for law, sql in (LAWS | MONEY).items()
        if law not in apart_from and (found := (await rows(sql))[:5])
    ]
    return broken + await _miscounted_pools(rows)


async def _miscounted_pools(rows: Rows) -> list[str]:
    """Counted here by hand, with no SQL of the store's own."""
    used: dict[str, int] = {}
    waiting: dict[str, int] = {}
    for pool, resources, state in await rows("SELECT pool, resources, state FROM jobs WHERE session IS NOT NULL"):
        extra = resources.split(",") if resources and state == "running" else []
        for name in (pool, *extra):
            used[name] = used.get(name, 0) + 1
    for pool, state in await rows("SELECT pool, state FROM tickets"):
        counts = used if state == "held" else waiting
        counts[pool] = counts.get(pool, 0) + 1
    parked: dict[str, int] = dict(
        await rows("SELECT parked_on, count(*) FROM jobs WHERE state = 'parked' GROUP BY parked_on")
    )
    wrong = []
    for name, counted, tickets, hint in await rows("SELECT name, used, tickets, parked FROM pools"):
        if counted != used.get(name, 0):
            wrong.append(f"pool {name} counts {counted} used, but {used.get(name, 0)} are")
        if tickets != waiting.get(name, 0):
            wrong.append(f"pool {name} counts {tickets} tickets, but {waiting.get(name, 0)} wait")
        if hint == 0 and parked.get(name, 0):
            wrong.append(f"nobody would look for the jobs parked on {name}")
    return wrong
