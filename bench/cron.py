"""How fast Duly finds the next fire, beside cronsim, croniter and APScheduler, in alternating pairs.

Three patterns, the same instants for all:

- `next`: the expression's text, its zone and an instant, given anew each time, at random instants over four
  years. This is a scheduler's pattern. Duly remembers the reading of a text; the peers read it each time.
- `next, parsed`: the same with a parsed expression kept by all who can; cronsim has no such form.
- `walk`: one fire after another from one instant.

Only the ratios of a pair count. Time is CPU time: the work is nothing else, and neighbours distort it less.
"""

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from itertools import islice
from statistics import median
from time import process_time
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger
from croniter import croniter
from cronsim import CronSim

import duly

ROUNDS = 7
PEERS = ("cronsim", "croniter", "apscheduler")
EXPRESSIONS = (
    "* * * * *",
    "*/15 * * * *",
    "0 9 * * 1-5",
    "30 2 * * *",
    "0 0 29 2 *",
    "0 0 L * *",
    "15 10 * * MON#2",
    "*/10 * * * * *",
    "30 15 4 * * *",
)
ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe")
START = datetime(2024, 1, 1, tzinfo=UTC)
FOUR_YEARS_SECONDS = 4 * 365 * 86_400
OURS_PER_ROUND, THEIRS_PER_ROUND, WALKED = 600, 60, 100

Work = Callable[[], int]


def run(rounds: int = ROUNDS) -> dict[str, object]:
    """Every pair's median ratio (peer's time over ours), and the medians over all pairs."""
    rows: list[dict[str, object]] = [
        {"expr": expr, "tz": tz, **{pattern: _pattern(pattern, expr, tz, rounds) for pattern in PATTERNS}}
        for expr in EXPRESSIONS
        for tz in ZONES
    ]
    summary = {pattern: {peer: _summary(rows, pattern, peer) for peer in PEERS} for pattern in PATTERNS}
    versions = {name: version(name) for name in ("duly", *PEERS, "tzdata")}
    return {"rounds": rounds, "versions": versions, "summary": summary, "rows": rows}


def _pattern(pattern: str, expr: str, tz: str, rounds: int) -> dict[str, dict[str, float]]:
    ours = PATTERNS[pattern]("duly", expr, tz)
    assert ours is not None
    _same_fire(expr, tz)
    ours()  # the first call surveys the zone; a scheduler pays that once a year
    found = {}
    for peer in PEERS:
        theirs = PATTERNS[pattern](peer, expr, tz)
        if theirs is not None:
            pairs = [(_microseconds(ours), _microseconds(theirs)) for _ in range(rounds)]
            found[peer] = {
                "ours_us": round(median(pair[0] for pair in pairs), 2),
                "theirs_us": round(median(pair[1] for pair in pairs), 2),
                "ratio": round(median(theirs / ours for ours, theirs in pairs), 1),
            }
    return found


def _same_fire(expr: str, tz: str) -> None:
    """All four must do the same work: away from clock changes they find the same fire."""
    zone = ZoneInfo(tz)
    after = datetime(2025, 6, 11, 10, 20, 33, tzinfo=zone)
    fires = {
        duly.cron(expr, tz).next_after(after),
        next(CronSim(expr, after)),
        croniter(_croniter_text(expr), after, second_at_beginning=True).get_next(datetime),
        CronTrigger(**_apscheduler_fields(expr), timezone=zone).get_next_fire_time(None, after),
    }
    assert len(fires) == 1, (expr, tz, fires)


def _next(who: str, expr: str, tz: str) -> Work | None:
    zone, drawn = ZoneInfo(tz), _instants()
    local = [instant.astimezone(zone) for instant in drawn[:THEIRS_PER_ROUND]]
    trigger = _apscheduler_fields(expr)

    def ours() -> int:
        for instant in drawn:
            duly.cron(expr, tz).next_after(instant)
        return len(drawn)

    def by_cronsim() -> int:
        for instant in local:
            next(CronSim(expr, instant))
        return len(local)

    def by_croniter() -> int:
        for instant in local:
            croniter(_croniter_text(expr), instant, second_at_beginning=True).get_next(datetime)
        return len(local)

    def by_apscheduler() -> int:
        for instant in local:
            CronTrigger(**trigger, timezone=zone).get_next_fire_time(None, instant)
        return len(local)

    works = {"duly": ours, "cronsim": by_cronsim, "croniter": by_croniter, "apscheduler": by_apscheduler}
    return works[who]


