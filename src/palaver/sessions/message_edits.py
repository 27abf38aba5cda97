"""What happens to a message on its platform after it was stored: edits, deletions and reactions.

Each is an event in the log. The stored message itself stays: `edited_by` and `hidden_by` point to the event in effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from palaver.core.engines.base import Transaction, fetch_value
from palaver.sessions import log_table as events
from palaver.sessions.delivery import Address
from palaver.sessions.events import EventKind
from palaver.sessions.hidden_ranges import mark_near_hidden
from palaver.sessions.message_table import EventColumns, find_facts

if TYPE_CHECKING:
    from palaver.core.ids import PersonId
    from palaver.core.source import SessionSource

_MAX_COPIES_READ = 100  # how far back a message is looked for that was asked again
_MAX_ANSWER_MESSAGES = 200


class Actor(NamedTuple):
    """The platform on which something was done, and the person who did it, if that is known."""

    platform: str
    person_id: PersonId | None


class MessagePlace(NamedTuple):
    """The session of a message, and its number there."""

    session_no: int
    seq: int


def find_current_place(tx: Transaction, place: MessagePlace, platform_message_id: str) -> MessagePlace:
    """Return where a message of a platform stands now: if it was asked again, its visible copy."""
    row = events.find_row(tx, *place)
    if row is not None and row.is_visible_message:
        return place
    newest = events.list_messages(tx, place.session_no, limit=_MAX_COPIES_READ)
    for event in reversed(newest):
        if event.message is not None and event.message.platform_message_id == platform_message_id:
            return MessagePlace(place.session_no, event.seq)
    return place


def find_edit(tx: Transaction, place: MessagePlace) -> int | None:
    """Return the number of the edit whose text a message has now; None if it was not edited."""
    return fetch_value(tx, "SELECT edited_by FROM event WHERE session_no = $1 AND seq = $2", *place)


def edit_message(tx: Transaction, place: MessagePlace, text: str, actor: Actor, now: int) -> bool:
    """Give a message the text that its author has changed it to; False if it has that text, or is hidden."""
    row = _lock_message(tx, place)
    if row is None or row.hidden_by is not None or row.text == text:
        return False
    session_no, seq = place
    facts = {"seq": seq, "previous_text": row.text, "platform": actor.platform}
    edit_seq = events.append_event(tx, session_no, EventKind.MESSAGE_EDITED, now, actor.person_id, text=text, **facts)
    tx.execute("UPDATE event SET edited_by = $3 WHERE session_no = $1 AND seq = $2", session_no, seq, edit_seq)
    tx.execute("UPDATE session SET unindexed = 1 WHERE no = $1", session_no)
    events.update_counters(tx, session_no, 0)
    return True


def revert_late_edit(tx: Transaction, place: MessagePlace, now: int) -> bool:
    """Give a message that is asked again the text back with which it was answered; False if it was not edited since.

    So the answer stays with the message that it answers, in the version that is left.
    """
    session_no, seq = place
    if find_edit(tx, place) is None:
        return False
    sql = """SELECT body FROM event WHERE session_no = $1 AND kind = 'message_edited' AND seq > (SELECT MIN(a.seq)
        FROM event a WHERE a.session_no = $1 AND a.seq > $2 AND a.kind = 'message' AND a.role = 'assistant'
        AND a.hidden_by IS NULL) ORDER BY seq"""
    edits = tx.fetch_all(sql, session_no, seq)
    facts = next((facts for (body,) in edits if (facts := find_facts(body)).get("seq") == seq), {})
    text = facts.get("previous_text")
    actor = Actor(str(facts.get("platform")), None)
    return isinstance(text, str) and edit_message(tx, place, text, actor, now)


def delete_message(tx: Transaction, place: MessagePlace, actor: Actor, now: int, *, first_seq: int) -> bool:
    """Hide a message that was deleted on its platform, also in versions that are not shown; False if it is hidden.

    `first_seq` is the number of the message as it arrived; later ones with its id are copies in other versions.
    """
    row = _lock_message(tx, place)
    if row is None:
        return False
    message_id = row.platform_message_id
    copies = [] if message_id is None else _find_hidden_copies(tx, place.session_no, first_seq, message_id)
    if row.hidden_by is not None and not copies:
        return False
    session_no, seq = place
    facts = {"seq": seq, "platform": actor.platform}
    hidden_by = events.append_event(tx, session_no, EventKind.MESSAGE_DELETED, now, actor.person_id, **facts)
    update = "UPDATE event SET hidden_by = $3 WHERE session_no = $1 AND seq = $2"
    hidden = {seq, *copies}
    tx.execute_many(update, [(session_no, each, hidden_by) for each in hidden])
    for each in hidden:
        mark_near_hidden(tx, session_no, each, each)
    if row.hidden_by is None:
        events.end_compaction_of_hidden(tx, session_no, seq)
        events.update_counters(tx, session_no, -1)
    return True


def _find_hidden_copies(tx: Transaction, session_no: int, first_seq: int, platform_message_id: str) -> list[int]:
    """Return the numbers of a message in versions that are not shown."""
    change = "SELECT 1 FROM event WHERE session_no = $1 AND version_of IS NOT NULL LIMIT 1"
    if tx.fetch_one(change, session_no) is None:
        return []
    sql = """SELECT e.seq FROM event e JOIN event v ON v.session_no = e.session_no AND v.seq = e.hidden_by
        WHERE e.session_no = $1 AND e.seq >= $2 AND e.kind = 'message' AND e.platform_message_id = $3
        AND v.version_of IS NOT NULL"""
    return [int(seq) for (seq,) in tx.fetch_all(sql, session_no, first_seq, platform_message_id)]


class Reaction(NamedTuple):
    emoji: str
    is_removed: bool
    author: str  # for people to read
    person_id: PersonId


def record_reaction(tx: Transaction, place: MessagePlace, reaction: Reaction, now: int) -> bool:
    """Record a reaction; False if it is known already."""
    session_no, seq = place
    tx.fetch_one(f"SELECT 1 FROM session WHERE no = $1 {tx.for_update}", session_no)
    is_set = False
    for event in events.list_reactions(tx, session_no, after=seq, before=events.END_OF_LOG):
        known = event.facts.get("seq"), event.facts.get("emoji"), event.person_id
        if known == (seq, reaction.emoji, reaction.person_id):
            is_set = not event.facts.get("removed")
    if is_set is not reaction.is_removed:
        return False
    facts = {"seq": seq, "emoji": reaction.emoji, "removed": reaction.is_removed, "author": reaction.author}
    events.append_event(tx, session_no, EventKind.REACTION, now, reaction.person_id, **facts)
    return True


def find_sent_answer(tx: Transaction, source: SessionSource, message_id: str) -> MessagePlace | None:
    """Return where the answer, or the message of a job, stands that was sent to this chat with this id."""
    sql = """SELECT d.address, d.session_no, t.input_seq, d.message_seq FROM delivery_part p
        JOIN delivery d ON d.no = p.delivery_no LEFT JOIN turn t ON t.no = d.turn_no
        WHERE p.sent_message_id = $1 AND d.platform = $2 AND d.account = $3
        AND (d.turn_no IS NOT NULL OR d.message_seq IS NOT NULL) ORDER BY d.no DESC"""
    rows = tx.fetch_all(sql, message_id, str(source.platform), source.account)
    for address, session_no, input_seq, message_seq in rows:
        if session_no is not None and Address.from_text(address).chat_id == source.chat_id:
            if message_seq is not None:
                return MessagePlace(session_no, message_seq)
            return _find_answer(tx, session_no, input_seq)
    return None


def _find_answer(tx: Transaction, session_no: int, input_seq: int) -> MessagePlace | None:
    """Return the last message of the answer to a message."""
    sql = """SELECT seq, body FROM event WHERE session_no = $1 AND seq > $2 AND kind = 'message' AND role = 'assistant'
        ORDER BY seq LIMIT $3"""
    rows = tx.fetch_all(sql, session_no, input_seq, _MAX_ANSWER_MESSAGES)
    seqs = [seq for seq, body in rows if find_facts(body).get("answers") == input_seq]
    return MessagePlace(session_no, seqs[-1]) if seqs else None


def _lock_message(tx: Transaction, place: MessagePlace) -> EventColumns | None:
    """Return a message, and keep others from changing its session until this transaction ends."""
    tx.fetch_one(f"SELECT 1 FROM session WHERE no = $1 {tx.for_update}", place.session_no)
    row = events.find_row(tx, *place)
    return row if row is not None and row.kind == EventKind.MESSAGE else None
