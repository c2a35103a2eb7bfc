"""An execution: one idempotent call of a graph, which may take several attempts and has one outcome."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from duly.domain.errors import Conflict, InvalidInput, NotFound, Refused
from duly.domain.ids import JobId, PoolName
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.keys import LONGEST_IN_ASCII, in_ascii
from duly.domain.payloads import Payload, json_of, payload_of, value_of
from duly.domain.retries import RetryPolicy
from duly.domain.schedules import LONGEST_ID
from duly.domain.texts import storable_of, text_of, whole_number_of

LEASE = Micros(30 * SECOND)
GRACE = Micros(10 * SECOND)
PATIENCE = Micros(5 * SECOND)
TIMEOUT_MS = 15 * 60_000
LONGEST_TIMEOUT_MS = 24 * 3_600_000
LONGEST_ERROR = 2_000
LONGEST_REVIEW_MS = 366 * 86_400_000
DEFAULT_MODEL = "default"
TOMBSTONE = ""
"""The hash of a request that nobody has made yet, and whose execution is cancelled already."""
GRAPH_RUN = "graph.run"
"""The kind of the job that has a graph executed."""
GRAPH_POOL = PoolName("graphs")
# Under the same key each of them has the same outcome, so they only make up for workers that died.
GRAPH_RETRY = RetryPolicy(max_attempts=5, backoff_ms=1_000)

_KEY = re.compile(rf"[\x21-\x7e]{{1,{LONGEST_IN_ASCII}}}", re.ASCII)
_GRAPH = re.compile(
    r"[a-z][a-z0-9_-]{0,31}:[A-Za-z0-9][A-Za-z0-9_.-]{0,99}(@[A-Za-z0-9][A-Za-z0-9_.-]{0,26})?", re.ASCII
)
_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_MOST_AMOUNT = 10**15


class ExecutionStatus(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"


class OnCrash(StrEnum):
    """What becomes of an execution whose holder has died."""

    RESUME = "resume"  # goes on from its last checkpoint
    RERUN = "rerun"  # starts afresh
    ASK = "ask"  # waits for a person


class WaitsFor(StrEnum):
    REVIEW = "review"  # the graph asked
    CRASH = "crash"  # its holder died, and whoever called it wants to be asked
    CALL_BACK = "call_back"  # an executor elsewhere says how it ended


class Silence(StrEnum):
    """What counts if nobody decides a review in time."""

    APPROVE = "approve"
    REJECT = "reject"
    EDIT = "edit"  # as if somebody had said `review_value`
    FAIL = "fail"


class EventKind(StrEnum):
    TOKEN = "token"  # noqa: S105 - a piece of text
    UPDATE = "update"
    CUSTOM = "custom"
    USAGE = "usage"
    UNMETERED = "unmetered"
    INTERRUPT = "interrupt"
    LOG = "log"


class ErrorCode(StrEnum):
    """Why an execution failed, where no error of Duly's own says it."""

    GRAPH = "graph_error"
    TIMEOUT = "graph_timeout"
    RESULT = "graph_result_invalid"
    LOUD = "graph_too_loud"
    REJECTED = "rejected"
    UNDECIDED = "undecided"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One call of a model, known by `unit` within its attempt. Without figures it is unmetered, never free."""

    unit: str
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def is_metered(self) -> bool:
        return self.model is not None and self.input_tokens is not None and self.output_tokens is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphResult:
    """What a graph answered; one that `waits` asks `output` of a person, and is not over.

    One with `called_back_by` is not over either: somebody else says how it ended, until then.
    """

    output: Any = None
    waits: bool = False
    called_back_by: Instant | None = None


class Reply(NamedTuple):
    """What people answered, by the graph's names for its questions."""

    answers: Mapping[str, Any]

    @property
    def value(self) -> Any:
        """For graphs that ask one thing at a time."""
        return next(reversed(self.answers.values()), None) if self.answers else None  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequest:
    """What is asked for under a key; `max_cost` is in millionths of the account's currency, and is held.

    `schedule_id` is whose budgets count it, besides the account's. What it asks people is to be decided within
    `review_within_ms`; then `review_default` counts.
    """

    key: str
    graph_id: str
    grant_id: str
    input: Mapping[str, Any]
    max_cost: int | None = None
    on_crash: OnCrash = OnCrash.RESUME
    timeout_ms: int = TIMEOUT_MS
    schedule_id: str | None = None
    review_within_ms: int | None = None
    review_default: Silence | None = None
    review_value: Any = None

    def __post_init__(self) -> None:
        execution_key_of(self.key)
        graph_id_of(self.graph_id)
        text_of(self.grant_id, field="grant_id")
        payload_of(dict(self.input), field="input")
        if not isinstance(self.messages, list):
            raise InvalidInput("input.messages", "is not a list", fix="pass a list of messages, or leave it out")
        text_of(self.model, field="input.model", longest=200)
        if self.max_cost is not None:
            whole_number_of(self.max_cost, field="max_cost", least=0, most=_MOST_AMOUNT)
        whole_number_of(self.timeout_ms, field="timeout_ms", least=1, most=LONGEST_TIMEOUT_MS)
        if self.schedule_id is not None:
            text_of(self.schedule_id, field="schedule_id", longest=LONGEST_ID)
        if self.review_within_ms is not None:
            whole_number_of(self.review_within_ms, field="review_within_ms", least=1, most=LONGEST_REVIEW_MS)
        if (self.review_default is Silence.EDIT) != (self.review_value is not None):
            raise InvalidInput(
                "review_value", "goes with the default `edit`, and with no other", fix="give both or neither"
            )
        json_of(self.review_value, field="review_value")

    @property
    def messages(self) -> Any:
        return self.input.get("messages", [])

    @property
    def model(self) -> str:
        return self.input.get("model", DEFAULT_MODEL)  # type: ignore[no-any-return]

    @property
    def written(self) -> Payload:
        """Names in order, so that what asks for the same is written alike."""
        asked = {
            "graph_id": self.graph_id,
            "grant_id": self.grant_id,
            "input": dict(self.input),
            "max_cost": self.max_cost,
            "on_crash": self.on_crash.value,
            "schedule_id": self.schedule_id,
            "timeout_ms": self.timeout_ms,
            **{name: value for name, value in self._terms().items() if value is not None},
        }
        return Payload(json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":")))

    def _terms(self) -> dict[str, Any]:
        """Written only where they are given, so that what was asked without them keeps its hash."""
        return {
            "review_default": None if self.review_default is None else self.review_default.value,
            "review_value": self.review_value,
            "review_within_ms": self.review_within_ms,
        }

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.written.encode()).hexdigest()


