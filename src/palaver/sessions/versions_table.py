"""Versions: a message is edited or asked again in place, and the version before it stays in the log, hidden.

A version starts with an event `version_started`, directly followed by its message. Every event of these two kinds names
the group (the seq of the first version's message) and the version that is chosen from then on, so the log alone says
which version is chosen, and which event has hidden each of the others:

    7 message            version 1
    8 message            its answer
    9 version_started    group 7, version 2: hides 7 and 8
   10 message            version 2
   11 message            its answer
   12 version_chosen     group 7, version 1: hides 10 and 11, shows what event 9 has hidden

What was visible when a version was left is visible again when it is chosen, also if it contains versions itself.

Always true: what is visible is one path, from the first message to the end of the chosen version. A version comes back
with the compaction and the redo that it had when it was left; no compaction ever summarizes another version.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, build_placeholders, fetch_value
from palaver.core.errors import InvalidInput, NothingToDo, NothingToRestore
from palaver.core.text import make_storable
from palaver.core.texts import say
from palaver.sessions import log_table as events
from palaver.sessions.events import VERSION_KINDS, Compaction, Event, EventKind
from palaver.sessions.hidden_ranges import mark_near_hidden
from palaver.sessions.message_table import SELECT_EVENT, EventColumns, find_facts
from palaver.sessions.model import MAX_VERSIONS, Version, VersionInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from palaver.core.ids import PersonId


MAX_LISTED_VERSIONS: Final = 50
_MAX_MESSAGES_SEARCHED: Final = 200  # back from the end, for the last message with versions
_GROUPS_PER_READ: Final = 100
_ANSWER_ROWS_READ: Final = 20
# Events that belong to one version: how its answers ended, its summaries, undos, edits and reactions. They are hidden
# and shown with it.
_HIDDEN_KINDS: Final = (
    "('turn_failed', 'turn_interrupted', 'compacted', 'compaction_undone', 'undone', 'redone', 'message_edited',"
    " 'reaction')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """An event that has started or chosen a version of a group."""

    seq: int
    kind: str
    facts: dict[str, Any]
    info: VersionInfo  # from here on


def read_group(kind: str, body: str | None) -> int | None:
    """Return the group that an event of the log belongs to; None for other kinds of events."""
    group = find_facts(body).get("group") if kind in VERSION_KINDS else None
    return group if isinstance(group, int) else None


def start_version(
    tx: Transaction,
    session_no: int,
    question_seq: int,
    now: int,
    person_id: PersonId | None = None,
    *,
    is_edit: bool = False,
) -> VersionInfo:
    """Hide a visible message of a person and everything after it. The caller appends the new version's message next."""
    events.lock_session(tx, session_no)
    if not events.is_visible_question(tx, session_no, question_seq):
        text = say(
            "version.no_message", "There is no message number {seq} to edit or ask again here.", seq=str(question_seq)
        )
        raise InvalidInput(text, seq=question_seq)
    group = _find_groups(tx, session_no, [question_seq])[question_seq]
    changes = _load_changes(tx, session_no, group)
    last = changes[-1].info if changes else None
    number = (last.count if last else 1) + 1
    if number > MAX_VERSIONS:
        raise InvalidInput(
            say(
                "version.too_many",
                "A message can have up to {limit} versions. Use /branch instead.",
                limit=str(MAX_VERSIONS),
            ),
            limit=MAX_VERSIONS,
        )
    has_edits = is_edit or (last is not None and last.has_edits)
    info = VersionInfo(group=group, number=number, count=number, has_edits=has_edits)
    _leave(tx, session_no, EventKind.VERSION_STARTED, info, question_seq, now, person_id)
    compaction_seq = _find_compaction(tx, session_no, first_seq=question_seq)
    _set_state(tx, session_no, compaction_seq, None)
    return info


