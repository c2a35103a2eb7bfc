"""Names to addresses, once per call: whoever is connected to is one of those that were checked."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address

from duly.domain.webhooks.addresses import Address, AddressRule, Target

Lookup = Callable[[str, int], Awaitable[Sequence[Address]]]
_MOST_TRIED = 3
# Of their own, and twice as many as there are calls at once: a name whose servers never answer holds its thread for
# longer than its call, and must hold up neither other names nor what else the process does in threads.
_THREADS = ThreadPoolExecutor(64, thread_name_prefix="duly-lookup")


async def system_lookup(host: str, port: int) -> Sequence[Address]:
    loop = asyncio.get_running_loop()
    asking = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    found = await loop.run_in_executor(_THREADS, asking)
    return list(dict.fromkeys(ip_address(where[0]) for *_, where in found))


async def safe_addresses(target: Target, rule: AddressRule, lookup: Lookup) -> Sequence[Address]:
    """A few to try in turn. Raises AddressRefused unless every one that the name has may be called."""
    number = target.number
    addresses = [number] if number is not None else await lookup(target.host, target.port)
    rule.require(target, addresses)
    return addresses[:_MOST_TRIED]
