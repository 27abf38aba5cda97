"""Jobs and memories of Hermes, and the sources that its jobs and conversations name."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput, InvalidSource
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.jobs.schedule import format_schedule, parse_schedule
from palaver.sessions.targets import format_chat_target, parse_target
from palaver.transfer.imported import ImportedJob, ImportedMemory, ImportProblem
from palaver.transfer.reader_kit.values import (
    as_count,
    as_dict,
    as_id,
    as_list,
    as_text,
    read_json_file,
    read_text_file,
)
from palaver.transfer.readers.hermes.records import read_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path


_SEPARATOR: Final = "\n§\n"
_FILES: Final = ("MEMORY.md", "USER.md")
_MAX_FILE_CHARS: Final = 4_000_000

# Sessions from these belong to the person who imports them: they name no chat on a platform.
OWN_SOURCES: Final = frozenset(
    {"", "cli", "tui", "local", "webui", "desktop", "acp", "cron", "api_server", "tool", "unknown", "bg", "subagent"}
)
_PLATFORM_NAMES: Final = {"whatsapp": Platform.WHATSAPP_WEB, "whatsapp_cloud": Platform.WHATSAPP}
_PHONE_SERVER: Final = "@s.whatsapp.net"
_CHAT_OF_USER: Final = frozenset({Platform.TELEGRAM, Platform.WHATSAPP, Platform.WHATSAPP_WEB, Platform.SIGNAL})
_IGNORED: Final = {
    "skills": "skills",
    "context_from": "the results of other jobs",
    "enabled_toolsets": "its own list of tools",
    "workdir": "its own working folder",
}


def read_memories(folder: Path, make_name: Callable[[Path], str]) -> Iterator[ImportedMemory | ImportProblem]:
    """Read each entry once; its id is made of its words, so that a second import recognizes it."""
    seen = set()
    for file_name in _FILES:
        path = folder / "memories" / file_name
        problems: list[ImportProblem] = []
        content = read_text_file(path, make_name(path), problems, _MAX_FILE_CHARS)
        yield from problems
        if content is None:
            continue
        at = None
        with suppress(OSError):  # it was deleted meanwhile
            at = datetime.fromtimestamp(int(path.stat().st_mtime), UTC)
        for entry in content.replace("\r\n", "\n").split(_SEPARATOR):
            text = as_text(entry).strip()
            if text and text not in seen:
                seen.add(text)
                digest = sha256(text.encode("utf-8", "replace")).hexdigest()[:24]
                yield ImportedMemory(origin_id=f"{file_name}:{digest}", text=text, at=at)


# ---- sources -------------------------------------------------------------------------------------------------------
#
# Where a conversation of Hermes took place, in the form that our adapters give to the same chat.


def convert_platform(name: str) -> Platform:
    """Return our platform; raise InvalidSource if the name is none."""
    return _PLATFORM_NAMES.get(name.lower()) or Platform(name)


def convert_origin(origin: Mapping[str, Any]) -> SessionSource | None:
    """Read a source as Hermes stores it; None for its own terminal and page. Raises InvalidSource."""
    name = as_text(origin.get("platform"))
    if name in OWN_SOURCES:
        return None
    platform = convert_platform(name)
    return SessionSource(
        platform,
        convert_chat_id(platform, _find_chat(platform, origin)),
        chat_type=_convert_chat_type(platform, as_text(origin.get("chat_type")) or "dm"),
        chat_name=as_text(origin.get("chat_name")) or None,
        chat_topic=as_text(origin.get("chat_topic")) or None,
        user_id=convert_chat_id(platform, as_id(origin.get("user_id"))) or None,
        user_name=as_text(origin.get("user_name")) or None,
        user_id_alt=convert_chat_id(platform, as_id(origin.get("user_id_alt"))) or None,
        thread_id=as_id(origin.get("thread_id")) or None,
    )


def convert_row(row: Mapping[str, Any]) -> SessionSource | None:
    """Read the source of a session that has only columns: older versions stored just the platform and the user."""
    platform_name = as_text(row.get("source"))
    user_id = as_id(row.get("user_id"))
    if platform_name in OWN_SOURCES or not (user_id or row.get("chat_id")):
        return None
    platform = convert_platform(platform_name)
    origin = {**row, "platform": platform_name}
    if not row.get("chat_id"):  # where it took place is unknown: it belongs to this person alone
        origin |= {"chat_id": user_id if platform in _CHAT_OF_USER else "", "chat_type": "dm", "thread_id": None}
    return convert_origin(origin)


def convert_chat_id(platform: Platform, chat_id: str) -> str:
    if platform in (Platform.WHATSAPP_WEB, Platform.WHATSAPP):
        return chat_id.removesuffix(_PHONE_SERVER)
    if platform == Platform.SIGNAL:
        return chat_id.removeprefix("group:")
    return chat_id


def _find_chat(platform: Platform, origin: Mapping[str, Any]) -> str:
    """Return the chat; there, a thread of Discord is a chat of its own."""
    chat_id, parent = as_id(origin.get("chat_id")), as_id(origin.get("parent_chat_id"))
    is_thread = bool(parent) and chat_id == as_id(origin.get("thread_id"))
    return parent if platform == Platform.DISCORD and is_thread else chat_id


def _convert_chat_type(platform: Platform, chat_type: str) -> ChatType:
    if platform == Platform.DISCORD and chat_type == "group":
        return ChatType.CHANNEL
    if chat_type in {"webhook", "private"}:
        return ChatType.DM
    try:
        return ChatType(chat_type)
    except InvalidSource:
        return ChatType.GROUP


# ---- jobs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JobContext:
    """The time zone and the chats that jobs refer to."""

    timezone: str  # empty: unknown
    zone: tzinfo | None
    home_platforms: Sequence[str]
    chats: Mapping[tuple[str, str], SessionSource]  # by platform and id


def read_jobs(
    path: Path, make_name: Callable[[Path], str], context: JobContext
) -> Iterator[ImportedJob | ImportProblem]:
    problems: list[ImportProblem] = []
    name = make_name(path)
    data = read_json_file(path, name, problems, "Jobs")
    yield from problems
    jobs = data if isinstance(data, list) else as_list(as_dict(data).get("jobs"))
    for number, job in enumerate(map(as_dict, jobs), start=1):
        label = as_text(job.get("name")) or as_id(job.get("id")) or f"number {number}"
        where = f"{name}, job {label}"
        try:
            yield _read_job(job, context)
        except InvalidInput as error:
            yield ImportProblem(where=where, what=f"{error} The job is left out.")
            continue
        if missing := [words for key, words in _IGNORED.items() if job.get(key)]:
            yield ImportProblem(where=where, what=f"The job comes in without {' and '.join(missing)}.")


def _read_job(job: dict[str, Any], context: JobContext) -> ImportedJob:
    job_id, prompt = as_id(job.get("id")), as_text(job.get("prompt")).strip()
    if job.get("script") or job.get("no_agent"):
        raise InvalidInput("It runs a script, and jobs here are prompts for the agent.")
    if not job_id or not prompt:
        raise InvalidInput("It has no prompt." if job_id else "It has no id.")
    origin = _read_origin(job.get("origin"), context)
    return ImportedJob(
        origin_id=job_id,
        name=as_text(job.get("name")).strip() or prompt[:50],
        prompt=prompt,
        schedule=_read_schedule(as_dict(job.get("schedule")), context),
        timezone=context.timezone or None,
        targets=_read_targets(job.get("deliver"), origin, context),
        runs_left=_read_runs_left(as_dict(job.get("repeat")), as_dict(job.get("schedule"))),
        origin=origin,
        model=as_text(job.get("model")) or None,
    )


def _read_origin(value: object, context: JobContext) -> SessionSource | None:
    """Read the chat in which a job was made; jobs do not store who wrote there, but routes do."""
    origin = as_dict(value)
    try:
        source = convert_origin(origin) if origin.get("platform") else None
    except InvalidSource:
        return None
    if source is None:
        return None
    known = context.chats.get((str(source.platform), source.chat_id))
    return replace(known, thread_id=source.thread_id) if known else source


def _read_schedule(schedule: dict[str, Any], context: JobContext) -> str:
    match schedule.get("kind"):
        case "once":
            seconds = read_seconds(schedule.get("run_at"), context.zone)
            if seconds is None:
                raise InvalidInput("Its time cannot be read.")
            text = f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%dT%H:%M:%SZ}"
        case "interval":
            text = f"every {as_count(schedule.get('minutes'))}m"
        case "cron":
            text = " ".join(as_text(schedule.get("expr")).split())
        case kind:
            raise InvalidInput(f"Its schedule is of the kind {kind!r}, which is not known.")
    return format_schedule(parse_schedule(text, timezone=context.timezone or "UTC", now=datetime.now(UTC)))


def _read_runs_left(repeat: dict[str, Any], schedule: dict[str, Any]) -> int | None:
    times = repeat.get("times")
    if not isinstance(times, int) or times <= 0 or schedule.get("kind") == "once":
        return None
    left = times - as_count(repeat.get("completed"))
    if left <= 0:
        raise InvalidInput("It has run as often as it should.")
    return left


def _read_targets(value: object, origin: SessionSource | None, context: JobContext) -> tuple[str, ...]:
    texts = value.split(",") if isinstance(value, str) else [text for text in as_list(value) if isinstance(text, str)]
    targets: dict[str, None] = {}
    for text in filter(None, map(str.strip, texts)):
        if text == "all":
            targets |= dict.fromkeys(context.home_platforms)
        elif text == "origin":
            targets |= {"origin": None} if origin else {}
        elif text != "local":
            targets[_convert_target(text, origin, context)] = None
    return tuple(targets)


def _convert_target(text: str, origin: SessionSource | None, context: JobContext) -> str:
    """Convert a target. There, the name of a platform means the chat of the job, if that is on this platform."""
    name, colon, rest = text.partition(":")
    platform = convert_platform(name)
    if not colon:
        return "origin" if origin and origin.platform == platform else str(platform)
    target = parse_target(f"{platform}:{rest}")
    chat_id = convert_chat_id(platform, target.chat_id)
    thread = context.chats.get((str(platform), chat_id))
    if thread and thread.thread_id == chat_id:  # a thread of Discord, which is a chat of its own there
        return format_chat_target(platform, thread.chat_id, thread.thread_id)
    return format_chat_target(platform, chat_id, target.thread_id)
