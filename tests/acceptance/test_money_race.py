"""Many processes on one account: of a hundred runs on a balance for one, exactly one passes."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from duly.bootstrap import Queue
from duly.domain.billing import Balance
from duly.settings import Settings

ROOT = Path(__file__).parents[2]
AMOUNT = 1_000


async def _account(database_url: str) -> str:
    queue = await Queue.open(Settings(database_url=database_url))
    try:
        account = await queue.accounts.create(owner="ann", name="main")
        await queue.accounts.credit(account.id, amount=AMOUNT, key="first")
        return account.id
    finally:
        await queue.close()


async def _looked_at(database_url: str, account_id: str) -> tuple[Balance, bool]:
    queue = await Queue.open(Settings(database_url=database_url))
    try:
        report = await queue.money_audit.report()
        return (await queue.accounts.get(account_id, owner=None)).balance, report["totals"]["laws_hold"]
    finally:
        await queue.close()


def _spender(database_url: str, account_id: str, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.acceptance.spender", database_url, account_id, str(AMOUNT), name, "25"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.req("GRAPH-06", error=True)
def test_of_a_hundred_runs_in_four_processes_on_a_balance_for_one_exactly_one_passes(database_url: str) -> None:
    account_id = asyncio.run(_account(database_url))
    spenders = [_spender(database_url, account_id, f"s{n}") for n in range(4)]
    try:
        for spender in spenders:
            assert spender.stdout is not None
            assert spender.stdout.readline() == "ready\n"
        passed = [int(spender.communicate(timeout=60)[0]) for spender in _told_to_go(spenders)]
    finally:
        for spender in spenders:
            spender.kill()
            spender.wait()

    balance, laws_hold = asyncio.run(_looked_at(database_url, account_id))
    assert sorted(passed) == [0, 0, 0, 1]
    assert balance == Balance(granted=AMOUNT, available=0, held=AMOUNT, charged=0, overrun=0)
    assert laws_hold


def _told_to_go(spenders: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    """All of them, before the first is waited for."""
    for spender in spenders:
        assert spender.stdin is not None
        spender.stdin.write("go\n")
        spender.stdin.flush()
    return spenders
