"""Erases what a person wrote in conversations that others see: groups, copies of them, conversations of other people.

Their messages, edits and reactions, and the agent's answers to these messages, become entries of kind `erased`, which
keep only their number and time. Everything else that may repeat the person's words there is dropped: quotes in messages
of others, summaries for the agent, shared copies, titles. What others wrote stays as it is.

The logs are read once from beginning to end, in the order of their numbers, without keeping a writer waiting; only
those of conversations in which something was found are walked through. A second round makes sure that nothing was
added meanwhile, such as a copy that another person has made of a conversation.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from palaver.core.engines.base import Row, Transaction, build_placeholders, fetch_value
from palaver.core.ids import new_turn_id
from palaver.core.source import decode_source, encode_source
from palaver.core.titles import make_words_title
from palaver.sessions import deletion_table as session_deletion, delivery_queries, log_table
from palaver.sessions.events import ERASED_HIDDEN_FACT, ERASED_KIND_FACT, EventKind
from palaver.sessions.message_table import SELECT_EVENT, EventColumns, find_facts
from palaver.sessions.quoted_messages import CONTEXT_KEY, REPLIED_MESSAGE_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.people.erasures_table import ErasedPerson, ErasureRow

SCANNED_PER_READ: Final = 2000  # entries of all logs
EVENTS_PER_BATCH: Final = 200  # of one conversation, in one transaction
TURNS_PER_BATCH: Final = 100
_LIKE_SIGNS = re.compile(r"[!%_]")
_TURNS_LEFT: Final = -1  # as `session_seq`: the turns of the conversation are being deleted, the log comes after

# What the person did, told by kinds that hold nothing they wrote: only their name is taken out. Undo, compaction and
# the like must stay readable, because other entries depend on them.
_KEPT_KINDS: Final = frozenset(
    {
        *(EventKind.STARTED, EventKind.ENDED, EventKind.REOPENED, EventKind.PINNED, EventKind.UNPINNED),
        *(EventKind.ARCHIVED, EventKind.UNARCHIVED, EventKind.MOVED, EventKind.UNDONE, EventKind.REDONE),
        *(EventKind.REWRITTEN, EventKind.FORKED, EventKind.TURN_INTERRUPTED, EventKind.TURN_FAILED),
        *(EventKind.COMPACTED, EventKind.COMPACTION_UNDONE, EventKind.ANSWER_RESENT, EventKind.MESSAGE_DELETED),
        *(EventKind.VERSION_STARTED, EventKind.VERSION_CHOSEN, EventKind.ERASED),
    }
)


def find_sessions(tx: Transaction, person: ErasedPerson, after: int) -> tuple[list[int], int | None]:
    """Read the next entries of all logs after a number; return the conversations in which the person is found.

    Also returns the number up to which it has read; None at the end.
    """
    found, last = _read_entries(tx, person, after, "1 = 1")
    theirs = {
        session_no
        for session_no, kind, person_id, body in found
        if _is_by_person(person, person_id, facts := find_facts(body)) or _drop_quotes(person, kind, facts)[1]
    }
    return sorted(theirs), last


def count_shared_messages(tx: Transaction, person: ErasedPerson, after: int) -> tuple[int, set[int], int | None]:
    """Count the messages of the person in the next entries of all logs, outside of their own conversations.

    Also returns the conversations that they are in, and the number up to which it has read (None: the end).
    """
    own = build_placeholders(len(person.audiences), first=3)
    is_shared = (
        "kind = 'message' AND NOT EXISTS (SELECT 1 FROM session s WHERE s.no = event.session_no"
        f" AND (s.audience_no IN ({own}) OR s.is_deleted = 1))"
    )
    found, last = _read_entries(tx, person, after, is_shared, *person.audiences)
    theirs = [no for no, _, person_id, body in found if _is_by_person(person, person_id, find_facts(body))]
    return len(theirs), set(theirs), last


def _read_entries(
    tx: Transaction, person: ErasedPerson, after: int, condition: str, *params: object
) -> tuple[list[Row], int | None]:
    """Return those of the next entries that may concern the person, and the number up to which it has read."""
    sql = "SELECT no FROM event WHERE no > $1 ORDER BY no LIMIT 1 OFFSET $2"
    last: int | None = fetch_value(tx, sql, after, SCANNED_PER_READ - 1)
    may_concern, texts = _build_condition(person, first=3 + len(params))
    sql = f"""SELECT session_no, kind, person_id, body FROM event WHERE no > $1 AND no <= $2
        AND {condition} AND ({may_concern}) ORDER BY no"""
    found = tx.fetch_all(sql, *(after, 2**62 if last is None else last, *params, *texts))
    return found, last


def _build_condition(person: ErasedPerson, first: int) -> tuple[str, list[str]]:
    """Return a condition that is true for every entry that may concern the person, and for few others."""
    params = list(person.person_ids)
    conditions = [f"person_id IN ({build_placeholders(len(params), first=first)})"]
    for text in sorted({*person.names, *person.account_ids}):
        params.append("%" + _LIKE_SIGNS.sub(r"!\g<0>", json.dumps(text)) + "%")
        conditions.append(f"body LIKE ${first + len(params) - 1} ESCAPE '!'")
    return " OR ".join(conditions), params


def _is_by_person(person: ErasedPerson, person_id: str | None, facts: dict[str, Any]) -> bool:
    """Return whether an entry is the person's, or names them by an id of a platform, as entries without a person do."""
    author = facts.get("author")
    return person_id in person.person_ids or (isinstance(author, dict) and author.get("id") in person.account_ids)


