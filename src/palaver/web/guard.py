"""The guard: what stands before every route, whoever asks and whatever they ask for.

In this order: whom to believe about where a request comes from (`Proxies`), whether it is meant for us (`Host`),
whether a foreign page has sent it (`Origin`), and how much it may bring. Every response leaves with the same strict
headers.

Always true: `X-Forwarded-*` counts only when the peer is a proxy that the operator has named; a request with a cookie
changes something only when our own page has sent it. Tokens are exempt from that, because no browser sends one by
itself; a request that bears one is judged by it alone.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from palaver.domain.account import is_loopback
from palaver.domain.errors import ConfigError
from palaver.web.errors import error_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import FastAPI
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from palaver.web.state import WebState

    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        *("script-src 'self'", "style-src 'self'", "img-src 'self' data: blob:", "connect-src 'self'"),
        *("font-src 'self'", "manifest-src 'self'", "worker-src 'self'", "frame-src 'self'"),
        *("base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"),
    ]
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # not no-referrer, with which browsers hide the origin of our own forms too
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HSTS: Final = "max-age=31536000"

UPLOADS: Final = "/api/attachments"  # streamed to the disk, and limited where they are taken
LARGEST_BODY: Final = 32 * 2**20
LARGEST_FROM_STRANGERS: Final = 64 * 2**10
_LOOKING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_PORTS: Final = {"http": 80, "https": 443}


def install_guard(app: FastAPI, state: WebState) -> None:
    """Put the guard around an application: outside of everything, so that its own failures leave guarded too."""
    guard = Guard(
        proxies=Proxies.named(state.trusted_proxies),
        public_host=None if state.public_host is None else HostName.named(state.public_host),
        base_path=state.base_path,
    )
    build = app.build_middleware_stack

    def guarded() -> ASGIApp:
        inner = build()

        async def call(scope: Scope, receive: Receive, send: Send) -> None:
            await guard(inner, scope, receive, send)

        return call

    app.build_middleware_stack = guarded  # type: ignore[method-assign]


# ---- names of hosts --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostName:
    """A host as it stands in a URL: a name or an address, and a port when one is written."""

    name: str
    port: int | None

    @classmethod
    def read(cls, text: str) -> HostName | None:
        """What a Host header says; None when it says nothing that could be meant."""
        name, port = text.strip().lower(), ""
        if name.startswith("["):
            name, closed, rest = name.partition("]")
            if not closed or (rest and not rest.startswith(":")):
                return None
            name, port = f"{name}]", rest[1:]
        elif ":" in name:
            name, _, port = name.partition(":")
        known = all(sign.isalnum() or sign in "-._[]:" for sign in name) and name.isascii()
        if not name or not known or (port and not (port.isascii() and port.isdigit() and len(port) <= 5)):
            return None
        return cls(name.removesuffix("."), int(port) if port else None)

    @classmethod
    def named(cls, text: str) -> HostName:
        """The host that the operator has named."""
        found = cls.read(text)
        if found is None:
            raise ConfigError(f"web.public_url: {text!r} is not a host; write it like https://chat.example.org")
        return found

    def is_at(self, scheme: str, port: int) -> bool:
        """Whether a port is the one that is meant."""
        return (self.port or _PORTS.get(scheme)) == port


# ---- proxies ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies whose word is believed."""

    networks: tuple[Network, ...] = ()

    @classmethod
    def named(cls, given: Sequence[str]) -> Proxies:
        """The proxies that the operator has named, by address or network."""
        networks = []
        for text in given:
            try:
                networks.append(ipaddress.ip_network(text, strict=False))
            except ValueError:
                raise ConfigError(
                    f"web.trusted_proxies: {text!r} is neither an address nor a network; write it like 10.0.0.2 or"
                    " 10.0.0.0/24",
                ) from None
        return cls(tuple(networks))

    def trust(self, address: str) -> bool:
        """Whether this is one of them."""
        known = _address(address)
        return known is not None and any(known in network for network in self.networks)

    def origin_of(self, scope: Scope, headers: Headers) -> tuple[str, str, str | None]:
        """Where a request really comes from, by which scheme, and for which host when a proxy says so."""
        address = scope["client"][0] if scope.get("client") else ""
        scheme = scope.get("scheme", "http")
        if not self.trust(address):
            return address, scheme, None
        hops = _values(headers, "x-forwarded-for")
        while hops and self.trust(address) and _address(hops[-1]) is not None:
            address = hops.pop()
        said = _values(headers, "x-forwarded-proto")
        if said and said[-1].lower() in _PORTS:
            scheme = said[-1].lower()
        hosts = _values(headers, "x-forwarded-host")
        return address, scheme, hosts[-1] if hosts else None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found


