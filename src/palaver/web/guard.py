"""The guard: checks every request before it reaches a route.

In this order: where the request comes from (`TrustedProxies`), whether its end is certain, whether it is addressed to
this server (`Host`), and whether another site's page sent it (`Origin`). Its body can be read only up to the limit for
strangers, until the route knows who sent it (`ApiRoute`). Every response gets the same strict security headers.

Always true: a request with a cookie changes something only if our own page sent it. Requests with a token are exempt,
because no browser sends a token by itself; such a request is judged by its token alone. Webhooks are exempt, because
they know no cookies.
"""

from __future__ import annotations

import ipaddress
import re
import sys
from dataclasses import field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse

from palaver.core.dataclass import dataclass
from palaver.core.errors import ConfigError
from palaver.core.fair_slots import FairSlots
from palaver.core.texts import current_language, find_language
from palaver.people.model import is_loopback, parse_ip_address
from palaver.web.body_limit import MAX_LARGE_REQUESTS_PER_PERSON, BodyLimit, WebhookBodies
from palaver.web.errors import build_error_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import FastAPI
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from palaver.web.state import WebState

    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_MAX_PORT_DIGITS: Final = 5
_HOST_NAME: Final = re.compile(r"[a-z0-9._:\[\]-]+")
CONTENT_SECURITY_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        *("script-src 'self'", "style-src 'self'", "connect-src 'self'"),
        "img-src 'self' data: blob: https:",  # an image in an answer, once the reader asks for it (decision 19)
        "media-src 'self' blob:",  # recordings, and answers that are read aloud
        *("font-src 'self'", "manifest-src 'self'", "worker-src 'self'", "frame-src 'self'"),
        *("base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"),
    ]
)
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # not `no-referrer`: with it, browsers also hide the origin of our own forms
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(self), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_ENCODED_HEADERS: Final = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
STRICT_TRANSPORT_SECURITY: Final = "max-age=31536000"

