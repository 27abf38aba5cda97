"""The JSON that `--json` prints about anything but sessions and their logs, whose JSON is in `sessions/json.py`.

The same rules hold: every key is always there, null if it has no value, and times are in ISO 8601 and UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from palaver.sessions.json import format_optional_time, format_time

if TYPE_CHECKING:
    from palaver.delivery.model import AccountHealth
    from palaver.people.model import Member
    from palaver.people.pairing_table import PairingRequest
    from palaver.sessions.model import Project, Session, UndoResult
    from palaver.sessions.share import Share


class ProjectJson(TypedDict):
    id: str
    name: str
    color: str | None
    session_count: int
    created_at: str


class SharePersonJson(TypedDict):
    id: str
    name: str


class ShareJson(TypedDict):
    id: str
    session_id: str
    person: SharePersonJson
    title: str | None
    message_count: int
    created_at: str
    expires_at: str | None
    path: str


class SignInMethodsJson(TypedDict):
    has_password: bool
    passkey_count: int


class ChatAccountJson(TypedDict):
    """An account on a chat platform."""

    platform: str
    account: str


class PairingRequestJson(TypedDict):
    """A stranger who asks for access."""

    id: str
    platform: str
    account: str
    name: str
    created_at: str
    expires_at: str


class PersonJson(TypedDict):
    """A person and how they sign in."""

    id: str
    name: str
    role: str
    timezone: str | None
    platforms: list[str]
    chat_accounts: list[ChatAccountJson]
    sign_in_methods: SignInMethodsJson | None
    last_seen_at: str | None
    created_at: str


class ConnectionTestJson(TypedDict):
    """How a test of a connection has ended."""

    finished_at: str
    seconds: float
    error: str | None


class PlatformAccountJson(TypedDict):
    """An account on a chat platform."""

    platform: str
    account: str
    configured: bool
    state: str
    since: str | None
    name: str | None
    warnings: list[str]
    details: list[str]
    last_message_at: str | None
    error: str | None
    error_at: str | None
    last_test: ConnectionTestJson | None
    waiting: int
    uncertain: int
    failed: int
    delivery_error: str | None
    delivery_error_at: str | None
    home_channel: str | None
    settings_problem: str | None


class UndoJson(TypedDict):
    """The result of an undo or a redo."""

    session_id: str
    turns: int
    messages: int
    prompt: str


def project_to_json(project: Project) -> ProjectJson:
    return {
        "id": project.id,
        "name": project.name,
        "color": project.color,
        "session_count": project.session_count,
        "created_at": format_time(project.created_at),
    }


def request_to_json(request: PairingRequest) -> PairingRequestJson:
    return {
        "id": request.id,
        "platform": str(request.platform),
        "account": request.account,
        "name": request.name,
        "created_at": format_time(request.created_at),
        "expires_at": format_time(request.expires_at),
    }


def person_to_json(member: Member) -> PersonJson:
    methods = member.sign_in_methods
    return {
        "id": member.person.id,
        "name": member.person.name,
        "role": member.person.role.value,
        "timezone": member.person.timezone,
        "platforms": [str(platform) for platform in member.platforms],
        "chat_accounts": [{"platform": str(each.platform), "account": each.account} for each in member.chat_accounts],
        "sign_in_methods": None
        if methods is None
        else {"has_password": methods.has_password, "passkey_count": methods.passkey_count},
        "last_seen_at": format_optional_time(member.last_seen_at),
        "created_at": format_time(member.person.created_at),
    }


def account_to_json(account: AccountHealth, settings_problem: str | None) -> PlatformAccountJson:
    return cast("PlatformAccountJson", {**account.to_dict(), "settings_problem": settings_problem})


def undo_to_json(session: Session, result: UndoResult) -> UndoJson:
    return {
        "session_id": session.id,
        "turns": result.turns,
        "messages": result.messages,
        "prompt": result.prompt,
    }


def share_to_json(share: Share) -> ShareJson:
    return {
        "id": share.id,
        "session_id": share.session_id,
        "person": {"id": share.person_id, "name": share.person_name},
        "title": share.title,
        "message_count": share.message_count,
        "created_at": format_time(share.created_at),
        "expires_at": None if share.expires_at is None else format_time(share.expires_at),
        "path": share.path,
    }
