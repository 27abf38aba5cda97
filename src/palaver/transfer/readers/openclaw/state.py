"""Jobs, allowed people and memories of OpenClaw, which it keeps beside its conversations; and where those took place.

cron/jobs.json                          jobs, in older versions
credentials/<channel>-allowFrom.json    people who were let in, in older versions
state/openclaw.sqlite                   both, since August 2026
openclaw.json                           people that the owner allows in the settings
workspace/MEMORY.md                     what the agent should remember
"""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput, InvalidSource
from palaver.core.foreign_sqlite import InvalidForeignDatabase, open_foreign_database
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.jobs.schedule import MAX_INTERVAL, MIN_INTERVAL, Schedule, format_schedule
from palaver.sessions.targets import parse_target
from palaver.transfer.imported import ImportedAccount, ImportedJob, ImportedMemory, ImportProblem
from palaver.transfer.reader_kit.export_files import UnreadableItem, parse_json
from palaver.transfer.reader_kit.values import (
    as_count,
    as_dict,
    as_id,
    as_list,
    as_text,
    describe_read_error,
    format_count,
    index_by_id,
    is_plain,
    read_json_file,
    read_notes,
    read_plain_file,
    read_time,
    read_title,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# What OpenClaw calls a platform, where we call it differently; its WhatsApp is a linked device.
_PLATFORMS: Final = {"whatsapp": Platform.WHATSAPP_WEB, "mail": Platform.EMAIL, "gmail": Platform.EMAIL}
_NO_PLATFORMS: Final = frozenset({"", "webchat", "internal", "tui", "cli", "last", "none", "unknown"})
_DIRECT: Final = frozenset({"direct", "dm"})
_GROUPS: Final = {"group": ChatType.GROUP, "channel": ChatType.CHANNEL, "room": ChatType.CHANNEL}
_THREAD = re.compile(r":(?:topic|thread):([^:]+)$")
_PREFIX = re.compile(
    r"(?:telegram|tg|discord|slack|whatsapp|signal|matrix|channel|group|room|user|dm|direct|chat):", re.IGNORECASE
)
# Conversations that the agent had with itself: runs of jobs, sub-agents, hooks and the like.
_INTERNAL: Final = frozenset({"cron", "subagent", "hook", "acp", "heartbeat", "node", "dreaming", "boot", "plugin"})
# Platforms on which the chat of a direct message has the id of the person.
_CHAT_IS_PERSON: Final = frozenset({Platform.TELEGRAM, Platform.WHATSAPP_WEB, Platform.SIGNAL, Platform.EMAIL})
_MAX_ID_CHARS: Final = 500
_GENERAL_TOPIC: Final = "1"  # of a group on Telegram: messages there are in no thread
_GROUP_TYPES: Final = {
    Platform.SLACK: ChatType.GROUP,
    Platform.MATRIX: ChatType.GROUP,
    Platform.DISCORD: ChatType.CHANNEL,
}
_MAX_FILE_BYTES: Final = 16_000_000
_MAX_MEMORY_BYTES: Final = 1_000_000
_ALLOW_FILE = re.compile(r"([a-z]+)(?:-[\w.-]+)?-allowFrom\.json")
_ENTRY_PREFIX = re.compile(r"(?:telegram|tg|discord|slack|whatsapp|signal|matrix|user):", re.IGNORECASE)
_KNOWN_PLATFORMS: Final = frozenset({"telegram", "discord", "slack", "whatsapp", "signal", "matrix"})
_ANYONE: Final = "*"


@dataclass(frozen=True, slots=True)
class _Address:
    """The address of the last message, as the index has it."""

    channel: str = ""
    to: str = ""
    thread_id: str = ""
    account: str = ""


def read_state(folder: Path) -> Iterator[ImportedAccount | ImportedJob | ImportedMemory | ImportProblem]:
    problems: list[ImportProblem] = []
    jobs, entries = _read_database(folder, problems)
    content = _read_json(folder / "cron" / "jobs.json", problems)
    jobs |= index_by_id(as_list(content) or as_dict(content).get("jobs"), "id", "jobId")
    for job_id, job in jobs.items():
        yield _convert_job(job_id, job)
    yield from _convert_accounts([*entries, *_read_allow_files(folder, problems), *_read_settings(folder, problems)])
    yield from _read_memories(folder)
    yield from problems


def _read_json(path: Path, problems: list[ImportProblem]) -> Any:
    return read_json_file(path, path.name, problems, max_bytes=_MAX_FILE_BYTES)


def _read_database(
    folder: Path, problems: list[ImportProblem]
) -> tuple[dict[str, dict[str, Any]], list[tuple[str, str]]]:
    """Return the jobs by their ids, and the people who were let in, as (channel, id)."""
    path = folder / "state" / "openclaw.sqlite"
    if not path.is_file() or not is_plain(path):
        return {}, []
    jobs: dict[str, dict[str, Any]] = {}
    people: list[tuple[str, str]] = []
    try:
        with closing(open_foreign_database(path)) as database:
            for row in database.select("cron_jobs", ("job_id", "job_json"), "ORDER BY job_id"):
                job = parse_json(row["job_json"] or "{}")
                jobs[as_id(row["job_id"])] = as_dict(job)
            rows = database.select("channel_pairing_allow_entries", ("channel_key", "entry"), "ORDER BY 1, 2")
            people = [(as_text(row["channel_key"]), as_id(row["entry"])) for row in rows]
    except (InvalidForeignDatabase, UnreadableItem) as error:
        problems.append(ImportProblem(where="state/openclaw.sqlite", what=str(error)))
    return jobs, people


def _convert_job(job_id: str, job: dict[str, Any]) -> ImportedJob | ImportProblem:
    payload, schedule = as_dict(job.get("payload")), as_dict(job.get("schedule"))
    name = read_title(job.get("name")) or f"OpenClaw job {job_id[:8]}"
    where = f"cron/jobs.json, job {name}"
    prompt = as_text(payload.get("message")) or as_text(payload.get("text"))
    if not prompt.strip():
        return ImportProblem(where=where, what="It has no prompt.")
    try:
        written = _convert_schedule(schedule)
    except InvalidInput as error:
        return ImportProblem(where=where, what=str(error))
    key = as_text(job.get("sessionKey"))
    return ImportedJob(
        origin_id=job_id,
        name=name,
        prompt=prompt,
        schedule=written,
        timezone=as_text(schedule.get("tz")) or None,
        targets=_read_targets(job),
        origin=find_source(key, {}) if key else None,
        model=as_text(payload.get("model")) or None,
    )


def _convert_schedule(schedule: dict[str, Any]) -> str:
    kind = as_text(schedule.get("kind"))
    if kind == "cron":
        return " ".join(as_text(schedule.get("expr")).split())
    if kind == "every":
        every = timedelta(minutes=round(as_count(schedule.get("everyMs")) / 60_000))
        if MIN_INTERVAL <= every <= MAX_INTERVAL:
            return format_schedule(Schedule(every=every))
        is_too_often = every < MIN_INTERVAL
        raise InvalidInput(
            "It runs more often than every 5 minutes." if is_too_often else "It runs less often than every 366 days."
        )
    at = read_time(schedule.get("at")) or read_time(schedule.get("atMs"))
    if at is None:
        raise InvalidInput("It has no schedule that can be read.")
    if at <= datetime.now(UTC):
        raise InvalidInput(f"Its only run was at {at:%Y-%m-%d %H:%M} UTC.")
    return format_schedule(Schedule(at=at))


def _read_targets(job: dict[str, Any]) -> tuple[str, ...]:
    """Return where the results go; empty if that is wherever the owner wrote last."""
    payload, delivery = as_dict(job.get("payload")), as_dict(job.get("delivery"))
    channel = (as_text(delivery.get("channel")) or as_text(payload.get("channel"))).lower()
    to = as_id(delivery.get("to")) or as_id(payload.get("to"))
    if channel not in _KNOWN_PLATFORMS or as_text(delivery.get("mode")) in {"none", "webhook"}:
        return ()
    chat, _, thread = _ENTRY_PREFIX.sub("", to, count=1).partition(":topic:")
    target = ":".join(filter(None, (str(_PLATFORMS.get(channel, channel)), chat, thread)))
    try:
        parse_target(target)
    except InvalidInput:
        return ()
    return (target,)


def _read_allow_files(folder: Path, problems: list[ImportProblem]) -> list[tuple[str, str]]:
    """Return the people whose pairing was accepted. Other files in this folder are secrets, and are not opened."""
    people = []
    for path in sorted((folder / "credentials").glob("*-allowFrom.json")):
        if found := _ALLOW_FILE.fullmatch(path.name):
            entries = as_dict(_read_json(path, problems)).get("allowFrom")
            people += [(found[1], as_id(entry)) for entry in as_list(entries)]
    return people


def _read_settings(folder: Path, problems: list[ImportProblem]) -> list[tuple[str, str]]:
    """Return the people that the settings allow. The settings may be JSON5, which we do not read."""
    found: list[ImportProblem] = []
    content = _read_json(folder / "openclaw.json", found)
    problems += (
        ImportProblem(where=each.where, what="The people that it allows were not imported: it is not plain JSON.")
        for each in found
    )
    people = []
    for channel, settings in as_dict(as_dict(content).get("channels")).items():
        accounts = [as_dict(settings), *map(as_dict, as_dict(as_dict(settings).get("accounts")).values())]
        for account in accounts:
            entries = as_list(account.get("allowFrom")) + as_list(as_dict(account.get("dm")).get("allowFrom"))
            people += [(channel, as_id(entry)) for entry in entries]
    return people


def _convert_accounts(people: list[tuple[str, str]]) -> Iterator[ImportedAccount | ImportProblem]:
    seen: set[tuple[str, str]] = set()
    for channel, entry in people:
        user_id = _ENTRY_PREFIX.sub("", entry.strip(), count=1)
        if (channel, user_id) in seen or not user_id:
            continue
        seen.add((channel, user_id))
        where = f"people allowed on {channel}"
        if channel not in _KNOWN_PLATFORMS:
            yield ImportProblem(where=where, what=f"{user_id} is not imported: this platform does not exist here.")
        elif user_id == _ANYONE:
            yield ImportProblem(where=where, what="OpenClaw let anyone in there. Here, new people ask first.")
        elif user_id.startswith("@") and channel != "matrix":
            yield ImportProblem(where=where, what=f"{user_id} is not imported: a name can belong to someone else.")
        else:
            yield ImportedAccount(platform=str(_PLATFORMS.get(channel, channel)), user_id=user_id)


def _read_memories(folder: Path) -> Iterator[ImportedMemory | ImportProblem]:
    """Read the notes that the agent keeps for good; its daily notes are reported and left out."""
    for workspace in sorted(folder.glob("workspace*")):
        if workspace.is_symlink() or not workspace.is_dir():
            continue
        names = sorted(path.name for path in workspace.iterdir() if path.name.lower() == "memory.md")
        for name in names[:1]:
            yield from _read_notes(workspace / name, f"{workspace.name}/{name}")
        daily = [path for path in (workspace / "memory").glob("*.md") if path.is_file()]
        if daily:
            yield ImportProblem(
                where=f"{workspace.name}/memory",
                what=f"Not imported: {format_count(len(daily), 'file')} with daily notes.",
            )


def _read_notes(path: Path, name: str) -> Iterator[ImportedMemory | ImportProblem]:
    try:
        text = read_plain_file(path, _MAX_MEMORY_BYTES).decode("utf-8", "replace")
    except OSError as error:
        yield ImportProblem(where=name, what=describe_read_error(error))
    else:
        yield from read_notes(text)


def is_internal(key: str) -> bool:
    """Return whether a session is one that the agent had with itself."""
    parts = _strip_agent(key).lower().split(":")
    return parts[0] in _INTERNAL or parts[0].startswith("node-") or "subagent" in parts or parts[-1] == "heartbeat"


def _strip_agent(key: str) -> str:
    first, _, rest = key.partition(":")
    return rest.partition(":")[2] if first.lower() == "agent" else key


def find_source(key: str, entry: dict[str, Any]) -> SessionSource | None:
    """Return where a session took place; None if that was no platform of ours, such as OpenClaw's own page."""
    rest, thread_id = _strip_agent(key), ""
    if found := _THREAD.search(rest):
        rest, thread_id = rest[: found.start()], found[1]
    addresses = list(_read_addresses(entry))
    parts = rest.split(":")
    index = next((number for number, part in enumerate(parts[:-1]) if part in _DIRECT or part in _GROUPS), None)
    channel = parts[0] if index else ""
    identity = "" if index is None else ":".join(parts[index + 1 :])
    try:
        platform = _find_platform(channel, addresses)
        if platform is None:
            return None
        if index is not None and parts[index] in _GROUPS:
            return _make_group(platform, _GROUPS[parts[index]], identity, thread_id, entry, addresses)
        return _make_direct(platform, identity if channel else "", entry, addresses)
    except InvalidSource:
        return None


def _read_addresses(entry: dict[str, Any]) -> Iterator[_Address]:
    """Return what the index says about where a session is, the most reliable first."""
    origin, context = as_dict(entry.get("origin")), as_dict(entry.get("deliveryContext"))
    yield _read_address(context.get("channel"), context.get("to"), context.get("threadId"), context.get("accountId"))
    yield _read_address(
        entry.get("lastChannel"), entry.get("lastTo"), entry.get("lastThreadId"), entry.get("lastAccountId")
    )
    channel = origin.get("provider") or origin.get("surface") or entry.get("channel")
    for to in (origin.get("to"), origin.get("from"), entry.get("groupId")):
        yield _read_address(channel, to, origin.get("threadId"), origin.get("accountId"))


def _read_address(channel: object, to: object, thread_id: object, account: object) -> _Address:
    target, thread = as_id(to)[:_MAX_ID_CHARS], as_id(thread_id)[:_MAX_ID_CHARS]
    if found := _THREAD.search(target):
        target, thread = target[: found.start()], thread or found[1]
    while found := _PREFIX.match(target):
        target = target[found.end() :]
    return _Address(as_text(channel).strip().lower(), target, thread, as_text(account))


def _find_platform(channel: str, addresses: list[_Address]) -> Platform | None:
    for name in (channel.lower(), *(address.channel for address in addresses)):
        if name not in _NO_PLATFORMS:
            return _PLATFORMS.get(name) or Platform(name)
    return None


def _find_raw_id(identity: str, addresses: list[_Address]) -> str:
    """Return an id as the platform wrote it: keys are in lower case."""
    return next((each.to for each in addresses if each.to.lower() == identity.lower()), identity)


def _find_account(addresses: list[_Address]) -> str:
    account = next((address.account for address in addresses if address.account), "")
    return "" if account == "default" else account


def _make_direct(
    platform: Platform, identity: str, entry: dict[str, Any], addresses: list[_Address]
) -> SessionSource | None:
    origin = as_dict(entry.get("origin"))
    person = _find_raw_id(identity, addresses) if identity else as_id(origin.get("nativeDirectUserId"))
    person = person or next((each.to for each in addresses if each.to and each.channel not in _NO_PLATFORMS), "")
    chat = person if platform in _CHAT_IS_PERSON else as_id(origin.get("nativeChannelId"))
    if not person and not chat:
        return None
    return SessionSource(platform, chat, user_id=person, user_name=_read_label(entry), account=_find_account(addresses))


def _make_group(
    platform: Platform,
    chat_type: ChatType,
    identity: str,
    thread_id: str,
    entry: dict[str, Any],
    addresses: list[_Address],
) -> SessionSource:
    chat = _find_raw_id(identity, addresses)
    if platform == Platform.SLACK and chat == identity:
        chat = chat.upper()
    if platform == Platform.TELEGRAM and thread_id == _GENERAL_TOPIC:
        thread_id = ""
    return SessionSource(
        platform,
        chat,
        chat_type=_GROUP_TYPES.get(platform, chat_type),
        chat_name=_read_label(entry),
        thread_id=thread_id or None,
        account=_find_account(addresses),
    )


def _read_label(entry: dict[str, Any]) -> str | None:
    names = (entry.get("subject"), entry.get("displayName"), as_dict(entry.get("origin")).get("label"))
    return next((text for name in names if (text := as_text(name).strip())), None)
