"""Undoes what linking did: a person who was linked to another has their own accounts and belongings again.

What they had before returns, by its marks. Conversations return with everything that was written in them since, because
they belong to the person's own audience. What was created after the link stays with the person it was created for.

Always true: afterwards neither sees, runs or is sent anything of the other's: no membership, lane, project, share, open
turn or run of a job crosses between the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.accounts.merge_table import MEMBERSHIP_MARK, lock_people
from palaver.core.crash_points import crash_point
from palaver.core.ids import PersonId
from palaver.core.sources import decode_source
from palaver.core.statements import build_placeholders
from palaver.money import windows_table as budget_windows
from palaver.people import linked_rows, table as people
from palaver.people.linked_rows import MOVED_COLUMNS
from palaver.people.model import ROLE_RANKS, Role

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import SessionKey
    from palaver.people.table import PersonRow

# $1 is an audience of the person who leaves: no lane of theirs is on a conversation of another, nor one of another on
# theirs.
_SEPARATE_STATEMENTS = (
    "DELETE FROM lane_move WHERE no IN (SELECT m.no FROM session s JOIN lane_move m ON m.from_session_no = s.no"
    " JOIN session t ON t.no = m.to_session_no WHERE s.audience_no = $1 AND t.audience_no <> $1)",
    "DELETE FROM lane_move WHERE no IN (SELECT m.no FROM session s JOIN lane_move m ON m.to_session_no = s.no"
    " JOIN session f ON f.no = m.from_session_no WHERE s.audience_no = $1 AND f.audience_no <> $1)",
    "DELETE FROM lane WHERE key IN (SELECT l.key FROM lane l JOIN session s ON s.no = l.session_no"
    " WHERE l.audience_no = $1 AND s.audience_no <> $1 AND l.shared = 0)",
    "DELETE FROM lane WHERE key IN (SELECT l.key FROM session s JOIN lane l ON l.session_no = s.no"
    " WHERE s.audience_no = $1 AND l.audience_no <> $1 AND l.shared = 0)",
)
# What hangs on a conversation; $1 is the person who leaves, $2 the one who stays, $3 an audience of the first.
_FOLLOW_STATEMENTS = tuple(
    f"UPDATE {table} SET person_id = $1 WHERE person_id = $2 AND {condition}"
    " AND session_no IN (SELECT no FROM session WHERE audience_no = $3)"
    for table, condition in (
        ("turn", "state IN ('queued', 'running')"),
        ("memory_turn", "ended_at IS NULL"),
        ("share", "1 = 1"),
    )
)
# $1 is the person who leaves: their projects and jobs don't lead to conversations that they don't see, and back.
_SEES = "(SELECT audience_no FROM audience_member WHERE person_id = $1)"
_UNFILE_STATEMENTS = (
    f"UPDATE session SET project_no = NULL WHERE project_no IN (SELECT no FROM project WHERE person_id = $1)"
    f" AND audience_no NOT IN {_SEES}",
    f"UPDATE job_run SET session_no = NULL, turn_no = NULL WHERE ended_at IS NOT NULL"
    " AND job_no IN (SELECT no FROM job WHERE person_id = $1) AND EXISTS (SELECT 1 FROM session s"
    f" WHERE s.no = job_run.session_no AND s.audience_no NOT IN {_SEES})",
)
_UNFILE_FOREIGN = (
    "UPDATE session SET project_no = NULL WHERE audience_no = $2 AND project_no IS NOT NULL"
    " AND project_no NOT IN (SELECT no FROM project WHERE person_id = $1)"
)


def unmerge(tx: Transaction, survivor: PersonRow, other: PersonRow, now: int) -> list[int]:
    """Give a linked person back what they had, with those who were linked to them before.

    Call `detach_lanes` for their accounts, too. Returns the audiences that are theirs again.
    """
    to_id, from_id = other.person.id, survivor.person.id
    lock_people(tx, {from_id: None, to_id: from_id})
    group = linked_rows.list_group(tx, to_id)
    some = build_placeholders(len(group))
    audiences = [int(no) for (no,) in tx.fetch_all(f"SELECT audience_no FROM person WHERE id IN ({some})", *group)]
    _return_memberships(tx, group, from_id, now)
    _return_roles(tx, group, from_id)
    for moved in reversed(MOVED_COLUMNS):  # a limit is named by its person in the mark of who has set it
        linked_rows.give_back(tx, group, from_id, moved)
    crash_point("unlink.moved")
    for audience_no in audiences:
        for statement in _FOLLOW_STATEMENTS:
            tx.execute(statement, to_id, from_id, audience_no)
        tx.execute(_UNFILE_FOREIGN, to_id, audience_no)
        for statement in _SEPARATE_STATEMENTS:
            tx.execute(statement, audience_no)
    for statement in _UNFILE_STATEMENTS:
        tx.execute(statement, to_id)
    _return_read_marks(tx, to_id, from_id)
    for person_id in group:
        budget_windows.subtract_used(tx, from_id, person_id)
    for person_id in group[1:]:
        budget_windows.add_used(tx, to_id, person_id)
    linked_rows.delete_marks(tx, to_id)
    tx.execute(
        "DELETE FROM linked_row WHERE person_id = $1 AND NOT EXISTS (SELECT 1 FROM person WHERE merged_into = $1)",
        from_id,  # what they had, too, says nothing without a linked person
    )
    tx.execute("DELETE FROM link_code WHERE person_id = $1 OR claim_person_id = $1", from_id)
    return audiences


def _return_memberships(tx: Transaction, group: Sequence[PersonId], from_id: PersonId, now: int) -> None:
    """Let the linked person see again what they saw; the other one sees of that only what they saw without them."""
    to_id, without = group[0], build_placeholders(len(group), first=4)
    for key in {key for each in group for key in linked_rows.list_keys(tx, each, MEMBERSHIP_MARK)}:
        people.join_audience(tx, int(key), to_id, now)
        is_kept = tx.fetch_one(
            "SELECT 1 FROM linked_row m JOIN person p ON p.id = m.person_id WHERE m.table_name = $1 AND m.row_key = $2"
            f" AND (p.id = $3 OR p.merged_into = $3) AND p.id NOT IN ({without}) LIMIT 1",
            MEMBERSHIP_MARK,
            key,
            from_id,
            *group,
        )
        if is_kept is None:
            tx.execute("DELETE FROM audience_member WHERE person_id = $1 AND audience_no = $2", from_id, int(key))


def _return_read_marks(tx: Transaction, to_id: PersonId, from_id: PersonId) -> None:
    """Both have read as far as one of them; none keeps a mark in a conversation that they don't see."""
    sees = (
        "EXISTS (SELECT 1 FROM session s JOIN audience_member a ON a.audience_no = s.audience_no"
        " WHERE s.no = read_mark.session_no AND a.person_id = $1)"
    )
    tx.execute(
        "INSERT INTO read_mark (session_no, person_id, read_seq, updated_at)"
        f" SELECT session_no, $1, read_seq, updated_at FROM read_mark WHERE person_id = $2 AND {sees}"
        " ON CONFLICT DO NOTHING",
        to_id,
        from_id,
    )
    tx.execute(f"DELETE FROM read_mark WHERE person_id = $1 AND NOT {sees}", from_id)


