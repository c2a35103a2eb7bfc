"""Names to addresses: one that is never found holds up nobody else."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

from duly.courier.lookups import system_lookup


def test_a_lookup_does_not_wait_for_what_else_is_done_in_threads() -> None:
    async def test() -> None:
        loop, is_over = asyncio.get_running_loop(), threading.Event()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, is_over.wait)
        try:
            async with asyncio.timeout(20):
                assert await system_lookup("127.0.0.1", 443) == [ip_address("127.0.0.1")]
        finally:
            is_over.set()
            await busy

    asyncio.run(test())