HOOKS_PREFIX: Final = "/hooks/"  # of webhooks: they know no cookies, and their adapters verify each request
_QUOTED_REPLACEMENT: Final = b"%EF%BF%BD"
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class HostName:
    """The host part of a URL: a name or an address, and the port if one is given."""

    name: str
    port: int | None

    @classmethod
    @lru_cache(maxsize=16)  # nearly all requests name the same few
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
        is_valid_name = _HOST_NAME.fullmatch(name) is not None
        is_valid_port = port.isascii() and port.isdigit() and len(port) <= _MAX_PORT_DIGITS
        if not is_valid_name or (port and not is_valid_port):
            return None
        return cls(name.removesuffix("."), int(port) if port else None)

    @classmethod
    def from_setting(cls, text: str) -> HostName:
        host = cls.parse(text)
        if host is None:
            raise ConfigError(f"web.public_url: {text!r} is not a host. Write it like https://chat.example.org.")
        return host

    def has_port(self, scheme: str, port: int) -> bool:
        """Return whether this host stands for `port`, given or by default for the scheme."""
        return (self.port or DEFAULT_PORTS.get(scheme)) == port


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """The client of a request, after trusted proxies have been taken into account."""

    address: str  # the client's address; empty if unknown
    scheme: str
    forwarded_host: str | None  # the host that the client asked for, if a trusted proxy reports it


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The proxies whose `X-Forwarded-*` headers are believed."""

    networks: tuple[Network, ...] = ()

    @classmethod
    def from_settings(cls, entries: Sequence[str]) -> TrustedProxies:
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
        parsed = parse_ip_address(address) if self.networks else None
        return parsed is not None and any(parsed in network for network in self.networks)

    def resolve_origin(self, scope: Scope, headers: Headers) -> RequestOrigin:
        """Find out where a request comes from, following `X-Forwarded-For` back as long as the proxies are trusted."""
        address = scope["client"][0] if scope.get("client") else ""
        scheme = scope.get("scheme", "http")
        if not self.is_trusted(address):
            return RequestOrigin(address, scheme, None)
        hops = _split_header(headers, "x-forwarded-for")
        while hops and self.is_trusted(address) and parse_ip_address(hops[-1]) is not None:
            address = hops.pop()
        schemes = _split_header(headers, "x-forwarded-proto")
        if schemes and schemes[-1].lower() in DEFAULT_PORTS:
            scheme = schemes[-1].lower()
        hosts = _split_header(headers, "x-forwarded-host")
        return RequestOrigin(address, scheme, hosts[-1] if hosts else None)


def _split_header(headers: Headers, name: str) -> list[str]:
    """Return all values of a comma-separated header that may also be repeated."""
    return [value.strip() for line in headers.getlist(name) for value in line.split(",") if value.strip()]


def install_guard(app: FastAPI, state: WebState) -> None:
    """Wrap an application in the guard, outside all other middleware, so that error responses are guarded too."""
    guard = Guard(
        proxies=TrustedProxies.from_settings(state.trusted_proxies),
        public_host=None if state.public_host is None else HostName.from_setting(state.public_host),
        base_path=state.base_path,
    )
    app.state.large_requests = FairSlots(sys.maxsize, per_key=MAX_LARGE_REQUESTS_PER_PERSON)
    app.state.webhook_bodies = WebhookBodies()
    build_inner_stack = app.build_middleware_stack
    app.build_middleware_stack = lambda: partial(guard, build_inner_stack())  # type: ignore[method-assign]


class _RejectedRequest(Exception):
    """The guard does not let this request through."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Checks every request and passes it on to the application, or rejects it."""

    proxies: TrustedProxies = field(default_factory=TrustedProxies)
    public_host: HostName | None = None
    base_path: str = ""

    async def __call__(self, inner: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        headers = Headers(scope=scope)
        current_language.set(find_language(headers.get("accept-language", "")))
        origin = self.proxies.resolve_origin(scope, headers)
        guarded_send = _add_security_headers(send, secure=origin.scheme == "https")
        try:
            _check_framing(headers)
            host = self._check_host(scope, headers, origin)
            if not scope["path"].removeprefix(self.base_path).startswith(HOOKS_PREFIX):
                _check_origin(scope["method"], headers, f"{origin.scheme}://{host}")
        except _RejectedRequest as rejection:
            response = build_error_response(rejection.status, rejection.code, str(rejection))
            if rejection.code == "ambiguous_length":
                response.headers["Connection"] = "close"  # what follows may be meant as part of this request
            await response(scope, receive, guarded_send)
            return
        if self.base_path and scope["path"] == self.base_path:  # so that the page's relative links work
            await RedirectResponse(f"{self.base_path}/", 308)(scope, receive, guarded_send)
            return
        resolved = {
            "client": (origin.address, 0) if origin.address else None,
            "scheme": origin.scheme,
            "headers": [(b"host", host.encode()), *((k, v) for k, v in scope["headers"] if k != b"host")],
            "root_path": self.base_path,
            # No database can hold NUL. In bodies it is replaced by `make_body_storable`.
            "path": scope["path"].replace("\0", "\N{REPLACEMENT CHARACTER}"),
            "query_string": scope["query_string"].replace(b"%00", _QUOTED_REPLACEMENT),
        }
        guarded_scope = {**scope, **resolved}
        await inner(guarded_scope, BodyLimit(guarded_scope, receive).receive, guarded_send)

    def _check_host(self, scope: Scope, headers: Headers, origin: RequestOrigin) -> str:
        """Return the host that a request was sent to, if it is this server's.

        This blocks DNS rebinding: a foreign page whose domain resolves to this server.
        """
        values = headers.getlist("host")
        host = HostName.parse(origin.forwarded_host or (values[0] if len(values) == 1 else ""))
        if host is None or not self._is_own_host(host, scope, origin.scheme):
            name = f'"{host.name}" at this port' if host else "the Host header of this request"
            raise _RejectedRequest(
                400,
                "unknown_host",
                f"This server does not answer to {name}. If it should, set web.public_url to its public address and"
                " list the proxy in front of it in web.trusted_proxies.",
            )
        is_default_port = host.port is None or host.port == DEFAULT_PORTS.get(origin.scheme)
        return host.name if is_default_port else f"{host.name}:{host.port}"

    def _is_own_host(self, host: HostName, scope: Scope, scheme: str) -> bool:
        address, port = scope.get("server") or ("", None)
        port = port or DEFAULT_PORTS["http"]
        public = self.public_host
        if public is not None and host.name == public.name:
            ports = {public.port} if public.port else {DEFAULT_PORTS.get(scheme), port}
            return any(own_port is not None and host.has_port(scheme, own_port) for own_port in ports)
        if is_loopback(host.name):
            return host.has_port(scheme, port)
        # An address, unlike a name, cannot be pointed at this server by someone else.
        own_address = parse_ip_address(address)
        return own_address is not None and parse_ip_address(host.name) == own_address and host.has_port(scheme, port)


def _check_framing(headers: Headers) -> None:
    """Reject a request that says in two ways where its body ends: a proxy may believe the other one."""
    if "transfer-encoding" in headers and "content-length" in headers:
        raise _RejectedRequest(
            400,
            "ambiguous_length",
            "A request must not have both Content-Length and Transfer-Encoding. Send one of them.",
        )


def _check_origin(method: str, headers: Headers, own_origin: str) -> None:
    """Reject requests that another site's page has sent."""
    if headers.get("authorization", "").lower().startswith("bearer "):
        return
    origin = headers.get("origin")
    if origin is not None:
        default_port = DEFAULT_PORTS.get(origin.partition(":")[0])
        is_own = origin.removesuffix(f":{default_port}") == own_origin
    elif method in _SAFE_METHODS or "cookie" not in headers:
        is_own = True  # safe methods change nothing; without a cookie the request has no one's permissions
    else:
        is_own = headers.get("sec-fetch-site") == "same-origin"
    if not is_own:
        raise _RejectedRequest(
            403,
            "foreign_origin",
            f"This request came from another site, not from {own_origin}. If Palaver is behind an HTTPS proxy, list"
            " the proxy in web.trusted_proxies.",
        )


def _add_security_headers(send: Send, *, secure: bool) -> Send:
    """Wrap `send` so that every response has the security headers; a route's own value for a header wins."""

    async def guarded_send(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message.setdefault("headers", [])
            names = {name for name, _ in headers}
            headers += [header for header in _ENCODED_HEADERS if header[0] not in names]
            if secure:
                MutableHeaders(raw=headers)["Strict-Transport-Security"] = STRICT_TRANSPORT_SECURITY
        await send(message)

    return guarded_send
