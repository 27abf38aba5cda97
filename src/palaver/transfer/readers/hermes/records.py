"""A record: one stored copy of a message, in whichever file it was found."""

from __future__ import annotations

import json
import math
import re
from array import array
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.sessions.usage import TOKEN_COUNTERS, CostStatus, TurnUsage
from palaver.transfer.imported import ImportProblem
from palaver.transfer.reader_kit.values import as_count, as_dict, as_id, as_list, as_text, build_call, read_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_WORKSPACE = re.compile(r"\s*\[Workspace(?:::v1)?:(?:\\.|[^\]\\]){1,4096}\]\s*")
_RECALLED_START: Final = "<memory-context>"
_RECALLED_END: Final = "</memory-context>"
_SENDER = re.compile(r"\[([^\[\]\n|]{1,240})(?:\|([^\[\]\n|]{1,120}))?\]\s")
_SUMMARY_STARTS: Final = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
_SUMMARY_END: Final = "--- END OF CONTEXT SUMMARY"
_MERGED_SUMMARY: Final = "[END OF PRIOR CONTEXT"
_REVIEW_STARTS: Final = (
    "Review the conversation above and update the skill library",
    "Review the conversation above and consider saving to memory",
)

_EARLIEST_SECONDS: Final = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
_LATEST_SECONDS: Final = datetime(2100, 1, 1, tzinfo=UTC).timestamp()
_SHOWN_ROLES: Final = frozenset({"user", "assistant", "tool"})
_SKIPPED_ROLES: Final = frozenset({"session_meta", "system"})  # tools and prompts, which are made again here
_FROM_ANY_COPY: Final = ("tool_calls", "tool_name", "reasoning", "platform_message_id", "attachments", "is_undone")
_MAX_COST: Final = 1_000_000.0
_PRICED: Final = frozenset({"estimated", "actual", "included"})
_PARAGRAPH_END: Final = "\n\n"
_KEY_PRIME: Final = 2**61 - 1
_KEY_BASE: Final = 1_099_511_628_211
_REWRITE_STEP_SECONDS: Final = 1e-5  # two messages that are appended are stored further apart
# Flags of a message.
FROM_AGENT: Final = 2
NAMED: Final = 4  # its key contains the id of a tool call, which no other message has
SUMMARY: Final = 8  # it is a summary of what was said before
MERGED: Final = 16  # a summary in one message with words that were said before
UNDONE: Final = 32
UNNAMED_RESULT: Final = 64  # of a tool, without the id of its call


def clean_text(role: str, text: str) -> str:
    """Return a message as people saw it: without what was added for the model."""
    if role == "user" and text.lstrip()[:10] == "[Workspace" and (prefix := _WORKSPACE.match(text)):
        text = text[prefix.end() :]
    *recalled, rest = text.split(_RECALLED_END)
    kept = [
        part.partition(_RECALLED_START)[0] if _RECALLED_START in part else part + _RECALLED_END for part in recalled
    ]
    return "".join([*kept, rest]).strip()


def split_sender(text: str) -> tuple[str, str | None, str]:
    """Split `[Ada] Hello` into name, id and text, as Hermes writes messages of groups; the name may be empty."""
    match = _SENDER.match(text)
    return (match[1].strip(), match[2], text[match.end() :]) if match else ("", None, text)


def read_summary(text: str) -> tuple[str, bool] | None:
    """Return the summary in a message, and whether older words stand before it; None for any other message."""
    head = text.lstrip()
    is_merged = False
    if head.startswith("[PRIOR CONTEXT") and (middle := head.rfind(_MERGED_SUMMARY)) >= 0:
        is_merged = not any(start in head[:middle] for start in _SUMMARY_STARTS)  # or it was an older summary
        head = head[head.find("]", middle) + 1 :].lstrip()
    if not head.startswith(_SUMMARY_STARTS):
        return None
    if head.startswith("[CONTEXT COMPACTION"):  # one long line of instructions, then the summary
        head = head.partition("\n")[2]
    else:
        head = head.partition("]")[2].removeprefix(":")
    end = head.rfind(_SUMMARY_END)
    return (head[:end] if end >= 0 else head).strip(), is_merged


def is_review_request(role: str, text: str) -> bool:
    """Return whether this starts a review that ran in the background; older versions stored it in the conversation."""
    return role in {"user", "system"} and text.lstrip().startswith(_REVIEW_STARTS)