def _return_roles(tx: Transaction, group: Sequence[PersonId], from_id: PersonId) -> None:
    """Give both the role that they had without each other, and never more than they have together now."""
    rows = tx.fetch_all(
        "SELECT id, role, unlinked_role FROM person WHERE id = $1 OR merged_into = $1 ORDER BY id", from_id
    )
    together = next(Role(role) for person_id, role, _ in rows if person_id == from_id)
    own = {PersonId(person_id): Role(role) for person_id, _, role in rows if role is not None}
    for person_id, linked in (
        (group[0], [own.get(each, Role.GUEST) for each in group]),
        (from_id, [role for each, role in own.items() if each not in group]),
    ):
        if person_id == from_id and from_id not in own:
            continue  # the role is their own
        role = min(max(linked, key=ROLE_RANKS.__getitem__), together, key=ROLE_RANKS.__getitem__)
        base = own.get(person_id, Role.GUEST)
        tx.execute(
            "UPDATE person SET role = $2, unlinked_role = $3, merged_into = NULL WHERE id = $1",
            person_id,
            role.value,
            None if role is base or ROLE_RANKS[role] < ROLE_RANKS[base] else base.value,
        )


# -- lanes --------------------------------------------------------------------------------------------------


def return_person_lane(tx: Transaction, from_key: SessionKey, to_key: SessionKey, other: PersonRow) -> None:
    """Undo `move_person_lane`: conversations of the person who leaves are found under their own key again."""
    tx.execute("UPDATE session SET key = $2 WHERE key = $1 AND audience_no = $3", from_key, to_key, other.audience_no)


def detach_lanes(tx: Transaction, person_id: PersonId, accounts: Collection[tuple[str, str]], key_prefix: str) -> int:
    """Delete the lanes in which accounts wrote as this person, so that their next message is not in their session.

    The sessions stay with the person. Lanes of the accounts have keys with this prefix. Returns how many there were.
    """
    rows = tx.fetch_all(
        "SELECT l.key, l.source FROM person p JOIN lane l ON l.audience_no = p.audience_no"
        " WHERE (p.id = $1 OR p.merged_into = $1) AND l.shared = 0 AND l.key >= $2 AND l.key < $3",
        person_id,
        key_prefix,
        key_prefix + "\uffff",
    )
    keys = [key for key, source in rows if people.find_account(decode_source(source)) in accounts]
    for key in keys:
        tx.execute("DELETE FROM lane WHERE key = $1", key)
    return len(keys)
