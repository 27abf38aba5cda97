"""Addresses of servers, as people enter them: the one rule for every setting, form and subscription.

Always true: what is accepted here can be given to an HTTP client or a URL parser without an error about the address
itself. Clients check names with letters outside of ASCII more strictly, so they still handle their own error.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection

HTTP_SCHEMES: Final = frozenset({"http", "https"})
MAX_URL_CHARS: Final = 4000
_MAX_HOST_CHARS: Final = 253
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\\]+")
_IPV4: Final = re.compile(r"[0-9]+(\.[0-9]+){3}")
_IPV6_WITH_PORT: Final = re.compile(r"\[[^\[\]]+\](:[0-9]*)?")


def is_http_url(value: object, schemes: Collection[str] = HTTP_SCHEMES) -> bool:
    """Return whether this is the complete URL of a server; whether a server answers there is not checked."""
    if not isinstance(value, str) or len(value) > MAX_URL_CHARS or not value.isprintable():
        return False
    if not _URL.fullmatch(value):
        return False
    try:
        parts = urlsplit(value)
        host, port, address = parts.hostname or "", parts.port, parts.netloc.rpartition("@")[2]
        is_ipv6 = "[" in address
        if is_ipv6:
            IPv6Address(host)
    except ValueError:  # the port is not a number, brackets do not match, or there is no address in them
        return False
    if parts.scheme not in schemes or port == 0:
        return False
    return _IPV6_WITH_PORT.fullmatch(address) is not None if is_ipv6 else is_host_name(host)


def is_host_name(host: str) -> bool:
    """Return whether this is a host name or an IPv4 address that can be looked up."""
    if not host or len(host) > _MAX_HOST_CHARS or not host.isprintable():
        return False
    try:
        host.encode("idna")
        if _IPV4.fullmatch(host):
            IPv4Address(host)
    except ValueError:  # a label that is empty, too long or not allowed, or a number above 255
        return False
    return True
