"""Which addresses Duly may call on somebody's word: public ones, and this machine if its settings say so."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from duly.domain.errors import InvalidInput, Refused
from duly.domain.texts import text_of

LONGEST_URL = 2_000
LEAST_FREE_PORT = 1_024
_HTTPS = 443
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)

Address = IPv4Address | IPv6Address

_NOT_PUBLIC_V4: Sequence[IPv4Network] = [
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        # Of a cloud's own: it answers machines within, whatever the number looks like.
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
]
# All that is public in IPv6 is in here: mapped, translated, local and multicast addresses are not.
_PUBLIC_V6 = IPv6Network("2000::/3")
# Tunnels lead to IPv4 addresses of anybody's choice; the rest is for documents and experiments.
_NOT_PUBLIC_V6: Sequence[IPv6Network] = [
    IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
]
_LOOPBACK: Sequence[IPv4Network | IPv6Network] = [ip_network("127.0.0.0/8"), ip_network("::1/128")]


class AddressRefused(Refused):
    """Calling there could reach what only this machine or its neighbours may."""

    code = "address_refused"

    def __init__(self, host: str, why: str) -> None:
        super().__init__(f"{host} {why}")
        self.host = host


def is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_V4)
    if address.scope_id is not None or address not in _PUBLIC_V6:
        return False
    return not any(address in network for network in _NOT_PUBLIC_V6)


def is_loopback(address: Address) -> bool:
    return any(address.version == network.version and address in network for network in _LOOPBACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An address on the web, taken apart. `host` is a name or a number, lower case, without brackets."""

    url: str
    scheme: str
    host: str
    port: int

    @property
    def number(self) -> Address | None:
        return _number(self.host)

    @property
    def authority(self) -> str:
        """As a `Host` header says it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = _HTTPS if self.scheme == "https" else 80
        return host if self.port == usual else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class AddressRule:
    """Without `loopback`, only public addresses by https; with it, this machine too, by http and on any port."""

    loopback: bool = False

    def target_of(self, url: object, *, field: str = "url") -> Target:
        """Refuses what can be refused without a look-up; the rest is `require` when it is called."""
        target = _parsed(url, field)
        number = target.number
        is_here = number is not None and is_loopback(number)
        if number is not None and not is_public(number) and not (is_here and self.loopback):
            raise InvalidInput(field, f"{target.host} is not a public address", fix="name a host that others can reach")
        if self.loopback:
            return target
        if target.scheme != "https":
            raise InvalidInput(field, "is not https", fix="use https://host/path")
        if target.port != _HTTPS and target.port < LEAST_FREE_PORT:
            raise InvalidInput(field, f"port {target.port} is not for web servers", fix="use 443, or 1024 and above")
        return target

    def require(self, target: Target, addresses: Sequence[Address]) -> None:
        """Every address that a name has, since any of them may be the one that is connected to."""
        if not addresses:
            raise AddressRefused(target.host, "has no address")
        for address in addresses:
            if is_loopback(address) and self.loopback:
                continue
            if not is_public(address):
                raise AddressRefused(target.host, "has an address that is not public")
            if target.scheme != "https":
                raise AddressRefused(target.host, "is not this machine: http is for this machine alone")
            if target.port != _HTTPS and target.port < LEAST_FREE_PORT:
                raise AddressRefused(target.host, f"is not called on port {target.port}")


def _parsed(url: object, field: str) -> Target:
    text = text_of(url, field=field, longest=LONGEST_URL)
    if not text.isascii() or any(sign in text for sign in " \\\"'<>^`{|}"):
        raise InvalidInput(field, "holds signs that no address has", fix="write them as %XX, and names in punycode")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidInput(field, "is no address of a web server", fix="use https://host/path") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(field, "is no address of a web server", fix="use https://host/path")
    if "@" in parts.netloc:
        raise InvalidInput(field, "holds a user name or password", fix="leave it out: calls are signed")
    if "#" in text:
        raise InvalidInput(field, "holds a fragment, which no server sees", fix="leave the # out")
    if port == 0:
        raise InvalidInput(field, "names port 0", fix="use 443, or 1024 and above")
    host = _host(parts.hostname, field)
    return Target(url=text, scheme=parts.scheme, host=host, port=port or (_HTTPS if parts.scheme == "https" else 80))


def _host(host: str, field: str) -> str:
    if _number(host) is not None:
        return host
    labels = host.lower().split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidInput(field, f"{host[:60]!r} is no name of a host", fix="use https://host/path")
    if labels[-1].isdigit() or labels[-1].startswith("0x"):
        # Look-ups read such names as numbers, in ways of their own.
        raise InvalidInput(field, f"{host[:60]!r} is no name and no address", fix="write an address as 192.0.2.1")
    return host.lower()


def _number(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