@dataclass(slots=True, kw_only=True)
class Record:
    role: str
    content: str | list[Any]
    where: str  # for problems: a file, with a line or an id
    at: float | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_call_id: str = ""
    tool_name: str = ""
    reasoning: str = ""
    platform_message_id: str = ""
    attachments: list[Any] = field(default_factory=list)
    is_undone: bool = False
    has_lost_time: bool = False  # `at` says only when the transcript was rewritten
    summary: str | None = None
    is_merged_summary: bool = False
    kept_count: int = 0  # of a summary that says so itself

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        parts = (part if isinstance(part, str) else as_dict(part).get("text") for part in self.content)
        return "\n".join(part for part in parts if isinstance(part, str))


def read_record(data: Mapping[str, Any], where: str, zone: tzinfo | None) -> Record | ImportProblem | None:
    """Read a message as Hermes stores it; None for what is not part of the conversation."""
    role = data.get("role")
    if role in _SKIPPED_ROLES:
        return None
    if role not in _SHOWN_ROLES:
        return ImportProblem(where=where, what=f"The message has the role {role!r}, which is not known.")
    content = data.get("content")
    record = Record(
        role=role,
        content=content if isinstance(content, list) else _to_text(content),
        where=where,
        at=read_seconds(data.get("timestamp", data.get("_ts")), zone),
        tool_calls=_read_tool_calls(data.get("tool_calls")) if role == "assistant" else [],
        tool_call_id=as_id(data.get("tool_call_id")) if role == "tool" else "",
        tool_name=as_text(data.get("tool_name") or data.get("name")) if role == "tool" else "",
        reasoning=as_text(data.get("reasoning") or data.get("reasoning_content")) if role == "assistant" else "",
        platform_message_id=as_id(data.get("platform_message_id") or data.get("message_id")),
        attachments=as_list(data.get("attachments")),
    )
    if found := read_summary(record.text):
        record.summary, record.is_merged_summary = found
    has_content = bool(record.content or record.tool_calls or record.reasoning or record.attachments)
    return record if has_content or role == "tool" else None


def merge_records(records: Sequence[Record]) -> Record:
    """Join the copies of one message: the words as people saw them come from the last copy, the time from the first."""
    if len(records) == 1:
        return records[0]
    merged = replace(records[-1])
    for other in records[:-1]:
        for name in _FROM_ANY_COPY:
            setattr(merged, name, getattr(merged, name) or getattr(other, name))
        if isinstance(other.content, list) and not isinstance(merged.content, list):
            merged.content = other.content  # it has the images
    times = sorted((record.has_lost_time, number) for number, record in enumerate(records) if record.at is not None)
    merged.at = records[times[0][1]].at if times else None
    return merged


def read_seconds(value: object, zone: tzinfo | None) -> float | None:
    """Read a time; one without a time zone is in the zone of Hermes or, if that is None, of this machine."""
    if type(value) is float and _EARLIEST_SECONDS <= value < _LATEST_SECONDS:  # as in the database
        return value
    time = read_time(value, zone)
    return None if time is None else time.timestamp()


def to_datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _to_text(content: object) -> str:
    if content is None or isinstance(content, str):
        return as_text(content)
    if isinstance(content, bytes):
        return content.decode("utf-8", "replace")
    return json.dumps(content, ensure_ascii=False, default=str)


def _read_tool_calls(value: object) -> list[dict[str, Any]]:
    calls = []
    for number, call in enumerate(as_list(value)):
        function = as_dict(as_dict(call).get("function"))
        call_id = as_id(as_dict(call).get("id")) or as_id(as_dict(call).get("call_id")) or f"call_{number}"
        name = as_text(function.get("name")) or as_text(as_dict(call).get("name"))
        calls.append(build_call(call_id, name, function.get("arguments", as_dict(call).get("arguments"))))
    return calls


def sum_usage(
    conversation_id: str, rows: Iterable[Mapping[str, Any]], last_prompt_tokens: int
) -> tuple[TurnUsage, ...]:
    """Add up rows of the same model and provider; `turn_id` is the same in every run."""
    totals: dict[tuple[str, str], TurnUsage] = {}
    for row in rows:
        model, provider = as_text(row.get("model")), as_text(row.get("billing_provider"))
        usage = _read_usage(row, f"hermes:{conversation_id}:{provider}:{model}", model, provider)
        if not usage.has_usage:
            continue
        known = totals.get((model, provider))
        with suppress(InvalidInput):  # more than a conversation can use: the row is damaged
            totals[model, provider] = usage if known is None else known.add(usage)
    usages = list(totals.values())
    if usages and last_prompt_tokens:
        usages[-1] = replace(usages[-1], last_prompt_tokens=last_prompt_tokens)
    return tuple(usages)


