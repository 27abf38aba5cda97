"""How people sign in: the rules for names, passwords and tokens, and the values that stand for what they have.

Owns what is a name, which password is too weak, what a token may do, how many attempts are too many, and how a device
is called. Secrets pass through here only to be judged: nothing in these values is one, but for a `Fresh` thing that is
shown once.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
import unicodedata
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar

from palaver.domain.errors import InvalidInput, InvalidName, InvalidTitle, OwnerOnly, WeakPassword
from palaver.domain.person import Role
from palaver.domain.titles import clean_title

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from palaver.domain.person import Person, Principal

T = TypeVar("T")

LONGEST_NAME: Final = 60
SHORTEST_PASSWORD: Final = 8
LONGEST_PASSWORD: Final = 256

LINK_LASTS: Final = timedelta(minutes=15)  # somebody sits at the terminal and opens it
INVITATION_LASTS: Final = timedelta(days=3)  # somebody has to be sent it first
CHALLENGE_LASTS: Final = timedelta(minutes=5)
SIGN_IN_LASTS: Final = timedelta(days=180)
SIGN_IN_RESTS: Final = timedelta(days=30)  # unused for so long, it ends
TOKEN_PREFIX: Final = "pal_"  # noqa: S105  (so that people and scanners know one when they see it)


# ---- what somebody has -----------------------------------------------------------------------------------


class Scope(StrEnum):
    """What a token may be used for."""

    READ = "read"  # look at conversations
    WRITE = "write"  # change them, and speak in them
    CHAT = "chat"  # speak to the agent through the OpenAI-compatible door
    ADMIN = "admin"  # what only an owner may do


EVERY_SCOPE: Final = frozenset(Scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """Somebody who has proven who they are, and how."""

    person: Person
    by: Literal["cookie", "token"]
    scopes: frozenset[str]
    id: str  # of the device or the token

    @property
    def principal(self) -> Principal:
        """This person, asking."""
        return self.person.principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A browser in which somebody is signed in."""

    id: str
    name: str
    way: str
    address: str
    signed_in_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """What a program signs in with."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    used_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passkey:
    """A key in somebody's device or password manager; this is its public half."""

    id: str
    name: str
    site: str  # the host it was made for, and the only one at which it works
    created_at: datetime
    used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How somebody can sign in."""

    password: bool
    passkeys: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Somebody as the owner sees them: the person, where they are known, and how they sign in."""

    person: Person
    platforms: tuple[str, ...]
    ways: Ways | None  # None: they cannot sign in
    seen_at: datetime | None
    at_terminal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """Somebody, and the secret of a link that signs them in once."""

    member: Member
    secret: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Fresh(Generic[T]):
    """Something new with its secret, which is shown once and then known to nobody."""

    made: T
    secret: str


# ---- secrets ---------------------------------------------------------------------------------------------


def new_secret() -> str:
    """256 random bits, as text that can stand in a link or a header."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """What is stored of a random secret. A slow hash would add nothing: there is nothing to guess."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


# ---- names -----------------------------------------------------------------------------------------------


def clean_name(text: str) -> str:
    """The text as somebody's name; refused when nothing printable is left of it, or too much."""
    try:
        name = clean_title(text)
    except InvalidTitle:
        name = ""
    if not name or len(name) > LONGEST_NAME:
        raise InvalidName(f"name: one line with 1 to {LONGEST_NAME} printable characters", limit=LONGEST_NAME)
    return name


def name_key(name: str) -> str:
    """What makes two names the same: letter case, spaces and the way an accent was typed do not count."""
    return unicodedata.normalize("NFKC", " ".join(name.split()).casefold())


# ---- passwords -------------------------------------------------------------------------------------------

_RUNS = ("01234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "qwertzuiop", "asdfghjkl", "zxcvbnm", "yxcvbnm")
_COMMON = frozenset(
    [
        *("password", "passwort", "passw0rd", "p4ssword", "p4ssw0rd", "motdepasse", "contrasena", "changeme"),
        *("letmein", "welcome", "willkommen", "iloveyou", "trustno", "sunshine", "princess", "football", "baseball"),
        *("superman", "batman", "dragon", "monkey", "shadow", "master", "admin", "administrator", "root", "secret"),
        *("login", "access", "starwars", "whatever", "computer", "internet", "hello", "hallo", "test", "tester"),
        *("testing", "qwerty", "qwertz", "azerty", "asdf", "palaver", "owner", "guest", "user", "default", "summer"),
        *("winter", "spring", "autumn", "michael", "jennifer", "jordan", "charlie", "hunter", "killer", "pokemon"),
    ]
)
_AROUND = re.compile(r"^[\W\d_]+|[\W\d_]+$")


def folded_password(password: str) -> str:
    """The password as it is hashed: the same characters, however a keyboard composes them."""
    return unicodedata.normalize("NFKC", password)


def check_password(password: str, name: str) -> None:
    """Refuse a password that is too short, or among the first that anybody would try."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise WeakPassword(
            f"password: use {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters",
            least=SHORTEST_PASSWORD,
            limit=LONGEST_PASSWORD,
        )
    low = folded_password(password).casefold()
    bare = _AROUND.sub("", low)
    if bare in _COMMON or bare == _AROUND.sub("", name_key(name)) or len(set(low)) < 5 or _is_run(low):
        raise WeakPassword("password: this is one of the first that anybody would try; a few words in a row are better")


def _is_run(text: str) -> bool:
    """Whether a text is little more than walks along a keyboard or an alphabet, forwards or backwards."""
    steps = [text[place : place + 3] for place in range(len(text) - 2)]
    walked = sum(any(step in line or step in line[::-1] for line in _RUNS) for step in steps)
    return walked * 3 >= len(steps) * 2


# ---- tokens ----------------------------------------------------------------------------------------------


def checked_scopes(wanted: Iterable[str], role: Role) -> tuple[Scope, ...]:
    """What a token of somebody with this role may be made for."""
    scopes = {Scope(each) for each in wanted}
    if not scopes:
        raise InvalidInput(f"scopes: name at least one of {', '.join(Scope)}")
    if Scope.ADMIN in scopes and role is not Role.OWNER:
        raise OwnerOnly("only an owner can make a token with the scope admin", scope=Scope.ADMIN)
    return tuple(scope for scope in Scope if scope in scopes)


# ---- attempts --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limit:
    """So many attempts at once, and one more after each pause."""

    at_once: int
    pause: timedelta


PER_NAME: Final = Limit(10, timedelta(minutes=1))
PER_ADDRESS: Final = Limit(30, timedelta(seconds=20))
CHALLENGES: Final = Limit(60, timedelta(seconds=5))


def address_group(address: str) -> str:
    """Whose address it is for a limit: an IPv6 customer has a whole network of them."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return str(ipaddress.ip_network((known, 64), strict=False))
    return str(known)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server at this host."""
    if host.casefold() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return False


# ---- devices ---------------------------------------------------------------------------------------------

# The first that is found counts: most browsers claim to be several others too.
_BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Vivaldi/", "Vivaldi"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def device_name(user_agent: str) -> str:
    """A device in a few words, from what a browser says of itself: `Firefox, Linux`."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), None)
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), None)
    if browser and system:
        return f"{browser}, {system}"
    shown = "".join(sign for sign in user_agent[:40] if sign.isprintable())
    return browser or system or shown.strip() or "Unknown device"
