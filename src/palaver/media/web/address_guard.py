"""Which addresses are those of the public internet: our own network is not for people and web pages to explore."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # host and port → addresses

_GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
# Threads of their own, started when they are needed: a name server of a stranger that does not answer holds one for
# half a minute, and must not keep other work (files, passwords) from the common ones.
_resolvers: Final = ThreadPoolExecutor(max_workers=64, thread_name_prefix="palaver-resolver")


def is_public_address(text: str) -> bool:
    """Whether an IP address is one of the public internet, also if it contains another one."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        embedded = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64:
            embedded.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        inner = [each for each in embedded if each is not None]
        if inner:
            return all(is_public_address(str(each)) for each in inner)
        if address not in _GLOBAL_UNICAST:
            return False
    return address.is_global and not address.is_multicast


async def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses of a host, in the order in which to try them. Raises OSError."""
    try:
        found = await asyncio.get_running_loop().run_in_executor(
            _resolvers, partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        )
    except UnicodeError as error:  # a label that is too long, or empty
        raise OSError("not a valid host name") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