def _next_parsed(who: str, expr: str, tz: str) -> Work | None:
    zone, drawn = ZoneInfo(tz), _instants()
    local = [instant.astimezone(zone) for instant in drawn[:THEIRS_PER_ROUND]]
    cadence = duly.cron(expr, tz)
    kept = croniter(_croniter_text(expr), START.astimezone(zone), second_at_beginning=True)
    trigger = CronTrigger(**_apscheduler_fields(expr), timezone=zone)

    def ours() -> int:
        for instant in drawn:
            cadence.next_after(instant)
        return len(drawn)

    def by_croniter() -> int:
        for instant in local:
            kept.get_next(datetime, start_time=instant)
        return len(local)

    def by_apscheduler() -> int:
        for instant in local:
            trigger.get_next_fire_time(None, instant)
        return len(local)

    return {"duly": ours, "croniter": by_croniter, "apscheduler": by_apscheduler}.get(who)


def _walk(who: str, expr: str, tz: str) -> Work | None:
    zone = ZoneInfo(tz)
    count = 5 if expr == "0 0 29 2 *" else WALKED
    start = START.astimezone(zone)

    def ours() -> int:
        return sum(1 for _ in islice(duly.cron(expr, tz).after(START), count))

    def by_cronsim() -> int:
        return sum(1 for _ in islice(CronSim(expr, start), count))

    def by_croniter() -> int:
        fires = croniter(_croniter_text(expr), start, ret_type=datetime, second_at_beginning=True)
        return sum(1 for _ in islice(fires, count))

    def by_apscheduler() -> int:
        trigger, fire = CronTrigger(**_apscheduler_fields(expr), timezone=zone), start
        for _ in range(count):
            fire = trigger.get_next_fire_time(fire, fire + timedelta(microseconds=1))
        return count

    works = {"duly": ours, "cronsim": by_cronsim, "croniter": by_croniter, "apscheduler": by_apscheduler}
    return works[who]


PATTERNS: dict[str, Callable[[str, str, str], Work | None]] = {
    "next": _next,
    "next, parsed": _next_parsed,
    "walk": _walk,
}


def _instants() -> list[datetime]:
    dice = random.Random(2024)
    return [START + timedelta(seconds=dice.randrange(FOUR_YEARS_SECONDS)) for _ in range(OURS_PER_ROUND)]


def _microseconds(work: Work) -> float:
    began = process_time()
    count = work()
    return (process_time() - began) * 1e6 / count


def _croniter_text(expr: str) -> str:
    return expr.lower()


def _apscheduler_fields(expr: str) -> dict[str, str]:
    """The same times in APScheduler's words: Monday is 0 there, and the last and nth days are written out."""
    second, minute, hour, day, month, weekday = ["0", *expr.split()][-6:]
    if weekday == "MON#2":
        day, weekday = "2nd mon", "*"
    return {
        "second": second,
        "minute": minute,
        "hour": hour,
        "day": "last" if day == "L" else day,
        "month": month,
        "day_of_week": "mon-fri" if weekday == "1-5" else weekday,
    }


def _summary(rows: list[dict[str, object]], pattern: str, peer: str) -> dict[str, float] | None:
    ratios = sorted(found[peer]["ratio"] for row in rows if isinstance(found := row[pattern], dict) and peer in found)
    if not ratios:
        return None
    return {"lowest": ratios[0], "median": median(ratios), "highest": ratios[-1]}


def table(report: dict[str, object]) -> str:
    """The ratios as text: how many times faster Duly is."""
    lines = [f"{'expression':<18}{'zone':<21}{'pattern':<14}{'us':>6}" + "".join(f"{p:>13}" for p in PEERS)]
    rows = report["rows"]
    assert isinstance(rows, list)
    for row in rows:
        for pattern in PATTERNS:
            found = row[pattern]
            ours = median(pair["ours_us"] for pair in found.values())
            ratios = "".join(f"{found[p]['ratio']:>12.1f}x" if p in found else f"{'-':>13}" for p in PEERS)
            lines.append(f"{row['expr']:<18}{row['tz']:<21}{pattern:<14}{ours:>6.2f}{ratios}")
    return "\n".join(lines)


if __name__ == "__main__":
    measured = run()
    print(table(measured))
    print(json.dumps({key: measured[key] for key in ("rounds", "versions", "summary")}, indent=2))
