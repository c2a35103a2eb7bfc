"""What Duly does when told nothing, and what it refuses to be told."""

from dataclasses import fields
from pathlib import Path

import pytest

from duly import InvalidInput
from duly.application.pace import Pace
from duly.domain.instants import Micros
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.settings import Settings, all_problems, settings_from


@pytest.mark.req("CON-001")
@pytest.mark.req("DEC-002")
def test_told_nothing_it_uses_one_file_in_this_folder() -> None:
    assert settings_from({}).database_url == "duly.db"
    assert settings_from({"DULY_DATABASE_URL": "", "HOME": "/"}).database_url == "duly.db"


def test_a_postgres_address_is_taken_as_it_is() -> None:
    settings = settings_from({"DULY_DATABASE_URL": "postgresql://db/duly", "DULY_LEASE_MS": "2000"})

    assert settings.database_url == "postgresql://db/duly"
    assert settings.lease == 2_000_000


@pytest.mark.parametrize("text", ["0", "99", "-5", "30s", "1e4", "١٠٠٠", "86400001", "9" * 5_000])
def test_a_lease_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="DULY_LEASE_MS"):
        settings_from({"DULY_LEASE_MS": text})


def test_a_database_is_shown_without_its_password() -> None:
    assert Settings(database_url="letters.db").database_shown == "letters.db"
    url = "postgresql://me:secret@db:5432/work?password=secret"
    assert Settings(database_url=url).database_shown == "postgresql://db:5432/work"


@pytest.mark.req("CRON-14")
def test_told_nothing_it_keeps_time_as_documented() -> None:
    settings = settings_from({})

    assert settings.pace == Pace(
        tick=Micros(1_000_000),
        lookahead=Micros(60_000_000),
        most_caught_up=100,
        outage_after=Micros(60_000_000),
    )
    assert settings.policies == Policies(overlap=Overlap.SKIP, catch_up=CatchUp.NONE, jitter_ms=0)


@pytest.mark.req("CRON-14")
def test_how_time_is_kept_can_be_set() -> None:
    settings = settings_from(
        {
            "DULY_TICK_MS": "250",
            "DULY_LOOKAHEAD_MS": "3600000",
            "DULY_MAX_CATCHUP_PER_TICK": "7",
            "DULY_OUTAGE_AFTER_MS": "90000",
            "DULY_DEFAULT_OVERLAP_POLICY": "queue",
            "DULY_DEFAULT_CATCHUP_POLICY": "spread",
            "DULY_DEFAULT_JITTER_MS": "1500",
        }
    )

    assert (settings.pace.tick, settings.pace.lookahead) == (250_000, 3_600_000_000)
    assert (settings.pace.most_caught_up, settings.pace.outage_after) == (7, 90_000_000)
    assert settings.policies == Policies(overlap=Overlap.QUEUE, catch_up=CatchUp.SPREAD, jitter_ms=1_500)


@pytest.mark.req("CRON-14", error=True)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DULY_TICK_MS", "0"),
        ("DULY_TICK_MS", "1s"),
        ("DULY_LOOKAHEAD_MS", "3600001"),
        ("DULY_MAX_CATCHUP_PER_TICK", "0"),
        ("DULY_MAX_CATCHUP_PER_TICK", "-1"),
        ("DULY_OUTAGE_AFTER_MS", "1000"),
        ("DULY_DEFAULT_OVERLAP_POLICY", "forbid"),
        ("DULY_DEFAULT_CATCHUP_POLICY", "all"),
        ("DULY_DEFAULT_JITTER_MS", "86400001"),
    ],
)
def test_what_means_no_time_and_no_policy_is_refused_with_its_name(name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=name) as refused:
        settings_from({name: text})

    assert refused.value.fix is not None


@pytest.mark.req("GRAPH-06")
def test_free_models_are_parted_by_commas() -> None:
    free = settings_from({"DULY_FREE_MODELS": "ollama:*, mine ,"}).free_models

    assert free is not None
    assert "ollama:llama3" in free
    assert "mine" in free
    assert "gpt-4o" not in free
    assert settings_from({}).free_models is None


@pytest.mark.req("GRAPH-06", error=True)
def test_that_every_model_is_free_is_refused() -> None:
    with pytest.raises(InvalidInput, match="DULY_FREE_MODELS"):
        settings_from({"DULY_FREE_MODELS": "*"})


def test_every_setting_has_its_line_in_the_docs() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "reference" / "settings.md").read_text()

    for field in fields(Settings):
        assert f"| `DULY_{field.name.upper()}` | `{field.name}` |" in docs


def test_how_to_log_is_told_by_name() -> None:
    settings = settings_from({"DULY_LOG_LEVEL": "DEBUG", "DULY_LOG_FORMAT": "json"})

    assert (settings.log_level, settings.logs_json) == ("debug", True)
    assert (settings_from({}).log_level, settings_from({}).logs_json) == (None, None)


@pytest.mark.parametrize("name", ["DULY_LOG_LEVEL", "DULY_LOG_FORMAT"])
def test_a_way_to_log_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        settings_from({name: "loud"})


def test_everything_that_is_wrong_is_told_at_once() -> None:
    given = {"DULY_PORT": "99999", "DULY_GRACE_MS": "-1", "DULY_LAESE_MS": "5000", "DULY_TICK_MS": "250", "OTHER": "x"}

    problems = all_problems(given)

    assert [problem.field for problem in problems] == ["DULY_PORT", "DULY_GRACE_MS", "DULY_LAESE_MS"]
    assert problems[-1].fix == "did you mean DULY_LEASE_MS?"
    assert all_problems({"DULY_SEEDS": "1000"}) == []


def test_where_to_serve_and_how_long_to_wait_can_be_set() -> None:
    settings = settings_from({"DULY_HOST": "::1", "DULY_PORT": "0", "DULY_GRACE_MS": "0"})

    assert (settings.host, settings.port, settings.grace) == ("::1", 0, 0)
    assert (settings_from({}).host, settings_from({}).port, settings_from({}).grace) == ("127.0.0.1", 8470, 30_000_000)
