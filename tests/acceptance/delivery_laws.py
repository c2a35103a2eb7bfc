"""The laws of webhooks, checked from outside: plain SQL on the tables, and the journals of receiver and couriers.

Each law answers its violations, so that a failure names all of them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.acceptance.checker import looked_up
from tests.acceptance.delivery_receiver import Reception

MOST_TRIES = 4
_MESSAGES = """
SELECT d.id, d.event_id, e.url, d.type, d.subject_id, d.state, d.tries, d.claim
FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
"""


class Message(NamedTuple):
    """A delivery as the tables have it, with its endpoint's address."""

    id: str
    event_id: str
    url: str
    type: str
    subject_id: str
    state: str
    tries: int
    claim: str | None


@dataclass(frozen=True, slots=True)
class Told:
    """`ends` are jobs and groups that have ended, by id: the type of event that tells it."""

    ends: dict[str, str]
    events: list[tuple[str, str]]
    messages: list[Message]
    logs: dict[str, list[tuple[int, int | None]]]
    outbox: int


async def told_in(database_url: str) -> Told:
    jobs, live, groups, events, messages, attempts, outbox = await looked_up(
        database_url,
        [
            "SELECT id, status, retry_of FROM finished_jobs",
            "SELECT retry_of FROM jobs",
            "SELECT id, status FROM job_groups WHERE status <> 'RUNNING'",
            "SELECT id, subject_id FROM webhook_events",
            _MESSAGES,
            "SELECT delivery_id, number, status FROM webhook_attempts ORDER BY number",
            "SELECT seq FROM webhook_outbox",
        ],
    )
    retried = {row[2] for row in jobs} | {row[0] for row in live}
    ends = {row[0]: "job.retrying" if row[0] in retried else f"job.{row[1].lower()}" for row in jobs}
    ends |= {row[0]: f"group.{row[1].lower()}" for row in groups}
    logs: dict[str, list[tuple[int, int | None]]] = defaultdict(list)
    for delivery_id, number, status in attempts:
        logs[delivery_id].append((number, status))
    return Told(ends, [(row[0], row[1]) for row in events], [Message(*row) for row in messages], logs, len(outbox))


async def untold_in(database_url: str) -> int:
    """What is in the outbox or on its way."""
    places = ("webhook_outbox", "webhook_deliveries WHERE state = 'pending'")
    counted = await looked_up(database_url, [f"SELECT count(*) FROM {place}" for place in places])
    return sum(rows[0][0] for rows in counted)


def lost_or_doubled(told: Told, wanting: Mapping[str, Iterable[str]]) -> Iterable[str]:
    """What has ended is one event, with one message for each address that wants its type, and nothing else is told."""
    ids = Counter(subject for _, subject in told.events)
    yield from (f"{subject}: {count} ids for one event" for subject, count in ids.items() if count > 1)
    asked = {(subject, kind, url) for subject, kind in told.ends.items() for url in wanting.get(kind, ())}
    found = Counter((each.subject_id, each.type, each.url) for each in told.messages)
    yield from (f"{each}: ended, and not told" for each in sorted(asked - set(found)))
    yield from (f"{each}: told, and nobody asked" for each in sorted(set(found) - asked))
    yield from (f"{each}: {count} messages" for each, count in found.items() if count > 1)


def stuck(told: Told) -> Iterable[str]:
    if told.outbox:
        yield f"{told.outbox} rows are left in the outbox"
    yield from (f"left behind: {each}" for each in told.messages if each.state == "pending" or each.claim)


def not_as_logged(told: Told, received: Sequence[Reception]) -> Iterable[str]:
    """Whatever the log says was so answered, was; nothing is tried more often than it may, and its last try decides."""
    arrivals = _by_message(told, received)
    known = {(each.url, each.event_id) for each in told.messages}
    for each in received:
        if not any(url.endswith(each.path) and event_id == each.webhook_id for url, event_id in known):
            yield f"{each.webhook_id} at {each.path}: received, and unknown"
    for message in told.messages:
        log, arrived = told.logs[message.id], arrivals[message.id]
        statuses = [status for _, status in log]
        if not arrived:
            yield f"{message}: never received"
        if len({each.body for each in arrived}) > 1:
            yield f"{message}: its body changed from one call to the next"
        if [number for number, _ in log] != list(range(1, len(log) + 1)) or len(log) > MOST_TRIES:
            yield f"{message}: tried {log}"
        if message.tries != len(log):
            yield f"{message}: {message.tries} tries, {len(log)} in its log"
        answered = Counter(each.status for each in arrived)
        if Counter(status for status in statuses if status is not None) - answered:
            yield f"{message}: the log says {statuses}, its receiver {answered}"
        is_good = bool(statuses) and 200 <= (statuses[-1] or 0) < 300
        if is_good is not (message.state == "delivered") or (not is_good and len(log) != MOST_TRIES):
            yield f"{message}: {statuses}"


def repeated_without_a_kill(
    told: Told, received: Sequence[Reception], killed: Iterable[int], notes: Iterable[Mapping[str, Any]]
) -> Iterable[str]:
    """A call that is in no log was cut: its courier was killed between sending and recording, or outlived its claim."""
    dead = set(killed)
    noted = Counter((each["event"], each["pid"], each["delivery"]) for each in notes if "delivery" in each)
    for message_id, arrived in _by_message(told, received).items():
        calls = Counter(each.pid for each in arrived)
        cut = sum(noted["late", pid, message_id] for pid in calls)
        cut += sum(max(calls[pid] - noted["recorded", pid, message_id], 0) for pid in calls if pid in dead)
        if len(arrived) - len(told.logs[message_id]) > cut:
            yield f"{message_id}: received {len(arrived)} times, logged {told.logs[message_id]}, cut {cut} times"


def surplus(told: Told, received: Sequence[Reception]) -> int:
    """How many calls were made that no log has."""
    return sum(
        max(len(arrived) - len(told.logs[message_id]), 0) for message_id, arrived in _by_message(told, received).items()
    )


def recoveries(
    told: Told, received: Sequence[Reception], deaths: Mapping[int, float], claimed: Iterable[Mapping[str, Any]]
) -> dict[str, float]:
    """For each message that a killed courier held, the seconds until it was received again.

    Where the next to hold it was killed, too, it counts from that kill.
    """
    arrivals = _by_message(told, received)
    held: dict[str, list[float]] = defaultdict(list)
    for claim in claimed:
        if claim["pid"] in deaths:
            held[claim["delivery"]].append(deaths[claim["pid"]])
    times: dict[str, float] = {}
    for message_id, died in held.items():
        for at in (each.at for each in arrivals[message_id]):
            before = [each for each in died if each < at]
            # The first call after a kill: what comes later has waited for something else.
            if before and not any(max(before) < each.at < at for each in arrivals[message_id]):
                times[f"{message_id} at {at}"] = at - max(before)
    return times


def _by_message(told: Told, received: Sequence[Reception]) -> dict[str, list[Reception]]:
    arrivals: dict[tuple[str, str], list[Reception]] = defaultdict(list)
    for each in received:
        arrivals[each.path, each.webhook_id].append(each)
    return {each.id: arrivals["/" + each.url.rpartition("/")[2], each.event_id] for each in told.messages}