def choose_version(
    tx: Transaction, session_no: int, group: int, number: int, now: int, person_id: PersonId | None = None
) -> VersionInfo:
    """Hide the chosen version of a group, and show another one as it was when it was left."""
    events.lock_session(tx, session_no)
    changes = _load_changes(tx, session_no, group)
    current = changes[-1].info if changes else None
    first_seq = _find_message_seq(changes, group, current.number) if current else group
    is_visible = "SELECT 1 FROM event WHERE session_no = $1 AND seq = $2 AND hidden_by IS NULL"
    if current is None or tx.fetch_one(is_visible, session_no, first_seq) is None:
        raise NothingToDo.say("version.no_others", "This message has no other versions.")
    if not 1 <= number <= current.count:
        raise InvalidInput(
            say(
                "version.unknown",
                "There is no version {number}. Use a number from 1 to {total}.",
                number=number,
                total=current.count,
            ),
            limit=current.count,
        )
    if number == current.number:
        raise NothingToDo.say(
            "version.same", "Version {number} of {total} is already in use.", number=number, total=current.count
        )
    left = _find_hiding_change(changes, number)
    info = replace(current, number=number)
    shared_compaction_seq = _find_compaction(tx, session_no, first_seq=group)
    _leave(tx, session_no, EventKind.VERSION_CHOSEN, info, first_seq, now, person_id)
    shown_count = _show(tx, session_no, group, left.seq)
    compaction_seq = _find_own_compaction(tx, session_no, group, left)
    _set_state(tx, session_no, compaction_seq or shared_compaction_seq, left.facts.get("redo_seq"))
    events.update_counters(tx, session_no, shown_count)
    return info


def _leave(
    tx: Transaction,
    session_no: int,
    kind: EventKind,
    info: VersionInfo,
    first_seq: int,
    now: int,
    person_id: PersonId | None,
) -> None:
    """Hide the visible version, which starts with message `first_seq`, and record what it takes to show it again."""
    compaction_seq, redo_seq = tx.fetch_one(
        "SELECT compaction_seq, redo_seq FROM session WHERE no = $1", session_no
    ) or (None, None)
    facts = {
        "group": info.group,
        "version": info.number,
        "versions": info.count,
        "has_edits": info.has_edits,
        "first_seq": first_seq,
        "compaction_seq": compaction_seq,
        "redo_seq": redo_seq,
    }
    hidden = events.hide_exchanges(tx, session_no, kind, first_seq, now, person_id, facts)
    tx.execute(
        "UPDATE event SET version_of = $3 WHERE session_no = $1 AND seq = $2", session_no, hidden.seq, info.group
    )
    hide = "UPDATE event SET hidden_by = $3 WHERE session_no = $1 AND seq >= $2 AND seq < $3 AND hidden_by IS NULL"
    tx.execute(f"{hide} AND kind IN {_HIDDEN_KINDS}", session_no, hidden.answers_from, hidden.seq)
    # Only the last change of each message is of use to readers, and those in the version that is left are not.
    changes = tx.fetch_all(f"{hide} AND version_of IS NOT NULL RETURNING seq", session_no, info.group, hidden.seq)
    for (change_seq,) in changes:
        mark_near_hidden(tx, session_no, change_seq, change_seq)
    events.update_counters(tx, session_no, -hidden.message_count)


def _show(tx: Transaction, session_no: int, group: int, hidden_by: int) -> int:
    """Show what an event has hidden again; return how many messages that is."""
    update = (
        "UPDATE event SET hidden_by = NULL WHERE session_no = $1 AND seq >= $2 AND seq < $3 AND hidden_by = $3"
        " AND version_of IS NULL"
    )
    shown_count = tx.execute(f"{update} AND kind = 'message'", session_no, group, hidden_by)
    tx.execute(update, session_no, group, hidden_by)
    return shown_count


def _find_compaction(tx: Transaction, session_no: int, *, first_seq: int) -> int | None:
    """Return the newest compaction, in effect or replaced by it, that summarizes nothing from `first_seq` on."""
    for seq, facts in _iterate_compactions(tx, session_no):
        first_kept_seq = facts.get("first_kept_seq")
        if isinstance(first_kept_seq, int) and first_kept_seq <= first_seq:
            return seq
    return None


