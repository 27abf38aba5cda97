"""People who were allowed to talk to Hermes, and its home channels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.core.errors import InvalidSource
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.transfer.imported import ImportedAccount, ImportedHomeChannel, ImportProblem
from palaver.transfer.readers.hermes.sources import convert_chat_id, convert_platform
from palaver.transfer.readers.json_stream import UnreadableItem, parse_json
from palaver.transfer.readers.plain_file import read_plain_file
from palaver.transfer.readers.values import as_dict, as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from palaver.transfer.readers.hermes.settings_files import HermesSettings, HomeChat


def read_accounts(
    folder: Path, make_name: Callable[[Path], str], settings: HermesSettings, names: Mapping[tuple[str, str], str]
) -> Iterator[ImportedAccount | ImportProblem]:
    """Read allow-lists and pairings; each person on a platform comes once."""
    accounts: dict[tuple[str, str], ImportedAccount] = {}
    problems: list[ImportProblem] = []
    for user in settings.allowed:
        _add(accounts, problems, user.platform, user.user_id, is_owner=user.is_admin)
    for path in _list_pairings(folder):
        platform = path.name.removesuffix("-approved.json")
        try:
            approved = as_dict(parse_json(read_plain_file(path)))
        except (OSError, UnreadableItem) as error:
            problems.append(ImportProblem(where=make_name(path), what=f"Pairings cannot be read: {error}"))
            continue
        for user_id, details in approved.items():
            _add(accounts, problems, platform, user_id, name=as_text(as_dict(details).get("user_name")))
    for account in accounts.values():
        yield account if account.name else replace(account, name=names.get((account.platform, account.user_id), ""))
    yield from dict.fromkeys(problems)


def _list_pairings(folder: Path) -> Iterable[Path]:
    for place in (folder / "pairing", folder / "platforms" / "pairing"):
        yield from sorted(place.glob("*-approved.json"))


def _add(
    accounts: dict[tuple[str, str], ImportedAccount],
    problems: list[ImportProblem],
    platform_name: str,
    user_id: str,
    *,
    name: str = "",
    is_owner: bool = False,
) -> None:
    if user_id == "*":
        place = f"on {platform_name}" if platform_name else "on every platform"
        what = (
            f"Everyone was allowed {place}. That is not imported: set who may talk to the agent in the server settings."
        )
        problems.append(ImportProblem(where="allow-list", what=what))
        return
    if not platform_name:
        problems.append(
            ImportProblem(
                where="GATEWAY_ALLOWED_USERS", what=f"{user_id} names no platform, so the person is left out."
            )
        )
        return
    try:
        platform = convert_platform(platform_name)
    except InvalidSource as error:
        problems.append(ImportProblem(where="allow-list", what=str(error)))
        return
    key = (str(platform), convert_chat_id(platform, user_id))
    known = accounts.get(key, ImportedAccount(platform=key[0], user_id=key[1]))
    accounts[key] = replace(known, name=known.name or name, is_owner=known.is_owner or is_owner)


def read_home_channels(
    settings: HermesSettings, chats: Mapping[tuple[str, str], SessionSource]
) -> Iterator[ImportedHomeChannel | ImportProblem]:
    """Read the home channel of each platform, as the chat that is known from conversations, if it is."""
    for home in settings.homes.values():
        try:
            yield ImportedHomeChannel(source=_build_home(home, chats))
        except InvalidSource as error:
            yield ImportProblem(where=f"home channel of {home.platform}", what=str(error))


def _build_home(home: HomeChat, chats: Mapping[tuple[str, str], SessionSource]) -> SessionSource:
    platform = convert_platform(home.platform)
    chat_id = convert_chat_id(platform, home.chat_id)
    known = chats.get((str(platform), chat_id))
    chat_type = known.chat_type if known else _guess_chat_type(platform, home.chat_id)
    user_id = (known.user_id if known else chat_id) if chat_type is ChatType.DM else None
    return SessionSource(
        platform,
        chat_id,
        chat_type=chat_type,
        chat_name=(known.chat_name if known else None) or home.name or None,
        user_id=user_id,
        user_name=known.user_name if known and chat_type is ChatType.DM else None,
        thread_id=home.thread_id or None,
    )


def _guess_chat_type(platform: Platform, chat_id: str) -> ChatType:
    if platform == Platform.DISCORD:
        return ChatType.CHANNEL
    is_group = {
        Platform.TELEGRAM: chat_id.startswith("-"),
        Platform.SLACK: not chat_id.startswith("D"),
        Platform.MATRIX: True,
        Platform.SIGNAL: chat_id.startswith("group:"),
        Platform.WHATSAPP_WEB: chat_id.endswith("@g.us"),
    }.get(platform, False)
    return ChatType.GROUP if is_group else ChatType.DM
