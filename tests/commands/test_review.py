"""`duly review` on both stores."""

import asyncio
import json

import pytest

from duly.bootstrap import Queue, Settings
from duly.domain.reviews import Review
from duly.wire.reviews import Review as Shape
from tests.commands.conftest import Shell
from tests.http.site import waiting_review


@pytest.fixture
def review(shell: Shell, database_url: str) -> Review:
    """Of a run that waits."""
    shell("db", "migrate")

    async def waiting() -> Review:
        queue = await Queue.open(Settings(database_url=database_url))
        try:
            return await waiting_review(queue)
        finally:
            await queue.close()

    return asyncio.run(waiting())


def test_a_review_is_listed_shown_and_approved(shell: Shell, review: Review) -> None:
    (listed,) = json.loads(shell("review", "list", "--json").out)["items"]
    assert set(listed) == set(Shape.model_fields)
    assert review.id in shell("review", "list").out
    assert '{"publish":"news"}' in shell("review", "show", review.id).out
    assert shell("review", "approve", review.id, "--dry-run").code == 0

    said = shell("review", "approve", review.id, "--note", "fine", "--by", "ann")

    assert (said.code, said.out) == (0, f"{review.id} is approved; its run goes on when nothing else is open\n")
    shown = json.loads(shell("review", "show", review.id, "--json").out)
    assert (shown["state"], shown["note"], shown["decided_by"]) == ("approved", "fine", "ann")
    assert "no reviews are open" in shell("review", "list").err
    assert review.id in shell("review", "list", "--state", "any").out


def test_what_is_decided_stays_so_and_the_shell_says_by_whom(shell: Shell, review: Review) -> None:
    assert shell("review", "reject", review.id, "--by", "ann").out == f"{review.id} is rejected; its run ends\n"

    late = shell("review", "approve", review.id)

    assert late.code == 4
    assert "was rejected by ann" in late.err


def test_an_edit_is_json(shell: Shell, review: Review) -> None:
    assert shell("review", "edit", review.id, "yes").code == 2
    edited = json.loads(shell("review", "edit", review.id, '{"publish": false}', "--json").out)

    assert (edited["state"], edited["value"]) == ("edited", {"publish": False})
    assert edited["decided_by"]


def test_a_review_that_is_not_there_is_said_to_be_so(shell: Shell) -> None:
    shell("db", "migrate")

    said = shell("review", "show", "review_0")

    assert said.code == 3
    assert "duly review list" in said.err