def execution_key_of_job(payload: Payload, key: str | None, chain: str) -> str:
    """The key that a job's graph is executed under: the one its params name, else its slot's, else its own chain."""
    return str(value_of(payload).get("key") or (in_ascii(key) if key else chain))


def request_of(key: str, written: Payload) -> ExecutionRequest:
    asked = value_of(written)
    default = asked.get("review_default")
    words = {"on_crash": OnCrash(asked["on_crash"]), "review_default": None if default is None else Silence(default)}
    return ExecutionRequest(key=key, **{**asked, **words})


class Claim(NamedTuple):
    """What an attempt is known by: every write of its own shows the token."""

    key: str
    run_id: str
    attempt: int
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """`ok` is none until it is over. `expires_at` is read by the clock of its era. `spent` is what all attempts have.

    One that waits for a call-back does so until `called_back_by`, and `waiting_job` is the job that goes on then.
    """

    key: str
    request_hash: str
    request: Payload
    graph_id: str
    grant_id: str
    run_id: str
    trace_id: str
    status: ExecutionStatus
    ok: bool | None = None
    error_code: str | None = None
    error_message: str | None = None
    result: Payload | None = None
    waits_for: WaitsFor | None = None
    reply: Payload | None = None
    attempt: int = 1
    token: int
    era: str
    expires_at: Micros
    created_at: Instant
    completed_at: Instant | None = None
    called_back_by: Instant | None = None
    waiting_job: JobId | None = None
    spent: int = field(default=0, compare=False)

    @property
    def claim(self) -> Claim:
        return Claim(self.key, self.run_id, self.attempt, self.token)

    @property
    def is_replied(self) -> bool:
        """Whether it waits no longer: whoever calls next goes on with it."""
        return self.status is ExecutionStatus.WAITING and self.reply is not None

    @property
    def replied(self) -> Reply | None:
        if self.reply is None:
            return None
        answers = value_of(self.reply)["answers"]
        return Reply(answers) if isinstance(answers, dict) and answers else None

    @property
    def is_tombstone(self) -> bool:
        """Whether it was cancelled before its call came."""
        return self.request_hash == TOMBSTONE

    def is_of(self, graph_id: str, grant_id: str) -> bool:
        return (self.graph_id, self.grant_id) == (graph_id, grant_id)

    def frees_in(self, *, era: str, lease_now: Micros, grace: Micros) -> Micros:
        """How long until somebody else may take over; nothing is left of what was counted in another era."""
        return Micros(max(self.expires_at + grace - lease_now, 0)) if era == self.era else Micros(0)


