"""Whether `duly dev` can listen where it is asked to, found out before it makes anything."""

import socket
from pathlib import Path

from duly.dev.alone import alone_on, lock_beside
from duly.domain.errors import Unavailable


def require_port(host: str, port: int, database: Path | None) -> None:
    """Whoever has it may be a `duly dev` on the same file: then that is what is said.

    A name that is no address is left to the server to refuse.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError:
        return
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
        except OSError as taken:
            if database is not None and lock_beside(database).exists():
                with alone_on(database):
                    pass
            reason = f"cannot listen on {host} port {port}: {taken.strerror}"
            raise Unavailable(f"{reason}; try --port 0, which is any that is free, or another port") from taken
