"""Host names and reverse proxies: where a request comes from, and which host it was sent to.

Always true: `X-Forwarded-*` headers count only when the peer is a proxy that the operator has listed in
`web.trusted_proxies`.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.datastructures import Headers
    from starlette.types import Scope

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address
    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_MAX_PORT_DIGITS: Final = 5


@dataclass(frozen=True, slots=True)
class HostName:
    """The host part of a URL: a name or an address, and the port if one is given."""

    name: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> HostName | None:
        """Parse a Host header; None if it is not a valid host."""
        name, port = text.strip().lower(), ""
        if name.startswith("["):
            name, bracket, rest = name.partition("]")
            if not bracket or (rest and not rest.startswith(":")):
                return None
            name, port = f"{name}]", rest[1:]
        elif ":" in name:
            name, _, port = name.partition(":")
        is_valid_name = all(char.isalnum() or char in "-._[]:" for char in name) and name.isascii()
        is_valid_port = port.isascii() and port.isdigit() and len(port) <= _MAX_PORT_DIGITS
        if not name or not is_valid_name or (port and not is_valid_port):
            return None
        return cls(name.removesuffix("."), int(port) if port else None)

    @classmethod
    def from_setting(cls, text: str) -> HostName:
        """Parse the host of `web.public_url`."""
        host = cls.parse(text)
        if host is None:
            raise ConfigError(f"web.public_url: {text!r} is not a host. Write it like https://chat.example.org.")
        return host

    def has_port(self, scheme: str, port: int) -> bool:
        """Whether this host stands for `port`, given or by default for the scheme."""
        return (self.port or DEFAULT_PORTS.get(scheme)) == port


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """Where a request comes from, after trusted proxies have been taken into account."""

    address: str  # the client's address; empty if unknown
    scheme: str
    forwarded_host: str | None  # the host that the client asked for, if a trusted proxy reports it


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The proxies whose `X-Forwarded-*` headers are believed."""

    networks: tuple[Network, ...] = ()

    @classmethod
    def from_settings(cls, entries: Sequence[str]) -> TrustedProxies:
        """Parse `web.trusted_proxies`: addresses and networks."""
        networks = []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry, strict=False))
            except ValueError:
                raise ConfigError(
                    f"web.trusted_proxies: {entry!r} is neither an address nor a network. Write it like 10.0.0.2 or"
                    " 10.0.0.0/24.",
                ) from None
        return cls(tuple(networks))

    def is_trusted(self, address: str) -> bool:
        """Whether this address belongs to a trusted proxy."""
        parsed = parse_address(address)
        return parsed is not None and any(parsed in network for network in self.networks)

    def resolve_origin(self, scope: Scope, headers: Headers) -> RequestOrigin:
        """Find out where a request comes from, following `X-Forwarded-For` back as long as the proxies are trusted."""
        address = scope["client"][0] if scope.get("client") else ""
        scheme = scope.get("scheme", "http")
        if not self.is_trusted(address):
            return RequestOrigin(address, scheme, None)
        hops = _split_header(headers, "x-forwarded-for")
        while hops and self.is_trusted(address) and parse_address(hops[-1]) is not None:
            address = hops.pop()
        schemes = _split_header(headers, "x-forwarded-proto")
        if schemes and schemes[-1].lower() in DEFAULT_PORTS:
            scheme = schemes[-1].lower()
        hosts = _split_header(headers, "x-forwarded-host")
        return RequestOrigin(address, scheme, hosts[-1] if hosts else None)


def parse_address(text: str) -> Address | None:
    """Parse an IP address, also in brackets, with a zone, or IPv4 written as IPv6; None if it is not an address."""
    try:
        address = ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _split_header(headers: Headers, name: str) -> list[str]:
    """Return all values of a comma-separated header that may also be repeated."""
    return [value.strip() for line in headers.getlist(name) for value in line.split(",") if value.strip()]
