"""Jobs, allowed people and memories of OpenClaw: what it keeps beside its conversations.

cron/jobs.json                          jobs, in older versions
credentials/<channel>-allowFrom.json    people who were let in, in older versions
state/openclaw.sqlite                   both, since August 2026
openclaw.json                           people that the owner allows in the settings
workspace/MEMORY.md                     what the agent should remember
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput
from palaver.core.foreign_sqlite import InvalidForeignDatabase, open_foreign_database
from palaver.core.source import Platform
from palaver.jobs.schedule import MAX_INTERVAL, MIN_INTERVAL, Schedule, format_schedule
from palaver.sessions.targets import parse_target
from palaver.transfer.imported import ImportedAccount, ImportedJob, ImportedMemory, ImportProblem
from palaver.transfer.readers.json_stream import UnreadableItem, parse_json
from palaver.transfer.readers.markdown_notes import split_notes
from palaver.transfer.readers.openclaw_source import find_source
from palaver.transfer.readers.plain_file import is_plain, read_plain_file
from palaver.transfer.readers.values import (
    as_count,
    as_dict,
    as_id,
    as_list,
    as_text,
    format_count,
    read_time,
    read_title,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAX_FILE_BYTES: Final = 16_000_000
_MAX_MEMORY_BYTES: Final = 1_000_000
_ALLOW_FILE = re.compile(r"([a-z]+)(?:-[\w.-]+)?-allowFrom\.json")
_ENTRY_PREFIX = re.compile(r"(?:telegram|tg|discord|slack|whatsapp|signal|matrix|user):", re.IGNORECASE)
_PLATFORMS: Final = {"whatsapp": Platform.WHATSAPP_WEB}
_KNOWN_PLATFORMS: Final = frozenset({"telegram", "discord", "slack", "whatsapp", "signal", "matrix"})
_ANYONE: Final = "*"


def read_state(folder: Path) -> Iterator[ImportedAccount | ImportedJob | ImportedMemory | ImportProblem]:
    """Read everything beside the conversations."""
    problems: list[ImportProblem] = []
    jobs, entries = _read_database(folder, problems)
    jobs |= _read_job_file(folder, problems)
    for job_id, job in jobs.items():
        yield _convert_job(job_id, job)
    yield from _convert_accounts([*entries, *_read_allow_files(folder, problems), *_read_settings(folder, problems)])
    yield from _read_memories(folder)
    yield from problems


def read_json_file(path: Path, problems: list[ImportProblem], max_bytes: int = _MAX_FILE_BYTES) -> Any:
    """Read a JSON file that may be missing; None if it is, or cannot be read."""
    try:
        if not path.is_file():
            return None
        return parse_json(read_plain_file(path, max_bytes))
    except OSError as error:
        problems.append(ImportProblem(where=path.name, what=f"It cannot be read: {error.strerror or error}."))
    except UnreadableItem as error:
        problems.append(ImportProblem(where=path.name, what=str(error)))
    return None


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
        database = open_foreign_database(path)
        try:
            for row in database.select("cron_jobs", ("job_id", "job_json"), "ORDER BY job_id"):
                job = parse_json(row["job_json"] or "{}")
                jobs[as_id(row["job_id"])] = as_dict(job)
            rows = database.select("channel_pairing_allow_entries", ("channel_key", "entry"), "ORDER BY 1, 2")
            people = [(as_text(row["channel_key"]), as_id(row["entry"])) for row in rows]
        finally:
            database.close()
    except (InvalidForeignDatabase, UnreadableItem) as error:
        problems.append(ImportProblem(where="state/openclaw.sqlite", what=str(error)))
    return jobs, people


# ---- jobs ------------------------------------------------------------------------------------------------------------


def _read_job_file(folder: Path, problems: list[ImportProblem]) -> dict[str, dict[str, Any]]:
    content = read_json_file(folder / "cron" / "jobs.json", problems)
    jobs = as_list(content) or as_list(as_dict(content).get("jobs"))
    return {
        as_id(job.get("id")) or as_id(job.get("jobId")) or f"#{number}": job
        for number, job in enumerate(map(as_dict, jobs), 1)
    }


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
    target = f"{_PLATFORMS.get(channel, channel)}" + (f":{chat}" if chat else "") + (f":{thread}" if thread else "")
    try:
        parse_target(target)
    except InvalidInput:
        return ()
    return (target,)


# ---- people ----------------------------------------------------------------------------------------------------------


def _read_allow_files(folder: Path, problems: list[ImportProblem]) -> list[tuple[str, str]]:
    """Return the people whose pairing was accepted. Other files in this folder are secrets, and are not opened."""
    people = []
    for path in sorted((folder / "credentials").glob("*-allowFrom.json")):
        if found := _ALLOW_FILE.fullmatch(path.name):
            entries = as_dict(read_json_file(path, problems)).get("allowFrom")
            people += [(found[1], as_id(entry)) for entry in as_list(entries)]
    return people


def _read_settings(folder: Path, problems: list[ImportProblem]) -> list[tuple[str, str]]:
    """Return the people that the settings allow. The settings may be JSON5, which we do not read."""
    found: list[ImportProblem] = []
    content = read_json_file(folder / "openclaw.json", found)
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


# ---- memories --------------------------------------------------------------------------------------------------------


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
        yield ImportProblem(where=name, what=f"It cannot be read: {error.strerror or error}.")
        return
    for note in split_notes(text):
        yield ImportedMemory(origin_id=hashlib.sha256(note.encode()).hexdigest()[:32], text=note)
