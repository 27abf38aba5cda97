"""Scheduled prompts: `cron/jobs.json`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput, InvalidSource
from palaver.jobs.schedule import format_schedule, parse_schedule
from palaver.sessions.targets import format_chat_target, parse_target
from palaver.transfer.imported import ImportedJob, ImportProblem
from palaver.transfer.readers.hermes.records import read_seconds
from palaver.transfer.readers.hermes.sources import convert_chat_id, convert_origin, convert_platform, replace_thread
from palaver.transfer.readers.json_stream import UnreadableItem, parse_json
from palaver.transfer.readers.plain_file import read_plain_file
from palaver.transfer.readers.values import as_count, as_dict, as_id, as_list, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import tzinfo
    from pathlib import Path

    from palaver.core.source import SessionSource

_IGNORED: Final = {
    "skills": "skills",
    "context_from": "the results of other jobs",
    "enabled_toolsets": "its own list of tools",
    "workdir": "its own working folder",
}


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a job refers to."""

    timezone: str  # empty: unknown
    zone: tzinfo | None
    home_platforms: Sequence[str]
    chats: Mapping[tuple[str, str], SessionSource]  # by platform and id


def read_jobs(path: Path, name: str, context: JobContext) -> Iterator[ImportedJob | ImportProblem]:
    try:
        data = parse_json(read_plain_file(path).removeprefix(b"\xef\xbb\xbf"))
    except FileNotFoundError:
        return
    except (OSError, UnreadableItem) as error:
        yield ImportProblem(where=name, what=f"Jobs cannot be read: {error}")
        return
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
    return replace_thread(known, source.thread_id) if known else source


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