def _values(headers: Headers, name: str) -> list[str]:
    """Every value of a header that may be a list, and may be there several times."""
    return [value.strip() for line in headers.getlist(name) for value in line.split(",") if value.strip()]


# ---- the guard -------------------------------------------------------------------------------------------


class _Refusal(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Looks at every request before anybody else does."""

    proxies: Proxies = field(default_factory=Proxies)
    public_host: HostName | None = None
    base_path: str = ""

    async def __call__(self, inner: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        headers = Headers(scope=scope)
        address, scheme, forwarded = self.proxies.origin_of(scope, headers)
        sending = _with_headers(send, secure=scheme == "https")
        try:
            host = self._host(scope, headers, scheme, forwarded)
            _check_origin(scope["method"], headers, f"{scheme}://{host}")
            receiving = _limited(receive, headers, scope["path"])
        except _Refusal as refusal:
            response = error_response(refusal.status, refusal.code, str(refusal))
            await response(scope, receive, sending)
            return
        if self.base_path and scope["path"] == self.base_path:  # so that what is beside the page is found beside it
            await RedirectResponse(f"{self.base_path}/", 308)(scope, receive, sending)
            return
        known = {
            "client": (address, 0) if address else None,
            "scheme": scheme,
            "headers": [(b"host", host.encode()), *((k, v) for k, v in scope["headers"] if k != b"host")],
            "root_path": self.base_path,
        }
        await inner({**scope, **known}, receiving, sending)

    def _host(self, scope: Scope, headers: Headers, scheme: str, forwarded: str | None) -> str:
        """The host a request is for, if that is us. A page elsewhere whose name leads here is refused by this."""
        given = headers.getlist("host")
        said = forwarded or (given[0] if len(given) == 1 else "")
        host = HostName.read(said)
        if host is None or not self._is_us(host, scope, scheme):
            shown = host.name if host else "that"
            raise _Refusal(
                400,
                "unknown_host",
                f"this server is not known as {shown} at this port; if it should be, name it in web.public_url,"
                " and the proxy in front of it in web.trusted_proxies",
            )
        plain = host.port is None or host.port == _PORTS.get(scheme)
        return host.name if plain else f"{host.name}:{host.port}"

    def _is_us(self, host: HostName, scope: Scope, scheme: str) -> bool:
        address, port = scope.get("server") or ("", None)
        port = port or _PORTS["http"]
        public = self.public_host
        if public is not None and host.name == public.name:
            ports = {public.port} if public.port else {_PORTS.get(scheme), port}
            return any(own is not None and host.is_at(scheme, own) for own in ports)
        if is_loopback(host.name):
            return host.is_at(scheme, port)
        # An address, unlike a name, cannot be made to lead here from elsewhere.
        here = _address(address)
        return here is not None and _address(host.name) == here and host.is_at(scheme, port)


def _check_origin(method: str, headers: Headers, own: str) -> None:
    """Refuse what a foreign page has sent."""
    if headers.get("authorization", "").lower().startswith("bearer "):
        return
    origin = headers.get("origin")
    if origin is not None:
        good = _without_port(origin) == own
    elif method in _LOOKING or "cookie" not in headers:
        good = True  # looking changes nothing; without a cookie nobody's rights are used
    else:
        good = headers.get("sec-fetch-site") == "same-origin"
    if not good:
        raise _Refusal(
            403,
            "foreign_origin",
            f"this was sent by another page than ours, which is {own}; behind a proxy that speaks HTTPS, name it in"
            " web.trusted_proxies",
        )


def _without_port(origin: str) -> str:
    """An origin without the port that its scheme has anyway."""
    scheme = origin.partition(":")[0]
    return origin.removesuffix(f":{_PORTS.get(scheme)}")


def _limited(receive: Receive, headers: Headers, path: str) -> Receive:
    """What brings the body, as long as it is not too much."""
    if path.endswith(UPLOADS):
        return receive
    known = "cookie" in headers or "authorization" in headers
    most = LARGEST_BODY if known and "/sign-in" not in path else LARGEST_FROM_STRANGERS
    announced = headers.get("content-length", "0")
    if not announced.isdigit() or int(announced) > most:
        raise _Refusal(413, "too_large", f"this is more than the {most} bytes that are taken here")
    taken = 0

    async def limited() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > most:
            raise HTTPException(413, f"this is more than the {most} bytes that are taken here")
        return message

    return limited


def _with_headers(send: Send, *, secure: bool) -> Send:
    """What sends a response, with the headers that every response has; one that a route has set itself stands."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if secure:
                headers["Strict-Transport-Security"] = HSTS
        await send(message)

    return sending
