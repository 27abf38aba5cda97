"""People and principals, and what a principal may do with a conversation.

Every read of a conversation carries a `Principal`. What that principal may do is decided here: a person may do
everything with their own conversations and a part of it in shared ones, and an owner may do everything. Whether a
conversation is visible at all is decided by `sessions/view/scope.py`, in the same query that finds it, so that a
conversation of another person looks exactly like one that does not exist.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from palaver.core.dataclass import dataclass
from palaver.core.errors import (
    ConfigError,
    InvalidInput,
    InvalidName,
    InvalidTitle,
    NotAllowed,
    OwnerRequired,
    WeakPassword,
)
from palaver.core.text import normalize_unicode
from palaver.core.texts import say
from palaver.core.titles import clean_title

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from palaver.core.ids import JobId, PersonId
    from palaver.core.source import Platform, SessionSource

T = TypeVar("T")


class Role(StrEnum):
    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"


ROLE_RANKS: Final = {Role.GUEST: 0, Role.MEMBER: 1, Role.OWNER: 2}


@dataclass(frozen=True, slots=True)
class Principal:
    """The one who makes a request: a person, or a job on a person's behalf."""

    person_id: PersonId
    role: Role = Role.MEMBER
    job_id: JobId | None = None

    def to_dict(self) -> dict[str, str | None]:
        return {"person_id": self.person_id, "role": self.role.value, "job_id": self.job_id}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Principal:
        """Read what `to_dict` returned; keys that a newer version may have added are ignored."""
        return cls(data["person_id"], Role(data["role"]), data.get("job_id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A human with one or more linked platform accounts."""

    id: PersonId
    name: str
    role: Role
    created_at: datetime
    timezone: str | None = None  # an IANA name; None: the gateway's

    @property
    def principal(self) -> Principal:
        return Principal(self.id, self.role)


@dataclass(frozen=True, slots=True)
class NamedPerson:
    """A person as others see them: no account, no platform."""

    id: PersonId
    name: str


class Action(StrEnum):
    """An action of a principal on a conversation that they see."""

    READ = "read"
    RENAME = "rename"
    UNDO = "undo"
    FORK = "fork"
    ORGANIZE = "organize"  # pin, archive, move to a project
    DELETE = "delete"


_ALLOWED_IN_SHARED = frozenset({Action.READ, Action.RENAME, Action.UNDO, Action.FORK})


def check_action_allowed(principal: Principal, action: Action, *, shared: bool) -> None:
    """Raise OwnerRequired unless this principal may do this with a conversation that they see."""
    if principal.role is Role.OWNER or not shared or action in _ALLOWED_IN_SHARED:
        return
    message = say(
        "role.shared_action", "Only an owner can {action} a conversation that several people share.", action=action
    )
    raise OwnerRequired(message, action=action)


def check_is_owner(principal: Principal, problem: str = "") -> None:
    """Raise OwnerRequired unless this is an owner, and no job of one."""
    if principal.role is not Role.OWNER or principal.job_id is not None:
        raise OwnerRequired(problem)


def check_can_view_all(principal: Principal) -> None:
    """Raise OwnerRequired unless this principal may see the conversations of all people."""
    check_is_owner(principal, say("role.others", "Only an owner can view the conversations of other people."))


@dataclass(frozen=True, slots=True)
class Author:
    """A person as messages name them: by id, or by their own audience, to which their own sessions belong."""

    person_id: str
    audience_no: int


# ---- accounts --------------------------------------------------------------------------------------------

# No value here holds a secret, except `NewSecret` and `Invitation`, whose secret is shown once.

MAX_NAME_CHARS: Final = 60
MIN_PASSWORD_CHARS: Final = 8
MAX_PASSWORD_CHARS: Final = 256

SIGN_IN_LINK_LIFETIME: Final = timedelta(minutes=15)  # the person opens it right away, at their terminal
INVITATION_LIFETIME: Final = timedelta(days=3)  # it has to reach the invited person first
CHALLENGE_LIFETIME: Final = timedelta(minutes=5)
SIGN_IN_LIFETIME: Final = timedelta(days=180)
SIGN_IN_IDLE_LIMIT: Final = timedelta(days=30)  # a sign-in that is unused for this long ends
KNOWN_DEVICE_LIFETIME: Final = timedelta(days=400)  # browsers keep no cookie longer
TOKEN_PREFIX: Final = "pal_"  # noqa: S105  (lets people and secret scanners recognize a token)


class SetupStep(StrEnum):
    """A step of setting up the server that the page offers to owners."""

    MODEL = "model"
    PLATFORM = "platform"


class Scope(StrEnum):
    READ = "read"  # read conversations
    WRITE = "write"  # change conversations and send messages
    CHAT = "chat"  # talk to the agent through the OpenAI-compatible API
    ADMIN = "admin"  # do what only an owner may do


ALL_SCOPES: Final = frozenset(Scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedInPerson:
    """A person who is signed in, and the credential they used."""

    person: Person
    credential_type: Literal["cookie", "token"]
    scopes: frozenset[str]
    credential_id: str  # id of the device or of the token

    @property
    def principal(self) -> Principal:
        return self.person.principal

    @property
    def token_scopes(self) -> frozenset[str] | None:
        """The scopes of the token; None for a browser, in which the person is signed in."""
        return self.scopes if self.credential_type == "token" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A browser in which a person is signed in."""

    id: str
    name: str
    sign_in_method: str
    ip_address: str
    signed_in_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """A token with which a program signs in; the secret itself is not here."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passkey:
    """A passkey of a person: the public half of a key that is in their device or password manager."""

    id: str
    name: str
    site: str  # the host it was made for; it works at no other
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInMethods:
    """The ways in which a person can sign in."""

    has_password: bool
    passkey_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A person as the owner sees them: their platforms and accounts, and how they sign in."""

    person: Person
    platforms: tuple[str, ...]
    chat_accounts: tuple[Identity, ...]
    sign_in_methods: SignInMethods | None  # None: the person cannot sign in
    last_seen_at: datetime | None
    uses_terminal: bool


@dataclass(frozen=True, slots=True)
class Identity:
    """A platform account of a person: the platform, and its own id of the user."""

    platform: Platform
    account: str
    dm_source: SessionSource | None = None  # where they last wrote a direct message from


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A person, and the secret of a link that signs them in once."""

    member: Member
    secret: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class NewSecret(Generic[T]):
    """A new item and its secret. The secret is shown once; only its hash is stored."""

    item: T
    secret: str


def generate_secret() -> str:
    """Return 256 random bits as text that is safe in a link and in a header."""
    return secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    """Return the stored hash of a random secret. A slow hash would add nothing: such a secret cannot be guessed."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


# ---- secrets, names and passwords -------------------------------------------------------------------------


def clean_person_name(text: str) -> str:
    """Clean a person's name; raise InvalidName when it is empty or too long."""
    try:
        name = clean_title(text)
    except InvalidTitle:
        name = ""
    if not name or len(name) > MAX_NAME_CHARS:
        raise InvalidName(f"A name is one line of 1 to {MAX_NAME_CHARS} characters.", limit=MAX_NAME_CHARS)
    return name


def normalize_name(name: str) -> str:
    """Return the form in which names are compared: letter case, spaces and the way an accent was typed do not count."""
    return normalize_unicode("NFKC", " ".join(name.split()).casefold())


_KEY_SEQUENCES = (
    "01234567890",
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiop",
    "qwertzuiop",
    "asdfghjkl",
    "zxcvbnm",
    "yxcvbnm",
)
_COMMON_PASSWORDS = frozenset(
    [
        *("password", "passwort", "passw0rd", "p4ssword", "p4ssw0rd", "motdepasse", "contrasena", "changeme"),
        *("letmein", "welcome", "willkommen", "iloveyou", "trustno", "sunshine", "princess", "football", "baseball"),
        *("superman", "batman", "dragon", "monkey", "shadow", "master", "admin", "administrator", "root", "secret"),
        *("login", "access", "starwars", "whatever", "computer", "internet", "hello", "hallo", "test", "tester"),
        *("testing", "qwerty", "qwertz", "azerty", "asdf", "palaver", "owner", "guest", "user", "default", "summer"),
        *("winter", "spring", "autumn", "michael", "jennifer", "jordan", "charlie", "hunter", "killer", "pokemon"),
    ]
)
_OUTER_NON_LETTERS = re.compile(r"^[\W\d_]+|[\W\d_]+$")


def normalize_password(password: str) -> str:
    """Return the form that is hashed, so that it does not matter how a keyboard composes a character."""
    return normalize_unicode("NFKC", password)


def check_password(password: str, name: str) -> None:
    """Raise WeakPassword when the password has the wrong length or is easy to guess."""
    if not MIN_PASSWORD_CHARS <= len(password) <= MAX_PASSWORD_CHARS:
        raise WeakPassword(
            f"A password has {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS} characters.",
            minimum=MIN_PASSWORD_CHARS,
            limit=MAX_PASSWORD_CHARS,
        )
    folded = normalize_password(password).casefold()
    core = _OUTER_NON_LETTERS.sub("", folded)
    if (
        core in _COMMON_PASSWORDS
        or core == _OUTER_NON_LETTERS.sub("", normalize_name(name))
        or len(set(folded)) < 5
        or _is_key_sequence(folded)
    ):
        raise WeakPassword("That password is too common. Use a few unrelated words instead.")


def _is_key_sequence(text: str) -> bool:
    """Return whether at least two thirds of a text follow a keyboard row or the alphabet, forwards or backwards."""
    triples = [text[start : start + 3] for start in range(len(text) - 2)]
    in_sequence = sum(any(triple in row or triple in row[::-1] for row in _KEY_SEQUENCES) for triple in triples)
    return in_sequence * 3 >= len(triples) * 2


def parse_scopes(names: Iterable[str], role: Role) -> tuple[Scope, ...]:
    """Return the scopes of a new token in their usual order; raise when a person with this role may not have them."""
    scopes = {Scope(name) for name in names}
    if not scopes:
        raise InvalidInput(f"scopes: choose at least one of {', '.join(Scope)}")
    if Scope.ADMIN in scopes and role is not Role.OWNER:
        raise OwnerRequired("Only an owner can create a token with the scope admin.", scope=Scope.ADMIN)
    return tuple(scope for scope in Scope if scope in scopes)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Allows `burst` attempts at once, and one more after each `refill_interval`."""

    burst: int
    refill_interval: timedelta


# Of browsers in which the person has not signed in before: ten guesses stop one stranger, fifty stop all of them.
ATTEMPTS_PER_ADDRESS: Final = RateLimit(30, timedelta(seconds=20))
ATTEMPTS_PER_NAME_AND_ADDRESS: Final = RateLimit(10, timedelta(minutes=1))
ATTEMPTS_PER_NAME: Final = RateLimit(50, timedelta(seconds=30))
# Of one browser in which the person has signed in before, or is signed in.
ATTEMPTS_PER_DEVICE: Final = RateLimit(10, timedelta(minutes=1))
CHALLENGES_PER_ADDRESS: Final = RateLimit(60, timedelta(seconds=5))


@lru_cache(maxsize=16)  # the guard asks for the same ones with each request
def parse_ip_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an IP address, also in brackets, with a zone, or IPv4 written as IPv6; None if it is not an address."""
    try:
        address = ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def group_ip_address(address: str) -> str:
    """Return the address or network that shares one rate limit: an IPv6 customer has a whole /64 network."""
    parsed = parse_ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return address if parsed is None else str(parsed)


def is_loopback(host: str) -> bool:
    """Return whether a server that listens at this host is reachable only from this machine."""
    address = parse_ip_address(host)
    return host.casefold() == "localhost" or (address is not None and address.is_loopback)


# ---- devices ---------------------------------------------------------------------------------------------

# The first match counts: most browsers also claim to be several others.
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


def describe_device(user_agent: str) -> str:
    """Name a device after its browser and system: `Firefox, Linux`."""
    browser = next((name for marker, name in _BROWSERS if marker in user_agent), None)
    system = next((name for marker, name in _SYSTEMS if marker in user_agent), None)
    if browser and system:
        return f"{browser}, {system}"
    readable = "".join(char for char in user_agent[:40] if char.isprintable())
    return browser or system or readable.strip() or "Unknown device"


# ---- commands --------------------------------------------------------------------------------------------

# The slash commands of guests, unless the operator has chosen others. Members may use all but those of owners.
DEFAULT_GUEST_COMMANDS: Final = frozenset(
    {
        *("new", "reset", "resume", "sessions", "search", "title", "undo", "redo", "restore", "retry", "stop"),
        *("versions", "version", "status", "usage", "why", "link", "unlink", "whoami", "help"),
    }
)

OWNER_COMMANDS = frozenset({"pair", "sethere", "sethome"})


def can_use_command(role: Role, command: str, guest_commands: Collection[str] = DEFAULT_GUEST_COMMANDS) -> bool:
    """Return whether people with this role may use a command; `guest_commands` are those that guests may use."""
    if command in OWNER_COMMANDS:
        return role is Role.OWNER
    return role is not Role.GUEST or command in guest_commands


def check_permission(
    principal: Principal, command: str, guest_commands: Collection[str] = DEFAULT_GUEST_COMMANDS
) -> None:
    if can_use_command(principal.role, command, guest_commands):
        return
    if principal.role is Role.MEMBER:
        message = say(
            "role.owner_command", "Only an owner can use /{command}. Use /help to see your commands.", command=command
        )
        raise OwnerRequired(message, command=command)
    message = say("role.guest_command", "Guests can't use /{command}. Use /help to see your commands.", command=command)
    raise NotAllowed(message, command=command)


def find_guest_command_problem(guest_commands: Collection[str], known: Collection[str]) -> str | None:
    """Say which commands the operator gives guests although they do not exist or are for owners; None if none."""
    wrong = sorted({*guest_commands} - {*known} | ({*guest_commands} & OWNER_COMMANDS))
    allowed = ", ".join(sorted({*known} - OWNER_COMMANDS))
    return f"{', '.join(wrong)} is not allowed ({allowed})" if wrong else None


def check_guest_commands(guest_commands: Collection[str], known: Collection[str]) -> None:
    """Raise `ConfigError` if the operator gives guests a command that does not exist or that is for owners."""
    problem = find_guest_command_problem(guest_commands, known)
    if problem is not None:
        raise ConfigError(f"people.guest_commands: {problem}", key="people.guest_commands")