def _iterate_compactions(tx: Transaction, session_no: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield seq and facts of the compaction in effect, and then of those that were replaced, newest first."""
    seq: object = fetch_value(tx, "SELECT compaction_seq FROM session WHERE no = $1", session_no)
    while isinstance(seq, int):
        facts = events.load_facts(tx, session_no, seq)
        yield seq, facts
        seq = facts.get("previous_seq")


def _find_own_compaction(tx: Transaction, session_no: int, group: int, left: _Change) -> int | None:
    """Return the compaction that a version had when it was left, if it summarizes messages of that version.

    If a message was deleted since, the summary may contain it, so it is not used again.
    """
    seq = left.facts.get("compaction_seq")
    if not isinstance(seq, int):
        return None
    first_kept_seq = events.load_facts(tx, session_no, seq).get("first_kept_seq")
    if not isinstance(first_kept_seq, int) or first_kept_seq <= group:
        return None
    sql = "SELECT 1 FROM event WHERE session_no = $1 AND seq > $2 AND kind IN ('message_deleted', 'erased') LIMIT 1"
    changed = tx.fetch_one(sql, session_no, left.seq)
    return seq if changed is None else None


def _set_state(tx: Transaction, session_no: int, compaction_seq: int | None, redo_seq: object) -> None:
    """Let a compaction and a redo take effect. Without the same compaction, the size of the context is unknown."""
    sql = """UPDATE session SET last_prompt_tokens = CASE WHEN COALESCE(compaction_seq, 0) = COALESCE($2, 0)
        THEN last_prompt_tokens ELSE 0 END, compaction_seq = $2, redo_seq = $3 WHERE no = $1"""
    tx.execute(sql, session_no, compaction_seq, redo_seq if isinstance(redo_seq, int) else None)


def load_infos(tx: Transaction, session_no: int, log: Sequence[Event]) -> dict[int, VersionInfo]:
    """Return, by seq, which of these visible messages of people have several versions."""
    questions = [event.seq for event in log if event.message is not None and event.message.role == "user"]
    infos: dict[int, VersionInfo] = {}
    for start in range(0, len(questions), _GROUPS_PER_READ):
        seqs = questions[start : start + _GROUPS_PER_READ]
        groups = _find_groups(tx, session_no, seqs)
        last = _load_last_infos(tx, session_no, sorted(set(groups.values())))
        infos |= {seq: last[group] for seq, group in groups.items() if group in last}
    return infos


def find_last_info(tx: Transaction, session_no: int) -> VersionInfo | None:
    """Return the versions of the last visible message that has several; messages far back are not looked at."""
    newest = events.list_messages(tx, session_no, limit=_MAX_MESSAGES_SEARCHED)
    infos = load_infos(tx, session_no, newest)
    return infos[max(infos)] if infos else None


def find_info(tx: Transaction, session_no: int, seq: int) -> VersionInfo | None:
    """Return the versions of a visible message of a person; None if it has one only, or is not there."""
    log = events.list_events_at(tx, session_no, [seq])
    return load_infos(tx, session_no, [event for event in log if not event.hidden]).get(seq)


def list_versions(tx: Transaction, session_no: int, info: VersionInfo) -> list[Version]:
    """Return the newest versions of a message, oldest first."""
    changes = _load_changes(tx, session_no, info.group)
    first = max(info.count - MAX_LISTED_VERSIONS, 0) + 1
    return [_load_version(tx, session_no, changes, info, number) for number in range(first, info.count + 1)]


def load_chosen(tx: Transaction, session_no: int, info: VersionInfo) -> Version:
    return _load_version(tx, session_no, _load_changes(tx, session_no, info.group), info, info.number)


def _load_version(
    tx: Transaction, session_no: int, changes: Sequence[_Change], info: VersionInfo, number: int
) -> Version:
    seq = _find_message_seq(changes, info.group, number)
    is_chosen = number == info.number
    hidden_by = 0 if is_chosen else _find_hiding_change(changes, number).seq
    sql = f"""{SELECT_EVENT} WHERE session_no = $1 AND seq >= $2 AND kind = 'message' AND COALESCE(hidden_by, 0) = $3
        ORDER BY seq LIMIT $4"""
    rows = tx.fetch_all(sql, session_no, seq, hidden_by, _ANSWER_ROWS_READ)
    question, answer = _read_exchange(rows, seq)
    return Version(number=number, seq=seq, is_chosen=is_chosen, question=question, answer=answer)


def _read_exchange(rows: Sequence[Row], seq: int) -> tuple[str, str]:
    """Return the texts of message `seq` and of the last answer before the next message of a person."""
    question, answer = "", ""
    for row in map(EventColumns._make, rows):
        text = row.text or ""
        if row.seq == seq:
            question = text
        elif row.role == "user":
            break
        elif row.role == "assistant" and text:
            answer = text
    return question, answer


def _find_groups(tx: Transaction, session_no: int, question_seqs: Sequence[int]) -> dict[int, int]:
    """Return the group of each message: that of the event which has started it, or else the message itself."""
    sql = f"""SELECT seq + 1, version_of FROM event WHERE session_no = $1 AND kind = '{EventKind.VERSION_STARTED.value}'
        AND version_of IS NOT NULL AND seq IN ({build_placeholders(len(question_seqs), first=2)})"""
    rows = tx.fetch_all(sql, session_no, *(seq - 1 for seq in question_seqs))
    return {seq: seq for seq in question_seqs} | {int(seq): int(group) for seq, group in rows}


def _load_last_infos(tx: Transaction, session_no: int, groups: Sequence[int]) -> dict[int, VersionInfo]:
    """Return, by group, what its last change says; each is found in one step, however many there are."""
    if not groups:
        return {}
    values = ", ".join(f"(${number})" for number in range(2, len(groups) + 2))
    sql = f"""WITH wanted (version_of) AS (VALUES {values}) SELECT e.version_of, e.seq, e.kind, e.body FROM wanted
        JOIN event e ON e.session_no = $1 AND e.seq = (SELECT MAX(c.seq) FROM event c WHERE c.session_no = $1
        AND c.version_of = wanted.version_of)"""
    changes = (_read_change(*row) for row in tx.fetch_all(sql, session_no, *groups))
    return {change.info.group: change.info for change in changes if change is not None}


def _load_changes(tx: Transaction, session_no: int, group: int) -> list[_Change]:
    sql = "SELECT version_of, seq, kind, body FROM event WHERE session_no = $1 AND version_of = $2 ORDER BY seq"
    changes = (_read_change(*row) for row in tx.fetch_all(sql, session_no, group))
    return [change for change in changes if change is not None]


def _read_change(group: int, seq: int, kind: str, body: str | None) -> _Change | None:
    facts = find_facts(body)
    number, count = facts.get("version"), facts.get("versions")
    if not (isinstance(number, int) and isinstance(count, int)):
        return None  # damaged
    info = VersionInfo(group=group, number=number, count=count, has_edits=facts.get("has_edits") is True)
    return _Change(seq=seq, kind=kind, facts=facts, info=info)


def _find_message_seq(changes: Sequence[_Change], group: int, number: int) -> int:
    """Return the number of a version's message in the log."""
    starts = (each for each in changes if each.kind == EventKind.VERSION_STARTED and each.info.number == number)
    return next((each.seq + 1 for each in starts), group)


def _find_hiding_change(changes: Sequence[_Change], number: int) -> _Change:
    """Return the change that has hidden a version which is not chosen: the one after it was chosen last."""
    index = max((index for index, each in enumerate(changes) if each.info.number == number), default=-1)
    return changes[index + 1]


# Compactions: summaries that replace the beginning of a conversation for the agent.
#
# Each is an event in the log that points to the one before it, so undoing one brings that one back.
#
# Always true: the summary in effect covers visible messages only; an undo or rewrite of one of them ends it
# (`log_table.py`).


def find_current(tx: Transaction, session_no: int) -> Compaction | None:
    """Return the compaction in effect, if there is one that can be read."""
    return next((_read_compaction(seq, facts) for seq, facts in _iterate_compactions(tx, session_no)), None)


def find_last_summary(tx: Transaction, session_no: int) -> Compaction | None:
    """Return the last compaction that left nothing out, so that a new summary covers what was left out since."""
    compactions = (_read_compaction(seq, facts) for seq, facts in _iterate_compactions(tx, session_no))
    return next((each for each in compactions if each is None or not each.omitted_count), None)


def load_view(tx: Transaction, session_no: int, compaction: Compaction | None, up_to: int) -> tuple[list[Event], bool]:
    """Return the messages that a turn which answers message `up_to` sees, and whether some were left out."""
    first_seq = compaction.first_kept_seq if compaction else 0
    log, is_truncated = events.load_context(tx, session_no, first_seq=first_seq, up_to=up_to)
    carried = [
        event
        for event in events.list_events_at(tx, session_no, compaction.carried_seqs if compaction else ())
        if not event.hidden and event.message is not None and (event.message.role != "user" or event.seq <= up_to)
    ]
    return [*carried, *log], is_truncated


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCompaction:
    summary: str
    first_kept_seq: int
    last_replaced_seq: int  # of the messages that it replaces
    message_count: int
    carried_seqs: Sequence[int] = ()
    omitted_count: int = 0
    focus: str | None = None


def create(
    tx: Transaction, session_no: int, new: NewCompaction, now: int, person_id: PersonId | None = None
) -> Compaction:
    """Replace messages, and the compaction in effect so far."""
    previous_seq = events.lock_session(tx, session_no, "compaction_seq")
    last_replaced = events.find_row(tx, session_no, new.last_replaced_seq)
    if last_replaced is not None and last_replaced.hidden_by is not None:  # so may be all others: by an undo or rewrite
        raise InvalidInput.say("compress.changed", "The conversation changed while it was being summarized. Try again.")
    facts: dict[str, Any] = {
        "summary": make_storable(new.summary),
        "first_kept_seq": new.first_kept_seq,
        "message_count": new.message_count,
        "previous_seq": previous_seq,
    }
    others = {"carried_seqs": list(new.carried_seqs), "omitted_count": new.omitted_count, "focus": new.focus}
    facts |= {name: value for name, value in others.items() if value}
    seq = events.append_event(tx, session_no, EventKind.COMPACTED, now, person_id, **facts)
    _set_current(tx, session_no, seq)
    return _make_compaction(seq, facts)


def undo_last(tx: Transaction, session_no: int, now: int, person_id: PersonId | None = None) -> Compaction:
    """Undo the compaction in effect and return it; the one before it, if any, takes effect again."""
    seq: int | None = events.lock_session(tx, session_no, "compaction_seq")
    if seq is None:
        raise NothingToRestore.say(
            "restore.no_summary", "This conversation has no summary: the agent already sees all of it."
        )
    facts = events.load_facts(tx, session_no, seq)
    compaction, previous_seq = _read_compaction(seq, facts), facts.get("previous_seq")
    if compaction is None:
        raise NothingToRestore.say(
            "restore.unreadable", "The summary can't be read, so it isn't used: the agent already sees all messages."
        )
    undone = {"compaction_seq": seq, "previous_seq": previous_seq}
    events.append_event(tx, session_no, EventKind.COMPACTION_UNDONE, now, person_id, **undone)
    _set_current(tx, session_no, previous_seq)
    return compaction


def _set_current(tx: Transaction, session_no: int, seq: int | None) -> None:
    """Let a compaction take effect. The size of the context is unknown until the next answer reports it."""
    tx.execute("UPDATE session SET compaction_seq = $2, last_prompt_tokens = 0 WHERE no = $1", session_no, seq)


def _read_compaction(seq: int, facts: Mapping[str, Any]) -> Compaction | None:
    """Read the facts of a compaction; None if they are damaged."""
    types = {"summary": str, "first_kept_seq": int, "message_count": int}
    is_complete = all(isinstance(facts.get(name), kind) for name, kind in types.items())
    return _make_compaction(seq, facts) if is_complete else None


def _make_compaction(seq: int, facts: Mapping[str, Any]) -> Compaction:
    return Compaction(
        seq=seq,
        summary=facts["summary"],
        first_kept_seq=facts["first_kept_seq"],
        message_count=facts["message_count"],
        carried_seqs=tuple(facts.get("carried_seqs", ())),
        omitted_count=facts.get("omitted_count", 0),
    )
