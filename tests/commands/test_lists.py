"""Lists, page by page, whichever noun is listed and however `--after` is spelled."""

import json
from itertools import chain

import pytest

from tests.commands.conftest import Shell


def page(shell: Shell, *arguments: str) -> tuple[list[str], str | None]:
    said = shell(*arguments, "--json")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    return [each.get("id") or each["name"] for each in told["items"]], told["next_cursor"]


def every_page(shell: Shell, *arguments: str, most: int) -> list[list[str]]:
    pages, cursor = [], None
    while True:
        found, cursor = page(shell, *arguments, "--most", str(most), *(["--after", cursor] if cursor else []))
        pages.append(found)
        if cursor is None:
            return pages


@pytest.mark.parametrize(
    ("noun", "made_by"),
    [
        ("token", ("token", "add", "--name", "{}")),
        ("account", ("account", "add", "{}")),
        ("pool", ("pool", "set", "pool-{}", "--slots", "1")),
        ("template", ("template", "add", "mould-{}", "--kind", "send")),
        ("job", ("job", "put", "send-{}")),
        ("schedule", ("schedule", "add", "every-{}", "--every", "1h", "--target", "send", "--yes")),
    ],
)
def test_pages_put_together_are_the_list(shell: Shell, noun: str, made_by: tuple[str, ...]) -> None:
    for number in range(3):
        assert shell(*(word.format(number) for word in made_by)).code == 0
    whole, cursor = page(shell, noun, "list")
    assert len(whole) >= 3
    assert cursor is None

    pages = every_page(shell, noun, "list", most=2)

    assert list(chain(*pages)) == whole
    assert len(pages) >= 2


def test_people_are_told_where_the_next_page_begins(shell: Shell) -> None:
    for name in ("ann", "bob"):
        shell("account", "add", name)
    (first,), cursor = page(shell, "account", "list", "--most", "1")

    said = shell("account", "list", "--most", "1")

    assert first == cursor
    assert said.err == f"there may be more: --after {first}\n"
    assert shell("account", "list", "--after", first).err == ""


@pytest.mark.parametrize(
    ("noun", "option", "last"),
    [
        ("run", "--before", "run_0"),
        ("review", "--before", "review_0"),
        ("job", "--from", "job_0"),
        ("group", "--from", "grp_0"),
    ],
)
def test_what_after_was_called_before_is_understood(shell: Shell, noun: str, option: str, last: str) -> None:
    shell("db", "migrate")

    assert shell(noun, "list", option, last).code == shell(noun, "list", "--after", last).code == 0
    assert option not in shell(noun, "list", "--help").out


@pytest.mark.parametrize("option", ["--after", "--before"])
def test_a_page_begins_behind_an_id_and_nothing_else(here: Shell, option: str) -> None:
    said = here("run", "list", option, "nonsense")

    assert (said.code, said.out) == (2, "")
    assert "'nonsense' is none that the list names" in said.err


def test_the_runs_of_a_schedule_go_on_behind_a_run(shell: Shell) -> None:
    shell("schedule", "add", "hourly", "--every", "1h", "--target", "send", "--yes")
    span = ("--from", "2026-03-01T00:00:00Z", "--to", "2026-03-01T05:30:00Z")
    assert shell("schedule", "backfill", "hourly", *span, "--yes").code == 0
    whole, _ = page(shell, "schedule", "runs", "hourly")

    pages = every_page(shell, "schedule", "runs", "hourly", most=2)
    _, cursor = page(shell, "schedule", "runs", "hourly", "--most", "2")

    assert list(chain(*pages)) == whole
    assert pages[1] == page(shell, "schedule", "runs", "hourly", "--most", "2", "--before", str(cursor))[0]


def test_a_statement_goes_on_where_its_page_ended(shell: Shell) -> None:
    account = json.loads(shell("account", "add", "ann", "--json").out)["id"]
    for key in ("one", "two", "three"):
        assert shell("account", "credit", account, "1.00", "--key", key).code == 0

    pages = every_page(shell, "account", "statement", account, most=2)

    assert [len(each) for each in pages] in ([2, 1], [2, 1, 0])
    assert len(set(chain(*pages))) == 3
    assert shell("account", "statement", account, "--after", "nonsense").code == 2