class Ended(NamedTuple):
    """How an attempt ended: `ok` is none if the execution is not over, but waits."""

    ok: bool | None
    error_code: str | None = None
    error_message: str | None = None
    result: Payload | None = None
    called_back_by: Instant | None = None


class ExecutionEvent(NamedTuple):
    """Numbered through all attempts of its run, from 1 on."""

    run_id: str
    seq: int
    attempt: int
    at: Instant
    kind: EventKind
    data: Payload


def failed(code: str, message: str) -> Ended:
    """Bounded, and only characters that both databases keep; a code that is none is the graph's own fault."""
    code = code if _CODE.fullmatch(code) else ErrorCode.GRAPH
    text = message.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    return Ended(ok=False, error_code=code, error_message=text[:LONGEST_ERROR])


def ended_with(result: GraphResult) -> Ended:
    """A result that is no JSON, or too much of it, is a failure that says so."""
    if result.called_back_by is not None:
        return Ended(ok=None, called_back_by=result.called_back_by)
    try:
        output = json_of(result.output, field="result")
    except (InvalidInput, RecursionError) as error:
        return failed(ErrorCode.RESULT, f"the graph's result cannot be kept: {error}")
    return Ended(ok=None if result.waits else True, result=output)


def execution_key_of(value: object) -> str:
    if not isinstance(value, str) or _KEY.fullmatch(value) is None:
        raise InvalidInput("Idempotency-Key", "is not a key", fix="use 1 to 255 visible ASCII characters, no spaces")
    return value


def graph_id_of(value: object) -> str:
    if not isinstance(value, str) or _GRAPH.fullmatch(value) is None:
        raise InvalidInput("graph_id", f"{ascii(value)[:60]} is no graph", fix="name it as provider:name or …@version")
    return value


def reason_of(value: object) -> str:
    return storable_of(value, field="reason", longest=1_000)


class UnknownGraph(NotFound):
    code = "unknown_graph"

    def __init__(self, graph_id: str) -> None:
        super().__init__(f"there is no graph {graph_id!r} here")
        self.graph_id = graph_id


class UnknownExecution(NotFound):
    code = "unknown_execution"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"there is no execution {run_id!r}")
        self.run_id = run_id


class LeaseLost(Refused):
    """Somebody else may have taken over: this attempt must spend nothing more."""

    code = "execution_lease_lost"

    def __init__(self, run_id: str, attempt: int) -> None:
        super().__init__(f"attempt {attempt} of execution {run_id} lost its lease, and may have been taken over")
        self.run_id = run_id
        self.attempt = attempt


class GraphFailed(Conflict):
    """The graph ran and did not succeed; `error_code` is kept as the execution's."""

    code = "graph_failed"

    def __init__(self, message: str, *, error_code: str = ErrorCode.GRAPH) -> None:
        super().__init__(message)
        self.error_code = error_code