def _read_usage(row: Mapping[str, Any], turn_id: str, model: str, provider: str) -> TurnUsage:
    cost, status = _read_cost(row)
    counts: dict[str, Any] = {name: as_count(row.get(name)) for name in TOKEN_COUNTERS}
    return TurnUsage(
        turn_id=turn_id,
        model=model or None,
        provider=provider or None,
        cost=cost,
        cost_status=status,
        cost_source=as_text(row.get("cost_source")) or None,
        **counts,
    )


def _read_cost(row: Mapping[str, Any]) -> tuple[Decimal | None, CostStatus | None]:
    """Return the cost; zero counts as a price only if Hermes says that it is one."""
    status = as_text(row.get("cost_status"))
    for key, kind in (("actual_cost_usd", CostStatus.ACTUAL), ("estimated_cost_usd", CostStatus.ESTIMATED)):
        value = row.get(key)
        if isinstance(value, int | float) and 0 < value < _MAX_COST:
            return Decimal(str(value)), kind
    return (Decimal(0), CostStatus.ESTIMATED) if status in _PRICED else (None, None)


@dataclass(slots=True)
class Marks:
    """The little that folding needs to know of messages, so that a long conversation is never in memory.

    A list of messages becomes four columns. Equal keys mean: the same role and the same words, or the same tool call.
    That alone never makes two messages one: `folding` looks for evidence.
    """

    keys: array[int] = field(default_factory=lambda: array("Q"))
    times: array[float] = field(default_factory=lambda: array("d"))  # seconds; NaN: unknown
    ids: array[int] = field(default_factory=lambda: array("Q"))  # of the message on its platform; 0: unknown
    flags: bytearray = field(default_factory=bytearray)
    paragraphs: array[int] = field(default_factory=lambda: array("I"))  # of a person's message; 0: of the agent

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, key: int, time: float, message_id: int, flags: int, paragraphs: int) -> None:
        self.keys.append(key)
        self.times.append(time)
        self.ids.append(message_id)
        self.flags.append(flags)
        self.paragraphs.append(paragraphs)

    def copy(self, source: Marks, index: int) -> None:
        self.add(
            source.keys[index], source.times[index], source.ids[index], source.flags[index], source.paragraphs[index]
        )

    def extend(self, more: Marks) -> None:
        self.keys.extend(more.keys)
        self.times.extend(more.times)
        self.ids.extend(more.ids)
        self.flags.extend(more.flags)
        self.paragraphs.extend(more.paragraphs)

    def add_record(self, record: Record) -> None:
        self.add(
            make_key(record),
            math.nan if record.at is None else record.at,
            hash_text(record.platform_message_id) if record.platform_message_id else 0,
            _make_flags(record),
            clean_text("user", record.text).count(_PARAGRAPH_END) + 1 if _is_from_person(record) else 0,
        )


def find_rewritten(marks: Marks) -> bytearray:
    """Return a 1 for every message whose time says only when the whole transcript was rewritten, after an undo.

    Older versions of Hermes gave all messages the time of the rewriting, a microsecond apart.
    """
    rewritten = bytearray(len(marks))
    for index in range(1, len(marks)):
        if 0 < marks.times[index] - marks.times[index - 1] <= _REWRITE_STEP_SECONDS:
            rewritten[index - 1] = rewritten[index] = 1
    return rewritten


def make_key(record: Record) -> int:
    """Return the same number for copies of one message, however its other fields were stored."""
    if record.summary is not None:
        return hash_text("summary\0" + record.summary)
    if record.role == "tool" and record.tool_call_id:
        return hash_text("tool\0" + record.tool_call_id)
    if record.tool_calls:
        return hash_text("calls\0" + "\0".join(call["id"] for call in record.tool_calls))
    if _is_from_person(record):
        key = 0
        for paragraph in clean_text("user", record.text).split(_PARAGRAPH_END):
            key = join_keys(key, hash_text(f"user\0{paragraph}"), 1)
        return key or 1
    return hash_text(f"{record.role}\0{clean_text(record.role, record.text)}")


def join_keys(first: int, second: int, paragraphs: int) -> int:
    """Return the key that two messages of a person have as one: Hermes joins those that follow each other.

    `paragraphs` is the number of them in the second one.
    """
    return (first * pow(_KEY_BASE, paragraphs, _KEY_PRIME) + second) % _KEY_PRIME


def _is_from_person(record: Record) -> bool:
    return record.role == "user" and record.summary is None


def hash_text(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()) or 1


def _make_flags(record: Record) -> int:
    if record.summary is not None:
        return SUMMARY | (MERGED if record.is_merged_summary else 0)
    flags = FROM_AGENT if record.role == "assistant" else 0
    if record.role == "tool":
        flags |= NAMED if record.tool_call_id else UNNAMED_RESULT
    if record.tool_calls:
        flags |= NAMED
    return flags | (UNDONE if record.is_undone else 0)
