"""The JSON of people, how they sign in, and their requests for access: for the API and `--json`."""

from __future__ import annotations

from typing import Annotated

from palaver.core.wire import Doc, Time, TypedDict, build_json
from palaver.people.model import Member, Role, Scope


class PersonJson(TypedDict):
    """A person."""

    id: str
    name: str
    role: Role
    timezone: Annotated[str | None, Doc("The person's time zone, an IANA name; null: the server's.")]


class SignInMethodsJson(TypedDict):
    """The ways in which a person can sign in, besides with a link."""

    has_password: bool
    passkey_count: int


class ChatAccountJson(TypedDict):
    """An account on a chat platform."""

    platform: str
    account: Annotated[str, Doc("The platform's own id of the user, which never changes.")]


class MemberJson(PersonJson):
    """A person, as the owner sees them."""

    platforms: Annotated[list[str], Doc("The platforms that they have written on.")]
    chat_accounts: Annotated[list[ChatAccountJson], Doc("Their accounts on chat platforms.")]
    sign_in_methods: Annotated[SignInMethodsJson | None, Doc("How they can sign in; null if they can't.")]
    last_seen_at: Annotated[Time | None, Doc("When they last used the web page.")]
    created_at: Time
    uses_terminal: Annotated[bool, Doc("They use the terminal of the server, and therefore are always an owner.")]


class PairingRequestJson(TypedDict):
    """A stranger who asks for access. The stranger has a code, which is not shown here."""

    id: str
    platform: str
    account: Annotated[str, Doc("The platform's own id of the stranger, which never changes.")]
    name: Annotated[str, Doc("As the stranger calls themselves.")]
    is_channel: Annotated[bool, Doc("A channel, in which all who can post write as the channel: only a guest.")]
    created_at: Time
    expires_at: Time


class PasskeyJson(TypedDict):
    """A passkey."""

    id: str
    name: str
    site: Annotated[str, Doc("The host that it was created for; it works only there.")]
    created_at: Time
    last_used_at: Time | None


class DeviceJson(TypedDict):
    """A browser that is signed in to your account."""

    id: str
    name: str
    sign_in_method: Annotated[str, Doc("How it signed in: `link`, `password` or `passkey`.")]
    ip_address: Annotated[str, Doc("The IP address that it signed in from.")]
    signed_in_at: Time
    last_seen_at: Time
    is_current: Annotated[bool, Doc("Whether this request comes from it.")]


class TokenJson(TypedDict):
    """An API token, without its secret."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: Time
    last_used_at: Time | None
    expires_at: Time | None


def member_to_json(member: Member) -> MemberJson:
    person = member.person
    return build_json(MemberJson, member, **build_json(PersonJson, person), created_at=person.created_at)
