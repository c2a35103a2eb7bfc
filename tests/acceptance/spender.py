"""A process that tries to hold the same money many times at once, when it is told to go."""

import asyncio
import sys

from duly.bootstrap import Queue
from duly.domain.billing import InsufficientCredit
from duly.settings import Settings


async def spend(database_url: str, account_id: str, amount: int, name: str, times: int) -> int:
    queue = await Queue.open(Settings(database_url=database_url))
    try:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        return sum(await asyncio.gather(*(_passes(queue, account_id, amount, f"{name}-{n}") for n in range(times))))
    finally:
        await queue.close()


async def _passes(queue: Queue, account_id: str, amount: int, run_id: str) -> bool:
    try:
        await queue.money.hold(run_id, 1, account_id=account_id, amount=amount)
    except InsufficientCredit:
        return False
    return True


if __name__ == "__main__":
    database, account, wanted, its_name, how_often = sys.argv[1:]
    print(asyncio.run(spend(database, account, int(wanted), its_name, int(how_often))), flush=True)
