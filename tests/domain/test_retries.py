"""Retry policies: three attempts unless said otherwise, and a wait that doubles up to its cap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.domain.errors import InvalidInput
from duly.domain.retries import DAY_MS, NO_RETRY, RetryPolicy

POLICIES = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 1_000),
    backoff_ms=st.integers(0, DAY_MS),
    backoff_cap_ms=st.integers(0, 30 * DAY_MS),
)
FRACTIONS = st.floats(0, 1, exclude_max=True)


@pytest.mark.req("DEC-007")
def test_a_job_is_tried_three_times_in_all_by_default() -> None:
    assert RetryPolicy().max_attempts == 3
    assert NO_RETRY.max_attempts == 1


@pytest.mark.req("DEC-007")
def test_the_wait_doubles_up_to_its_cap() -> None:
    policy = RetryPolicy(backoff_ms=1_000, backoff_cap_ms=5_000)

    waits = [policy.wait_after(attempt, fraction=0.0) for attempt in range(1, 6)]

    assert waits == [1_000_000, 2_000_000, 4_000_000, 5_000_000, 5_000_000]


@pytest.mark.req("DEC-007")
@given(POLICIES, st.integers(1, 1_000), FRACTIONS)
def test_a_wait_stays_within_its_bounds(policy: RetryPolicy, attempt: int, fraction: float) -> None:
    wait = policy.wait_after(attempt, fraction=fraction)
    longest = min(policy.backoff_ms << min(attempt - 1, 32), policy.backoff_cap_ms) * 1_000

    assert longest * 0.9 - 1 <= wait <= longest


@given(POLICIES, st.integers(1, 999))
def test_a_later_wait_is_never_shorter(policy: RetryPolicy, attempt: int) -> None:
    assert policy.wait_after(attempt + 1, fraction=0.5) >= policy.wait_after(attempt, fraction=0.5)


@pytest.mark.req("DEC-007", error=True)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_attempts", 0),
        ("max_attempts", 1_001),
        ("max_attempts", True),
        ("backoff_ms", -1),
        ("backoff_ms", DAY_MS + 1),
        ("backoff_cap_ms", 1.5),
        ("backoff_cap_ms", 30 * DAY_MS + 1),
    ],
)
def test_a_policy_out_of_bounds_is_refused(field: str, value: int) -> None:
    with pytest.raises(InvalidInput, match=field):
        RetryPolicy(**{field: value})
