"""The machine's clocks and dice keep what the ports promise."""

import asyncio
import time
from pathlib import Path

import pytest

from duly.domain.instants import Micros
from duly.system.clock import UNKNOWN_BOOT, SystemClock, _ask_kernel, _read_boot_id
from duly.system.dice import SystemDice

pytestmark = pytest.mark.req("CON-001")


def test_ids_sort_in_the_order_they_were_drawn_even_within_a_millisecond() -> None:
    dice = SystemDice()
    ids = [dice.new_id("job") for _ in range(50_000)]

    assert ids == sorted(set(ids))
    assert ids[0].startswith("job_")
    assert len(ids[0]) == len("job_") + 32


def test_fractions_lie_between_zero_and_one() -> None:
    assert all(0 <= SystemDice().fraction() < 1 for _ in range(1_000))


def test_secrets_are_long_differ_and_are_safe_in_a_url() -> None:
    secrets = [SystemDice().secret() for _ in range(1_000)]

    assert len(set(secrets)) == 1_000
    assert all(len(secret) == 43 and secret.isascii() for secret in secrets)
    assert not {
        character for secret in secrets for character in secret if not (character.isalnum() or character in "-_")
    }


def test_the_lease_clock_moves_forward_and_wall_time_is_the_machines() -> None:
    clock = SystemClock()
    readings = [clock.lease_now() for _ in range(1_000)]

    assert readings == sorted(readings)
    assert abs(clock.now() - time.time_ns() // 1_000) < 1_000_000


def test_sleep_lasts_at_least_as_long_as_asked() -> None:
    clock = SystemClock()
    before = clock.lease_now()
    asyncio.run(clock.sleep(Micros(3_000)))

    assert clock.lease_now() - before >= 3_000
    asyncio.run(clock.sleep(Micros(-5)))


def test_the_era_names_this_boot_and_falls_back_to_a_word() -> None:
    assert SystemClock().era == SystemClock().era != ""
    assert _read_boot_id(Path("/nonexistent/boot_id")) == UNKNOWN_BOOT
    assert _ask_kernel("no.such.name") == UNKNOWN_BOOT
