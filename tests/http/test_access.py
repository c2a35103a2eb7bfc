"""Who comes in: whoever is on this machine, or has a token; no page of another site."""

import pytest

from duly.domain.tokens import Role
from duly.http.access import Access
from tests.http.site import DAILY, Site, is_problem

ME = "/api/v1/me"
URL = "/api/v1/schedules"


async def test_on_this_machine_nobody_needs_a_token(site: Site) -> None:
    assert (await site.local.get(ME)).json() == {"owner": "local", "role": "admin", "token_id": None}


async def test_a_token_that_is_given_counts_on_this_machine_too(site: Site) -> None:
    token, secret = await site.queue.tokens.create(owner="ann", role=Role.VIEWER)

    me = await site.local.get(ME, headers={"Authorization": f"Bearer {secret}"})
    assert me.json() == {"owner": "ann", "role": "viewer", "token_id": token.id}
    is_problem(await site.local.get(ME, headers={"Authorization": "Bearer duly_wrong"}), 401)


@pytest.mark.parametrize("given", [None, "Bearer", "Bearer ", "Bearer duly_x", "Basic YTpi", "duly_x", "Bearer \xff"])
async def test_elsewhere_only_a_good_token_opens(site: Site, given: str | None) -> None:
    headers = {} if given is None else {"Authorization": given.encode("latin-1").decode("latin-1")}
    answer = await site.stranger.get(ME, headers=[(k.encode(), v.encode("latin-1")) for k, v in headers.items()])

    is_problem(answer, 401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_revoked_token_is_refused_at_once(site: Site) -> None:
    admin = await site.caller("root", Role.ADMIN)
    created = (await admin.post("/api/v1/tokens", json={"owner": "ann", "role": "operator"})).json()
    ann = site.client(site.remote_api, Authorization=f"Bearer {created['secret']}")
    assert (await ann.get(ME)).status_code == 200

    revoked = (await site.local.delete(f"/api/v1/tokens/{created['id']}")).json()

    is_problem(await ann.get(ME), 401)
    assert revoked["revoked_at"] is not None
    assert (await site.local.delete(f"/api/v1/tokens/{created['id']}")).json() == revoked
    listed = (await site.local.get("/api/v1/tokens")).text
    assert created["id"] in listed
    assert created["secret"] not in listed


async def test_a_token_past_its_time_is_refused(quick_site: Site) -> None:
    asked = {"owner": "ann", "role": "viewer", "expires_at": "2020-01-01T00:00:00Z"}
    admin = await quick_site.caller("root", Role.ADMIN)

    assert is_problem(await admin.post("/api/v1/tokens", json=asked), 422)["errors"][0]["pointer"] == ("/expires_at")


async def test_whoever_has_no_token_makes_none_that_would_outlive_the_server(quick_site: Site) -> None:
    asked = {"owner": "mallory", "role": "admin"}

    is_problem(await quick_site.local.post("/api/v1/tokens", json=asked), 403, "token_needed")

    assert (await quick_site.local.get("/api/v1/tokens")).json()["items"] == []


@pytest.mark.parametrize("header", ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP"])
async def test_what_a_proxy_passed_on_need_not_come_from_this_machine(quick_site: Site, header: str) -> None:
    is_problem(await quick_site.local.get(ME, headers={header: "203.0.113.9"}), 421, "misdirected")


@pytest.mark.parametrize(
    "host", ["evil.com@127.0.0.1", "127.0.0.1#evil.com", "127.0.0.1/evil", "[::1]evil.com", "127.0.0.1:x", "", "::1"]
)
async def test_a_host_that_only_begins_or_ends_as_a_loopback_name_is_refused(quick_site: Site, host: str) -> None:
    is_problem(await quick_site.local.get(ME, headers={"Host": host}), 421, "misdirected")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8470", "[::1]:8470", "LOCALHOST"])
async def test_loopback_names_are_answered(quick_site: Site, host: str) -> None:
    assert (await quick_site.local.get(ME, headers={"Host": host})).status_code == 200


def test_loopback_can_ask_for_tokens_too() -> None:
    assert Access.at("127.0.0.1").is_local
    assert not Access.at("127.0.0.1", asks_for_tokens=True).is_local


@pytest.mark.req("GRAPH-11", error=True)
async def test_each_role_does_what_it_covers(site: Site) -> None:
    viewer, operator = await site.caller("ann", Role.VIEWER), await site.caller("ann")
    admin = await site.caller("root", Role.ADMIN)
    await site.schedule(operator, id="a")

    assert (await viewer.get(f"{URL}/a")).status_code == 200
    assert (await viewer.post(f"{URL}/preview", json={"every": "5m"})).status_code == 200
    for refused in (
        await viewer.post(URL, json=DAILY),
        await viewer.patch(f"{URL}/a", json={"priority": 1}),
        await viewer.delete(f"{URL}/a"),
        await viewer.post(f"{URL}/a/trigger"),
        await operator.patch("/api/v1/pools/wide", json={"slots": 1}),
        await operator.post("/api/v1/tokens", json={"owner": "ann", "role": "admin"}),
        await operator.get("/api/v1/tokens"),
    ):
        is_problem(refused, 403, "forbidden")
    assert (await operator.get("/api/v1/pools")).status_code == 200
    assert (await admin.patch(f"{URL}/a", json={"priority": 5})).json()["owner"] == "ann"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", ""])
async def test_a_name_that_is_rebound_to_this_machine_is_refused(quick_site: Site, host: str) -> None:
    is_problem(await quick_site.local.get(ME, headers={"Host": host}), 421, "misdirected")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:99", "[::1]:8000", "LOCALHOST"])
async def test_loopback_has_these_names(quick_site: Site, host: str) -> None:
    assert (await quick_site.local.get(ME, headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_no_page_of_another_origin_changes_anything(quick_site: Site, headers: dict[str, str]) -> None:
    is_problem(await quick_site.local.post(URL, json=DAILY, headers=headers), 403, "foreign_origin")
    is_problem(await quick_site.local.delete(f"{URL}/a", headers=headers), 403, "foreign_origin")
    assert (await quick_site.local.get(URL, headers=headers)).json()["items"] == []


async def test_a_page_of_this_origin_may_change_things(quick_site: Site) -> None:
    headers = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}

    assert (await quick_site.local.post(URL, json=DAILY, headers=headers)).status_code == 201


async def test_no_other_site_may_read(quick_site: Site) -> None:
    answer = await quick_site.local.get(URL, headers={"Origin": "http://evil.example"})

    assert not [name for name in answer.headers if name.startswith("access-control")]
