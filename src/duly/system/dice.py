"""The machine's own dice."""

import random
import secrets

import uuid_utils


class SystemDice:
    """Ids carry their time first (UUID version 7), so rows inserted together lie together in an index."""

    __slots__ = ()

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_{uuid_utils.uuid7().hex}"

    def fraction(self) -> float:
        return random.random()  # noqa: S311  # spreads load, guards nothing

    def secret(self) -> str:
        return secrets.token_urlsafe(32)
