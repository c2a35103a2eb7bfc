"""Who may have another of a courier's calls: nobody has more of them than are left free."""

from collections import Counter
from collections.abc import Iterable

from duly.domain.webhooks.endpoints import Endpoint


class Calls:
    """Those under way, out of so many places; an owner's webhooks share what their owner may have."""

    __slots__ = ("_endpoints", "_hosts", "_owners", "free")

    def __init__(self, places: int, under_way: Iterable[Endpoint] = ()) -> None:
        self.free = places
        self._owners: Counter[str] = Counter()
        self._hosts: Counter[str] = Counter()
        self._endpoints: Counter[str] = Counter()
        for endpoint in under_way:
            self.join(endpoint)

    def join(self, endpoint: Endpoint) -> None:
        self.free -= 1
        self._owners[endpoint.owner] += 1
        self._hosts[endpoint.host] += 1
        self._endpoints[endpoint.id] += 1

    def may_join(self, endpoint: Endpoint) -> bool:
        owners = self._owners[endpoint.owner]
        return self._hosts[endpoint.host] < self.free and self._endpoints[endpoint.id] < self.free - owners

    def rank(self, endpoint: Endpoint) -> tuple[int, int]:
        """Whoever has fewest is next."""
        return self._owners[endpoint.owner], self._endpoints[endpoint.id]
