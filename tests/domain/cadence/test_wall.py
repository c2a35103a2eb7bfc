"""Zones as spans: complete, from Duly's own data, and bounded in memory."""

import itertools
import struct
import zoneinfo
from importlib.resources import files
from pathlib import Path

import pytest

from duly.domain.cadence import wall, zone_names
from duly.domain.cadence.instants import DAY
from tests.brute_force import epoch

START, END = epoch(1900), epoch(2040)


def distinct_zones() -> list[str]:
    """One zone for each set of data; the rest are other names for it."""
    return sorted({(files("tzdata") / "zoneinfo" / tz).read_bytes(): tz for tz in sorted(zone_names())}.values())


def recorded_changes(tz: str) -> list[tuple[int, int]]:
    """(second, offset after) of each change of offset in the compiled file, read without any library."""
    data = (files("tzdata") / "zoneinfo" / tz).read_bytes()
    header = struct.Struct(">4sc15x6l")
    _, _, utc, std, leap, times, types, chars = header.unpack_from(data)
    second_header = header.size + times * 5 + types * 6 + chars + leap * 8 + std + utc
    _, _, _, _, _, times, types, _ = header.unpack_from(data, second_header)
    at = second_header + header.size
    seconds = struct.unpack_from(f">{times}q", data, at)
    indexes = data[at + times * 8 : at + times * 9]
    offsets = [struct.unpack_from(">l", data, at + times * 9 + n * 6)[0] for n in range(types)]
    changes, before = [], offsets[0]
    for second, index in zip(seconds, indexes, strict=True):
        if offsets[index] != before:
            changes.append((second, offsets[index]))
        before = offsets[index]
    return changes


@pytest.mark.req("CRON-02")
def test_every_recorded_clock_change_of_every_zone_is_found() -> None:
    for tz in distinct_zones():
        recorded = [change for change in recorded_changes(tz) if START <= change[0] < END]
        # Later changes follow a rule at the file's end, which the clock watcher's tests cover.
        end = recorded[-1][0] + 1 if recorded else START

        found = [(span.start, span.offset) for span in wall.zone(tz).changes(START, end)]

        assert found == recorded, tz


@pytest.mark.req("CRON-02")
def test_no_zone_changes_its_clock_twice_between_two_probes() -> None:
    for tz in sorted(zone_names()):
        seconds = [second for second, _ in recorded_changes(tz)]
        gaps = [later - earlier for earlier, later in itertools.pairwise(seconds)]
        assert min(gaps, default=7 * DAY) > wall._PROBE_EVERY, tz


@pytest.mark.req("CRON-02")
def test_zones_come_from_the_package_and_not_from_the_host(tmp_path: Path) -> None:
    # Given a host whose file for Berlin is wrong
    (tmp_path / "Europe").mkdir()
    (tmp_path / "Europe" / "Berlin").write_bytes((files("tzdata") / "zoneinfo" / "Asia" / "Tokyo").read_bytes())
    zoneinfo.reset_tzpath([str(tmp_path)])
    forget_zones()
    try:
        offset = wall.zone("Europe/Berlin").span_at(epoch(2025, 7)).offset
    finally:
        zoneinfo.reset_tzpath()
        forget_zones()

    assert offset == 7200
    assert wall.TZ_VERSION


def forget_zones() -> None:
    wall._load.cache_clear()
    zoneinfo.ZoneInfo.clear_cache()


def test_the_zones_are_those_of_the_tz_database() -> None:
    names = zone_names()

    assert len(names) > 590
    assert {"UTC", "Europe/Berlin", "Etc/GMT+5", "EST5EDT"} <= names
    assert not {"Factory", "posixrules", "localtime"} & names


def test_spans_join_without_a_seam() -> None:
    zone = wall.zone("Africa/Casablanca")
    span = zone.span_at(epoch(1900))
    while span.end < epoch(2090):
        following = zone.span_at(span.end)
        assert following.start == span.end
        assert following.offset - span.offset == following.shift
        span = following


@pytest.mark.req("CRON-02")
def test_a_fold_that_reaches_into_the_next_survey_is_still_a_fold() -> None:
    zone = wall.zone("Europe/Berlin")
    fold = next(span for span in zone.changes(epoch(2025, 9), epoch(2025, 12)))

    cut = fold.start + 1800
    second_pass = zone._spans_between(cut, cut + DAY)[0]

    assert second_pass.start == cut
    assert second_pass.shift == 0
    assert second_pass.floor == fold.start + fold.offset - fold.shift


def test_memory_stays_bounded_however_much_of_time_is_asked_for() -> None:
    zone = wall.zone("America/New_York")
    for year in range(1, 9999, 3):
        zone.span_at(epoch(year))

    assert len(zone._chunks) <= wall._CHUNKS_KEPT
