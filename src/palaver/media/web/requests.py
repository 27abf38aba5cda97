"""HTTP requests to addresses that people, platforms and web pages name, with a guard.

Always true: a connection is opened only to an address that was checked, and addresses of this machine and of private
networks are refused, unless the operator has configured that host. The name is resolved once for each request and the
connection is made to the address that was checked, so that a name server cannot answer differently the second time.
Every redirect is checked in the same way. Proxies of the environment are not used: behind one, the address could not
be checked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import httpx2

from palaver.core.errors import ConnectionLost, InvalidInput

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # host and port → addresses
_GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
# Threads of their own, started when they are needed: a name server of a stranger that does not answer holds one for
# half a minute, and must not keep other work (files, passwords) from the common ones.
_resolvers: Final = ThreadPoolExecutor(max_workers=64, thread_name_prefix="palaver-resolver")
MAX_REDIRECTS: Final = 5
MAX_URL_CHARS: Final = 4000
MAX_ADDRESSES: Final = 4  # of one host that are tried
CONNECT_SECONDS: Final = 10.0
READ_SECONDS: Final = 30.0


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


class GuardedRequests:
    """Sends requests. `trusted_hosts` are the hosts that may be in a private network: the operator has named them."""

    def __init__(self, trusted_hosts: Collection[str] = (), *, resolve: Resolve | None = None) -> None:
        self._trusted_hosts = frozenset(host.lower() for host in trusted_hosts)
        self._resolve = resolve or resolve_host

    @asynccontextmanager
    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> AsyncGenerator[httpx2.Response]:
        """Send a GET request and follow redirects. The headers, which may hold a token, go to this URL's host only.

        The body of the response is not read yet, and the response's `extensions["final_url"]` is where it came from.
        Raises InvalidInput for a place that is not allowed, and ConnectionLost if there is no response.
        """
        origin = _get_origin(url)
        async with _make_client() as client:
            for _ in range(MAX_REDIRECTS + 1):
                sent_headers = dict(headers or {}) if _get_origin(url) == origin else {}
                response = await self._send(client, "GET", url, sent_headers)
                try:
                    location = response.headers.get("location")
                    if not (response.is_redirect and location):
                        response.extensions["final_url"] = url
                        yield response
                        return
                    url = self._follow(url, location)
                finally:
                    await response.aclose()
        raise InvalidInput("its address redirects too often")

    @asynccontextmanager
    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: Any = None
    ) -> AsyncGenerator[httpx2.Response]:
        """Send one request, with a body of bytes or JSON if there is one; a redirect is not followed."""
        async with _make_client() as client:
            response = await self._send(client, method, url, dict(headers), body)
            try:
                yield response
            finally:
                await response.aclose()

    async def _send(
        self, client: httpx2.AsyncClient, method: str, url: str, headers: dict[str, str], body: Any = None
    ) -> httpx2.Response:
        """Send a request to an address of the host that was checked, under the host's own name."""
        host, port, shown_host = _split_address(url)
        addresses = await self._find_addresses(host, port)
        failure: Exception | None = None
        for address in addresses[:MAX_ADDRESSES]:
            try:
                request = client.build_request(
                    method,
                    httpx2.URL(url).copy_with(host=address),
                    headers={**headers, "Host": shown_host, "Accept-Encoding": "identity"},
                    content=body if isinstance(body, bytes) else None,
                    json=None if isinstance(body, bytes) else body,
                    extensions={"sni_hostname": host},
                )
                return await client.send(request, stream=True)
            except httpx2.InvalidURL as error:
                raise InvalidInput("its address is not valid") from error
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
            except httpx2.HTTPError as error:
                raise ConnectionLost("the download failed") from error
        raise ConnectionLost("the download failed") from failure

    async def _find_addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:
            raise ConnectionLost("its server was not found") from error
        is_trusted = host in self._trusted_hosts
        if not addresses or not (is_trusted or all(map(is_public_address, addresses))):
            raise InvalidInput("its address is in a private network")
        return addresses

    def _follow(self, url: str, location: str) -> str:
        try:
            target = urljoin(url, location)
            is_downgrade = urlsplit(url).scheme == "https" and urlsplit(target).scheme != "https"
            host = (urlsplit(target).hostname or "").lower()
        except ValueError:
            raise InvalidInput("its address is not valid") from None
        if is_downgrade and host not in self._trusted_hosts:
            raise InvalidInput("its address is not encrypted")
        return target


def _make_client() -> httpx2.AsyncClient:
    timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    return httpx2.AsyncClient(timeout=timeout, follow_redirects=False, trust_env=False)


def _split_address(url: str) -> tuple[str, int, str]:
    """Return the host, the port, and the host as a header shows it, all in ASCII. Raises InvalidInput."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
        host = host if host.isascii() else host.encode("idna").decode()
    except ValueError:  # the port is not a number, brackets do not match, or the name can't be encoded
        raise InvalidInput("its address is not valid") from None
    is_web_address = parts.scheme in {"http", "https"} and bool(host) and parts.username is None
    if not is_web_address or len(url) > MAX_URL_CHARS or not url.isprintable():
        raise InvalidInput("its address is not valid")
    shown_host = f"[{host}]" if ":" in host else host
    shown_host += "" if port is None else f":{port}"
    return host, port or (443 if parts.scheme == "https" else 80), shown_host


def _get_origin(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidInput("its address is not valid") from None
    return parts.scheme, parts.netloc.lower()
