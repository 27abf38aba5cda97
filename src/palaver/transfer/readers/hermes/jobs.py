"""Jobs and memories of Hermes."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput, InvalidSource
from palaver.jobs.schedule import format_schedule, parse_schedule
from palaver.sessions.targets import format_chat_target, parse_target
from palaver.transfer.imported import ImportedJob, ImportedMemory
from palaver.transfer.reader_kit.values import as_count, as_dict, as_id, as_list, as_text
from palaver.transfer.readers.hermes.records import read_seconds
from palaver.transfer.readers.hermes.state_database import convert_chat_id, convert_origin, convert_platform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.core.source import SessionSource
    from palaver.transfer.readers.hermes.home import HermesHome


_SEPARATOR: Final = "\n§\n"
_FILES: Final = ("MEMORY.md", "USER.md")
_IGNORED: Final = {
    "context_from": "the results of other jobs",
    "enabled_toolsets": "its own list of tools",
    "workdir": "its own working folder",
}
_RUN_ID = re.compile(r"cron_(?P<job_id>.+)_\d{8}_\d{6}")
_RUN_TITLE = re.compile(r"(?P<name>.+) · [A-Z][a-z]{2} \d\d \d\d:\d\d(?: #\d+)?")


def read_memories(home: HermesHome) -> Iterator[ImportedMemory]:
    """Read each entry once; its id is made of its words, so that a second import recognizes it."""
    seen = set()
    for file_name in _FILES:
        path = home.path / "memories" / file_name
        content = home.read_text(path)
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


def read_jobs(home: HermesHome) -> Iterator[ImportedJob]:
    for number, job in enumerate(home.jobs, start=1):
        label = as_text(job.get("name")) or as_id(job.get("id")) or f"number {number}"
        where = f"{home.make_name(home.path / 'cron' / 'jobs.json')}, job {label}"
        try:
            yield _read_job(job, home)
        except InvalidInput as error:
            home.report(where, f"{error} The job is left out.")
            continue
        if missing := [*_list_skills(job), *(words for key, words in _IGNORED.items() if job.get(key))]:
            home.report(where, f"The job comes in without {' and '.join(missing)}.")


def _list_skills(job: dict[str, Any]) -> list[str]:
    names = [name for each in (*as_list(job.get("skills")), job.get("skill")) if (name := as_text(each).strip())]
    quoted = [f"“{name}”" for name in dict.fromkeys(names)]
    return [f"the skill{'s' * (len(quoted) > 1)} {', '.join(quoted)}"] if quoted else []


def find_run_name(home: HermesHome, session_id: str, title: str) -> str | None:
    """Return the name of the job of which a session is a run; None if it is none, or a person has named it.

    Versions before 0.18 gave runs no title; later ones give them the name of the job and a time.
    """
    run = _RUN_ID.fullmatch(session_id)
    made = _RUN_TITLE.fullmatch(title)
    if run is None or (title and made is None and title != f"cron {run['job_id']}"):
        return None
    job = next((job for job in home.jobs if as_id(job.get("id")) == run["job_id"]), None)
    return _read_name(job) if job else made["name"] if made else ""


def _read_name(job: dict[str, Any]) -> str:
    return as_text(job.get("name")).strip() or as_text(job.get("prompt")).strip()[:50]


def _read_job(job: dict[str, Any], home: HermesHome) -> ImportedJob:
    job_id, prompt = as_id(job.get("id")), as_text(job.get("prompt")).strip()
    if job.get("script") or job.get("no_agent"):
        raise InvalidInput("It runs a script, and jobs here are prompts for the agent.")
    if not job_id or not prompt:
        raise InvalidInput("It has no prompt." if job_id else "It has no id.")
    origin = _read_origin(job.get("origin"), home)
    return ImportedJob(
        origin_id=job_id,
        name=_read_name(job),
        prompt=prompt,
        schedule=_read_schedule(as_dict(job.get("schedule")), home),
        timezone=home.settings.timezone or None,
        targets=_read_targets(job.get("deliver"), origin, home),
        runs_left=_read_runs_left(as_dict(job.get("repeat")), as_dict(job.get("schedule"))),
        origin=origin,
        model=as_text(job.get("model")) or None,
        is_paused=job.get("enabled") is False or job.get("state") == "paused",
    )


def _read_origin(value: object, home: HermesHome) -> SessionSource | None:
    """Read the chat in which a job was made; jobs do not store who wrote there, but routes do."""
    origin = as_dict(value)
    try:
        source = convert_origin(origin) if origin.get("platform") else None
    except InvalidSource:
        return None
    if source is None:
        return None
    known = home.chats.get((str(source.platform), source.chat_id))
    return replace(known, thread_id=source.thread_id) if known else source


def _read_schedule(schedule: dict[str, Any], home: HermesHome) -> str:
    match schedule.get("kind"):
        case "once":
            seconds = read_seconds(schedule.get("run_at"), home.zone)
            if seconds is None:
                raise InvalidInput("Its time cannot be read.")
            text = f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%dT%H:%M:%SZ}"
        case "interval":
            text = f"every {as_count(schedule.get('minutes'))}m"
        case "cron":
            text = " ".join(as_text(schedule.get("expr")).split())
        case kind:
            raise InvalidInput(f"Its schedule is of the kind {kind!r}, which is not known.")
    timezone = home.settings.timezone or "UTC"
    return format_schedule(parse_schedule(text, timezone=timezone, now=datetime.now(UTC)))


def _read_runs_left(repeat: dict[str, Any], schedule: dict[str, Any]) -> int | None:
    times = repeat.get("times")
    if not isinstance(times, int) or times <= 0 or schedule.get("kind") == "once":
        return None
    left = times - as_count(repeat.get("completed"))
    if left <= 0:
        raise InvalidInput("It has run as often as it should.")
    return left


def _read_targets(value: object, origin: SessionSource | None, home: HermesHome) -> tuple[str, ...]:
    """Convert where a job delivers to, as Hermes resolves it; `local` saves the answer in a file, there as here."""
    texts = value.split(",") if isinstance(value, str) else [text for text in as_list(value) if isinstance(text, str)]
    homes = [str(each.source.platform) for each in home.home_channels]
    targets: dict[str, None] = {}
    for text in filter(None, map(str.strip, texts)):
        if text == "all":
            targets |= dict.fromkeys(homes)
        elif text == "origin":
            targets |= dict.fromkeys(["origin"] if origin else homes[:1])
        elif text != "local":
            targets[_convert_target(text, origin, home)] = None
    return tuple(targets) or ("local",)


def _convert_target(text: str, origin: SessionSource | None, home: HermesHome) -> str:
    """Convert a target. There, the name of a platform means the chat of the job, if that is on this platform."""
    name, colon, rest = text.partition(":")
    platform = convert_platform(name)
    if not colon:
        return "origin" if origin and origin.platform == platform else str(platform)
    target = parse_target(f"{platform}:{rest}")
    chat_id = convert_chat_id(platform, target.chat_id)
    thread = home.chats.get((str(platform), chat_id))
    if thread and thread.thread_id == chat_id:  # a thread of Discord, which is a chat of its own there
        return format_chat_target(platform, thread.chat_id, thread.thread_id)
    return format_chat_target(platform, chat_id, target.thread_id)
