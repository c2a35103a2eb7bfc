"""Roles cover one another in order, and a caller sees its own things unless it is an admin."""

import pytest

from duly.domain.ids import Owner
from duly.domain.instants import Instant
from duly.domain.tokens import Caller, Forbidden, Role, Token, hash_of


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("needed", Role)
def test_a_role_covers_itself_and_those_below_it(role: Role, needed: Role) -> None:
    order = [Role.VIEWER, Role.OPERATOR, Role.ADMIN]
    caller = Caller(owner=Owner("ann"), role=role)

    assert role.covers(needed) is (order.index(role) >= order.index(needed))
    if role.covers(needed):
        caller.require(needed)
    else:
        with pytest.raises(Forbidden) as refusal:
            caller.require(needed)
        assert (refusal.value.needed, refusal.value.found) == (needed, role)


def test_an_admin_sees_everything_and_others_their_own() -> None:
    sees = [Caller(owner=Owner("ann"), role=role).sees for role in Role]

    assert sees == ["ann", "ann", None]


def test_a_token_is_good_until_it_expires_or_is_revoked() -> None:
    def token(expires_at: int | None = None, revoked_at: int | None = None) -> Token:
        return Token(
            id="tok_1",
            owner=Owner("ann"),
            role=Role.VIEWER,
            name="",
            created_at=Instant(0),
            expires_at=None if expires_at is None else Instant(expires_at),
            revoked_at=None if revoked_at is None else Instant(revoked_at),
        )

    now = Instant(10)
    assert [token().is_good(now), token(expires_at=11).is_good(now)] == [True, True]
    assert [token(expires_at=10).is_good(now), token(revoked_at=5).is_good(now)] == [False, False]


def test_a_hash_is_sha_256_in_hex_whatever_was_sent() -> None:
    assert hash_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert len(hash_of("\udc80")) == 64
