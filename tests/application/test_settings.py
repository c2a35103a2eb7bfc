"""What Duly does when told nothing, and what it refuses to be told."""

import pytest

from duly import InvalidInput
from duly.settings import Settings, settings_from


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
