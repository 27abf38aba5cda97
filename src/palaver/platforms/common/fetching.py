"""Downloads files by URL, with a guard: platforms and people name the URL, and our network is not theirs to explore.

Always true: a connection is opened only to an address that was checked, and addresses of this machine and of private
networks are refused, unless the operator has configured that host as the platform's own. The name is resolved once and
the connection is made to that address, so that a name server cannot answer differently the second time. Every redirect
is checked in the same way. Proxies of the environment are not used: behind one, the address could not be checked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

import httpx2

from palaver.domain.attachment import MAX_FILE_BYTES
from palaver.domain.errors import ConnectionLost, InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence

    Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # host and port → addresses

MAX_REDIRECTS: Final = 5
CONNECT_SECONDS: Final = 10.0
READ_SECONDS: Final = 30.0
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_BYTES_PER_MB: Final = 1_000_000


class FileFetcher:
    """Downloads files. `trusted_hosts` are the platform's own hosts, as the operator has configured them."""

    def __init__(
        self,
        trusted_hosts: Collection[str] = (),
        *,
        max_bytes: int = MAX_FILE_BYTES,
        resolve: Resolve | None = None,
    ) -> None:
        self._trusted_hosts = frozenset(host.lower() for host in trusted_hosts)
        self._max_bytes = max_bytes
        self._resolve = resolve or _resolve_host

    async def fetch(self, url: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[bytes]:
        """Download a file in chunks. The headers, which may hold a token, are sent to the host of this URL only.

        Raises InvalidInput if it is too large or at a place that is not allowed, and ConnectionLost if it can't be
        downloaded.
        """
        origin = _get_origin(url)
        timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
        async with httpx2.AsyncClient(timeout=timeout, follow_redirects=False, trust_env=False) as client:
            for _ in range(MAX_REDIRECTS + 1):
                sent_headers = dict(headers or {}) if _get_origin(url) == origin else {}
                request = await self._build_request(client, url, sent_headers)
                try:
                    response = await client.send(request, stream=True)
                except httpx2.HTTPError as error:
                    raise ConnectionLost("the download failed") from error
                try:
                    location = response.headers.get("location")
                    if not (response.is_redirect and location):
                        async for chunk in self._read(response):
                            yield chunk
                        return
                    url = self._follow(url, location)
                finally:
                    await response.aclose()
        raise InvalidInput("its address redirects too often")

    async def _build_request(self, client: httpx2.AsyncClient, url: str, headers: dict[str, str]) -> httpx2.Request:
        """Build a request to an address of the host that was checked, under the host's own name."""
        parts = urlsplit(url)
        try:
            host, port = (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            raise InvalidInput("its address is not valid") from None
        if parts.scheme not in {"http", "https"} or not host or parts.username is not None:
            raise InvalidInput("its address is not valid")
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:
            raise ConnectionLost("its server was not found") from error
        is_trusted = host in self._trusted_hosts
        if not addresses or not (is_trusted or all(map(is_public_address, addresses))):
            raise InvalidInput("its address is in a private network")
        pinned = httpx2.URL(url).copy_with(host=addresses[0])
        return client.build_request(
            "GET",
            pinned,
            headers={**headers, "Host": _format_host(host, parts.port), "Accept-Encoding": "identity"},
            extensions={"sni_hostname": host},
        )

    def _follow(self, url: str, location: str) -> str:
        target = urljoin(url, location)
        is_downgrade = urlsplit(url).scheme == "https" and urlsplit(target).scheme != "https"
        if is_downgrade and (urlsplit(target).hostname or "").lower() not in self._trusted_hosts:
            raise InvalidInput("its address is not encrypted")
        return target

    async def _read(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        if response.status_code != httpx2.codes.OK:
            raise ConnectionLost(f"the server answered {response.status_code}")
        announced = response.headers.get("content-length", "")
        if announced.isascii() and announced.isdigit() and len(announced) < 19 and int(announced) > self._max_bytes:
            raise InvalidInput(self._describe_limit(int(announced)))
        size = 0
        try:
            async for chunk in response.aiter_raw():
                size += len(chunk)
                if size > self._max_bytes:
                    raise InvalidInput(self._describe_limit(None))
                yield chunk
        except httpx2.HTTPError as error:
            raise ConnectionLost("the download broke off") from error

    def _describe_limit(self, size: int | None) -> str:
        limit = f"limit {self._max_bytes // _BYTES_PER_MB} MB"
        return f"too large ({limit})" if size is None else f"too large ({-(-size // _BYTES_PER_MB)} MB, {limit})"


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
    return address.is_global and not address.is_multicast


async def _resolve_host(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def _get_origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _format_host(host: str, port: int | None) -> str:
    name = f"[{host}]" if ":" in host else host
    return name if port is None else f"{name}:{port}"
