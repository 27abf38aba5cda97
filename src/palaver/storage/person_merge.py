"""Makes two people one when their accounts are linked, and takes an account out of a person again.

Linking moves what refers to the person: accounts, memberships of audiences, read marks, projects, jobs, budgets, files,
shares and open turns. No session, event or memory is touched: they belong to audiences, and the surviving person
becomes a member of them all. The other person's row stays and points at the survivor, so that names in old messages can
be found.

Always true: the other person has no account, no membership and no role left, so nothing can be done in their name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.person import Role
from palaver.storage import budget_windows, imports, jobs, model_calls, people, saved_prompts
from palaver.storage.sources import decode_source

if TYPE_CHECKING:
    from palaver.domain.ids import PersonId, SessionKey
    from palaver.storage.engines.base import Transaction
    from palaver.storage.people import Identity, PersonRow

# Rows that name a person and nothing that the survivor could already have.
_MOVE_STATEMENTS = (
    "UPDATE identity SET person_id = $1 WHERE person_id = $2",
    "UPDATE attachment SET person_id = $1 WHERE person_id = $2",
    "UPDATE share SET person_id = $1 WHERE person_id = $2",
    "UPDATE chat_access SET person_id = $1 WHERE person_id = $2",
    "UPDATE home_channel SET set_by = $1 WHERE set_by = $2",
    "UPDATE setting SET set_by = $1 WHERE set_by = $2",
    "UPDATE setting_change SET person_id = $1 WHERE person_id = $2",
    "UPDATE turn SET person_id = $1 WHERE person_id = $2 AND state IN ('queued', 'running')",
    "UPDATE memory_turn SET person_id = $1 WHERE person_id = $2 AND ended_at IS NULL",
    "UPDATE person SET timezone = COALESCE(timezone, (SELECT timezone FROM person WHERE id = $2)) WHERE id = $1",
    "UPDATE person SET merged_into = $1 WHERE id = $2 OR merged_into = $2",
)
_DELETE_STATEMENTS = (
    "DELETE FROM link_code WHERE person_id = $1",
    "DELETE FROM message_rate WHERE person_id = $1",
)


def has_account(tx: Transaction, person_id: PersonId) -> bool:
    """Whether a person can sign in."""
    return tx.fetch_one("SELECT 1 FROM account WHERE person_id = $1", person_id) is not None


def merge_people(tx: Transaction, survivor: PersonRow, other: PersonRow, now: int) -> None:
    """Give everything of one person to another. The other one must not have an account to sign in with."""
    to_id, from_id = survivor.person.id, other.person.id
    for person_id in sorted((to_id, from_id)):  # one order, so that two merges don't wait for each other
        tx.fetch_one(f"SELECT id FROM person WHERE id = $1 {tx.for_update}", person_id)
    _move_memberships(tx, to_id, from_id, now)
    _move_read_marks(tx, to_id, from_id)
    _move_projects(tx, to_id, from_id)
    saved_prompts.move_to_person(tx, to_id, from_id)
    jobs.move_to_person(tx, to_id, from_id)
    imports.move_to_person(tx, to_id, from_id)
    for statement in _MOVE_STATEMENTS:
        tx.execute(statement, to_id, from_id)
    model_calls.move_to_person(tx, to_id, from_id)  # after the turns: in the order in which a turn's end locks them
    budget_windows.move_to_person(tx, to_id, from_id)
    for statement in _DELETE_STATEMENTS:
        tx.execute(statement, from_id)
    people.set_role(tx, from_id, Role.GUEST)


def _move_memberships(tx: Transaction, to_id: PersonId, from_id: PersonId, now: int) -> None:
    for audience_no in people.list_audiences(tx, from_id):
        people.join_audience(tx, audience_no, to_id, now)
    tx.execute("DELETE FROM audience_member WHERE person_id = $1", from_id)


def _move_read_marks(tx: Transaction, to_id: PersonId, from_id: PersonId) -> None:
    """Where both have read, the one who has read further counts."""
    tx.execute(
        "INSERT INTO read_mark (session_no, person_id, read_seq, updated_at)"
        " SELECT session_no, $1, read_seq, updated_at FROM read_mark WHERE person_id = $2"
        " ON CONFLICT (session_no, person_id) DO UPDATE SET read_seq = CASE"
        " WHEN excluded.read_seq > read_mark.read_seq THEN excluded.read_seq ELSE read_mark.read_seq END",
        to_id,
        from_id,
    )
    tx.execute("DELETE FROM read_mark WHERE person_id = $1", from_id)


def _move_projects(tx: Transaction, to_id: PersonId, from_id: PersonId) -> None:
    """Two projects of the same name become one."""
    same_name = tx.fetch_all(
        "SELECT theirs.no, mine.no FROM project theirs JOIN project mine ON mine.name_key = theirs.name_key"
        " WHERE theirs.person_id = $2 AND mine.person_id = $1",
        to_id,
        from_id,
    )
    for from_no, to_no in same_name:
        tx.execute("UPDATE session SET project_no = $1 WHERE project_no = $2", to_no, from_no)
        tx.execute("DELETE FROM project WHERE no = $1", from_no)
    tx.execute("UPDATE project SET person_id = $1 WHERE person_id = $2", to_id, from_id)


def move_person_lane(tx: Transaction, from_key: SessionKey, to_key: SessionKey, other: PersonRow) -> None:
    """Let the lane of a merged person continue as the survivor's, unless the survivor's is on a session already."""
    moved = tx.execute(
        "INSERT INTO lane (key, session_no, source, audience_no, shared, updated_at)"
        " SELECT $2, session_no, source, audience_no, shared, updated_at FROM lane WHERE key = $1"
        " AND session_no IS NOT NULL ON CONFLICT (key) DO UPDATE SET session_no = excluded.session_no,"
        " source = excluded.source, audience_no = excluded.audience_no, updated_at = excluded.updated_at"
        " WHERE lane.session_no IS NULL",
        from_key,
        to_key,
    )
    if moved:
        tx.execute("UPDATE lane_move SET lane_key = $2 WHERE lane_key = $1", from_key, to_key)
    tx.execute("UPDATE session SET key = $2 WHERE key = $1 AND audience_no = $3", from_key, to_key, other.audience_no)
    tx.execute("DELETE FROM lane WHERE key = $1", from_key)


def detach_lanes(tx: Transaction, person_id: PersonId, identity: Identity, key_prefix: str) -> int:
    """Delete the lanes in which an account wrote as this person, so that its next message starts a session of its own.

    The sessions stay with the person. Lanes of the account have keys with this prefix. Returns how many there were.
    """
    rows = tx.fetch_all(
        "SELECT l.key, l.source FROM person p JOIN lane l ON l.audience_no = p.audience_no"
        " WHERE (p.id = $1 OR p.merged_into = $1) AND l.shared = 0 AND l.key >= $2 AND l.key < $3",
        person_id,
        key_prefix,
        key_prefix + "\uffff",
    )
    account = (identity.platform, identity.account)
    keys = [key for key, source in rows if people.find_account(decode_source(source)) == account]
    for key in keys:
        tx.execute("DELETE FROM lane WHERE key = $1", key)
    return len(keys)