def _drop_quotes(person: ErasedPerson, kind: str, facts: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the facts of an entry without what it quotes of the person, and how much that was.

    Quotes have nothing but the name of their author.
    """
    kept, count = dict(facts), 0
    context = kept.get(CONTEXT_KEY)
    if isinstance(context, list):
        others = [each for each in context if not (isinstance(each, dict) and each.get("author") in person.names)]
        count += len(context) - len(others)
        kept[CONTEXT_KEY] = others
    replied = kept.get(REPLIED_MESSAGE_KEY)
    if isinstance(replied, dict) and replied.get("author") in person.names:
        del kept[REPLIED_MESSAGE_KEY]
        count += 1
    if kind == EventKind.MEMBERS_CHANGED:
        for key in ("joined", "left"):
            names = kept.get(key)
            if isinstance(names, list):
                kept[key] = [name for name in names if name not in person.names]
                count += len(names) - len(kept[key])
    return kept, count


def start_session(row: ErasureRow, session_no: int) -> ErasureRow:
    counted = row.count(shared_conversations=1)
    person = replace(row.person, has_found_shared=True)
    return replace(counted, person=person, session_no=session_no, session_seq=_TURNS_LEFT)


def erase_batch(tx: Transaction, row: ErasureRow, now: int) -> ErasureRow:
    """Erase the next entries of the conversation that is being worked on."""
    session_no = row.session_no
    assert session_no is not None  # noqa: S101
    sql = f"SELECT is_deleted FROM session WHERE no = $1 {tx.for_update}"
    is_deleted: int | None = fetch_value(tx, sql, session_no)
    if is_deleted is None:
        return replace(row, session_no=None, session_seq=0)  # it was deleted meanwhile
    if is_deleted:  # it is being deleted: the person's entries go with all the others
        session_deletion.delete_piece(tx, session_no)
        return row
    if row.session_seq == _TURNS_LEFT:
        return _erase_turns(tx, row, session_no)
    sql = f"{SELECT_EVENT} WHERE session_no = $1 AND seq > $2 ORDER BY seq LIMIT $3"
    rows = tx.fetch_all(sql, session_no, row.session_seq, EVENTS_PER_BATCH)
    events = [EventColumns._make(each) for each in rows]
    row = _erase_events(tx, row, session_no, events)
    if len(events) == EVENTS_PER_BATCH:
        return replace(row, session_seq=events[-1].seq)
    _finish_session(tx, row.person, session_no, now)
    return replace(row, session_no=None, session_seq=0)


def _erase_turns(tx: Transaction, row: ErasureRow, session_no: int) -> ErasureRow:
    """Delete the person's turns with the answers that were sent to the chat, and notices; others' turns stay."""
    ids = row.person.person_ids
    some = build_placeholders(len(ids), first=2)
    addresses = delivery_queries.lock_open_addresses(tx, session_no)
    sql = f"SELECT no, id FROM turn WHERE session_no = $1 AND person_id IN ({some}) ORDER BY no LIMIT {TURNS_PER_BATCH}"
    turns = tx.fetch_all(sql, session_no, *ids)
    count = 0
    for no, turn_id in turns:
        count += tx.execute("DELETE FROM delivery WHERE turn_no = $1", no)
        _forget_turn_of_usage(tx, session_no, turn_id)
        tx.execute("DELETE FROM turn WHERE no = $1", no)
    tx.execute(f"UPDATE turn SET stopped_by = NULL WHERE session_no = $1 AND stopped_by IN ({some})", session_no, *ids)
    sql = f"""DELETE FROM delivery WHERE no IN (SELECT no FROM delivery WHERE session_no = $1 AND turn_no IS NULL
        AND message_seq IS NULL AND ended_at IS NOT NULL LIMIT {TURNS_PER_BATCH})"""
    notices = tx.execute(sql, session_no)
    delivery_queries.make_next_due(tx, addresses)
    row = row.count(deliveries=count + notices)
    return row if TURNS_PER_BATCH in (len(turns), notices) else replace(row, session_seq=0)


def _forget_turn_of_usage(tx: Transaction, session_no: int, turn_id: str) -> None:
    """Give the usage of a turn another id, so that the conversation keeps its totals and nothing leads to the turn."""
    sql = "SELECT DISTINCT turn_id FROM usage WHERE session_no = $1 AND turn_id >= $2 AND turn_id < $3"
    rows = tx.fetch_all(sql, session_no, turn_id, f"{turn_id}~")
    for (used_id,) in rows:
        update = "UPDATE usage SET turn_id = $3 WHERE session_no = $1 AND turn_id = $2"
        tx.execute(update, session_no, used_id, new_turn_id())


def _erase_events(tx: Transaction, row: ErasureRow, session_no: int, events: Sequence[EventColumns]) -> ErasureRow:
    person = row.person
    bodies = {event.seq: find_facts(event.body) for event in events}
    answered: dict[int, int] = {
        seq: facts["answers"] for seq, facts in bodies.items() if isinstance(facts.get("answers"), int)
    }
    gone = _find_gone(tx, person, session_no, sorted(set(answered.values())))
    hidden_change, quotes, erased, summaries = 0, 0, 0, 0
    for event in events:
        seq, kind, person_id, hidden_by = event.seq, event.kind, event.person_id, event.hidden_by
        facts = bodies[seq]
        is_theirs = _is_by_person(person, person_id, facts)
        is_answer = kind == EventKind.MESSAGE and answered.get(seq) in gone
        is_title = kind == EventKind.RENAMED and facts.get("automatic") is True
        if (is_theirs and kind not in _KEPT_KINDS) or is_answer or is_title:
            _erase_event(tx, session_no, seq, kind, is_hidden=hidden_by is not None)
            gone.add(seq)
            erased += kind == EventKind.MESSAGE
            hidden_change += kind == EventKind.MESSAGE and hidden_by is None
            continue
        if kind == EventKind.COMPACTED and facts.get("summary") is not None:
            facts = {**facts, "summary": None, "focus": None}
            summaries += 1
        kept, count = _drop_quotes(person, kind, facts)
        quotes += count
        if is_theirs or kept != bodies[seq]:
            sql = "UPDATE event SET body = $3, person_id = $4 WHERE session_no = $1 AND seq = $2"
            tx.execute(
                sql,
                session_no,
                seq,
                json.dumps(kept, separators=(",", ":")) if kept else None,
                None if is_theirs else person_id,
            )
    if hidden_change:
        log_table.update_counters(tx, session_no, -hidden_change)
    return row.count(shared_messages=erased, quotes=quotes, summaries=summaries)


def _find_gone(tx: Transaction, person: ErasedPerson, session_no: int, seqs: Sequence[int]) -> set[int]:
    """Return those of these messages that are erased already, or will be because the person wrote them."""
    some = build_placeholders(len(seqs), first=2)
    sql = f"SELECT seq, kind, person_id, body FROM event WHERE session_no = $1 AND seq IN ({some})"
    return {
        seq
        for seq, kind, person_id, body in (tx.fetch_all(sql, session_no, *seqs) if seqs else ())
        if kind == EventKind.ERASED or _is_by_person(person, person_id, find_facts(body))
    }


def _erase_event(tx: Transaction, session_no: int, seq: int, kind: str, *, is_hidden: bool) -> None:
    facts: dict[str, Any] = {ERASED_KIND_FACT: kind}
    if is_hidden:
        facts[ERASED_HIDDEN_FACT] = True
    key = "rowid" if tx.name == "sqlite" else "event_no"
    event_no = "SELECT no FROM event WHERE session_no = $1 AND seq = $2"
    tx.execute(f"DELETE FROM search WHERE {key} = ({event_no})", session_no, seq)
    sql = """UPDATE event SET kind = 'erased', role = NULL, content = NULL, body = $3, person_id = NULL,
        platform_message_id = NULL, hidden_by = NULL, edited_by = NULL WHERE session_no = $1 AND seq = $2"""
    tx.execute(sql, session_no, seq, json.dumps(facts))


def _finish_session(tx: Transaction, person: ErasedPerson, session_no: int, now: int) -> None:
    """Drop the rest that may repeat the person's words, and say in the log that something was erased."""
    ids = person.person_ids
    some = build_placeholders(len(ids), first=2)
    tx.execute(f"DELETE FROM memory_turn WHERE session_no = $1 AND person_id IN ({some})", session_no, *ids)
    tx.execute("DELETE FROM share WHERE session_no = $1", session_no)
    tx.execute("UPDATE session SET compaction_seq = NULL, last_prompt_tokens = 0 WHERE no = $1", session_no)
    _replace_titles(tx, session_no)
    _remove_from_source(tx, person, session_no)
    sql = """UPDATE session SET active_at = NULL, unindexed = 0 WHERE no = $1 AND NOT EXISTS
        (SELECT 1 FROM event e WHERE e.session_no = $1 AND e.kind = 'message')"""
    tx.execute(sql, session_no)
    log_table.append_event(tx, session_no, EventKind.ERASED, now)


def _replace_titles(tx: Transaction, session_no: int) -> None:
    """Name a conversation after the first words that are left; a title that another person chose stays."""
    sql = f"""{SELECT_EVENT} WHERE session_no = $1 AND kind = 'message' AND role = 'user' AND hidden_by IS NULL
        ORDER BY seq LIMIT 1"""
    row = tx.fetch_one(sql, session_no)
    words = make_words_title(EventColumns._make(row).text or "") if row else None
    tx.execute("UPDATE session SET auto_title = $2, auto_title_asked = 1 WHERE no = $1", session_no, words)
    sql = """SELECT title, (SELECT e.body FROM event e WHERE e.session_no = $1 AND e.kind = 'renamed'
        ORDER BY e.seq DESC LIMIT 1) FROM session WHERE no = $1 AND title IS NOT NULL"""
    renamed = tx.fetch_one(sql, session_no)
    if renamed is not None and find_facts(renamed[1]).get("title") != renamed[0]:  # the entry that set it is erased
        tx.execute("UPDATE session SET title = NULL, title_base = NULL, title_number = NULL WHERE no = $1", session_no)


def _remove_from_source(tx: Transaction, person: ErasedPerson, session_no: int) -> None:
    """Take the person out of where a conversation, and the lanes on it, say who began it."""
    for table, column, key in (("session", "no", "no"), ("lane", "session_no", "key")):
        rows = tx.fetch_all(f"SELECT {key}, source FROM {table} WHERE {column} = $1", session_no)
        for key_value, text in rows:
            source = decode_source(text)
            if source.user_id in person.account_ids or source.user_id_alt in person.account_ids:
                anonymous = replace(source, user_id=None, user_id_alt=None, user_name=None)
                tx.execute(f"UPDATE {table} SET source = $2 WHERE {key} = $1", key_value, encode_source(anonymous))
