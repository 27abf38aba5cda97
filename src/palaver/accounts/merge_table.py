"""Makes two people one when their accounts are linked.

Linking moves what refers to the person: accounts, memberships of audiences, read marks, projects, jobs, budgets, files,
shares and open turns. No session, event or memory is touched: they belong to audiences, and the surviving person
becomes a member of them all. The other person's row stays and points at the survivor, so that names in old messages can
be found. What moves is marked, so that `unmerge` can undo it.

Always true: the other person has no account, no membership and no role left, so nothing can be done in their name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.accounts.person_tables import PERSON_DATA, list_following, list_moved
from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Conflict, Transaction, build_placeholders, fetch_value
from palaver.core.ids import PersonId, SessionKey
from palaver.core.source import Platform, decode_source
from palaver.core.text import make_name_key
from palaver.jobs import table as jobs
from palaver.money import calls_table as model_calls, windows_table as budget_windows
from palaver.people import linked_rows, pairing_table as pairing_requests, table as people
from palaver.people.model import ROLE_RANKS, Role
from palaver.people.person_data import Follows

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from palaver.people.table import PersonRow


MEMBERSHIP_MARK = "audience_member"
_PERSON_STATEMENTS = (
    "UPDATE person SET timezone = COALESCE(timezone, (SELECT timezone FROM person WHERE id = $2)),"
    " language = COALESCE(language, (SELECT language FROM person WHERE id = $2)) WHERE id = $1",
    "UPDATE person SET merged_into = $1 WHERE id = $2",
)


def can_sign_in(tx: Transaction, person_id: PersonId) -> bool:
    """Return whether a person can sign in, or is the one at the terminal: such a person is never linked to another."""
    sql = (
        "SELECT 1 FROM account WHERE person_id = $1 UNION ALL SELECT 1 FROM identity WHERE person_id = $1"
        f" AND platform = '{Platform.LOCAL}' LIMIT 1"
    )
    return tx.fetch_one(sql, person_id) is not None


def merge_people(tx: Transaction, survivor: PersonRow, other: PersonRow, now: int) -> None:
    """Give everything of one person to another. The other one must not have an account to sign in with."""
    to_id, from_id = survivor.person.id, other.person.id
    lock_people(tx, {to_id: None, from_id: None})
    _move_memberships(tx, to_id, from_id, now)
    _move_read_marks(tx, to_id, from_id)
    for column, moved in list_moved():
        linked_rows.move_rows(tx, to_id, from_id, column, moved)
        if moved.has_unique_names:
            _move_named_rows(tx, to_id, from_id, column.table)
    crash_point("link.moved")
    for column in PERSON_DATA:
        if isinstance(column.merge, Follows):
            sql = f"UPDATE {column.table} SET person_id = $1 WHERE person_id = $2 AND {column.merge.is_open}"
            tx.execute(sql, to_id, from_id)
    model_calls.move_to_person(tx, to_id, from_id)  # after the turns: in the order in which a turn's end locks them
    budget_windows.move_to_person(tx, to_id, from_id)
    for linked_id in linked_rows.list_group(tx, from_id)[1:]:  # their windows have what they have used
        budget_windows.subtract_used(tx, from_id, linked_id)
    for statement in _PERSON_STATEMENTS:
        tx.execute(statement, to_id, from_id)
    tx.execute("DELETE FROM message_rate WHERE person_id = $1", from_id)
    for person_id in (to_id, from_id):  # another link that waits was to share less
        pairing_requests.delete_links_of_person(tx, person_id)
    tx.execute("UPDATE person SET unlinked_role = COALESCE(unlinked_role, role), role = 'guest' WHERE id = $1", from_id)


_SEEN = "audience_no IN (SELECT audience_no FROM audience_member WHERE person_id = $1)"


def count_belongings(tx: Transaction, person_id: PersonId | None) -> dict[str, int]:
    """Count what a person shares when their accounts are linked to another person; a stranger has nothing."""
    counted = {
        "conversations": f"session WHERE {_SEEN} AND shared = 0 AND active_at IS NOT NULL",
        "group_conversations": f"session WHERE {_SEEN} AND shared = 1 AND active_at IS NOT NULL",
        "memories": f"memory WHERE {_SEEN}",
        **{
            each.belonging: f"{each.table} WHERE {each.column} = $1 AND {each.only} AND {each.belonging_only}"
            for each in PERSON_DATA
            if each.belonging
        },
    }
    if person_id is None:
        return dict.fromkeys(counted, 0)
    return {
        kind: int(fetch_value(tx, f"SELECT COUNT(*) FROM {rows}", person_id) or 0) for kind, rows in counted.items()
    }


def lock_people(tx: Transaction, merged_into: Mapping[PersonId, PersonId | None]) -> None:
    """Lock people; raises Conflict, so that everything is read again, if one is linked to another than this."""
    for person_id in sorted(merged_into):  # one order, so that two transactions don't wait for each other
        row = tx.fetch_one(f"SELECT merged_into FROM person WHERE id = $1 {tx.for_update}", person_id)
        if row != (merged_into[person_id],):
            raise Conflict


def raise_role(tx: Transaction, person_id: PersonId, role: Role) -> None:
    """Give a person the role of an account that was linked to them, and remember their own."""
    sql = "UPDATE person SET unlinked_role = COALESCE(unlinked_role, role), role = $2 WHERE id = $1 AND role <> $2"
    tx.execute(sql, person_id, role.value)


def _move_named_rows(tx: Transaction, to_id: PersonId, from_id: PersonId, table: str) -> None:
    """Give the rows of one person to another; a row whose name is taken there gets a number."""
    taken = {key for (key,) in tx.fetch_all(f"SELECT name_key FROM {table} WHERE person_id = $1", to_id)}
    rows = tx.fetch_all(f"SELECT id, name, name_key FROM {table} WHERE person_id = $1 ORDER BY created_at, id", from_id)
    for row_id, name, key in rows:
        free = jobs.find_free_name(name, taken) if key in taken else name
        free_key = make_name_key(free) if key in taken else key
        taken.add(free_key)
        tx.execute(
            f"UPDATE {table} SET person_id = $2, name = $3, name_key = $4 WHERE id = $1", row_id, to_id, free, free_key
        )


def _move_memberships(tx: Transaction, to_id: PersonId, from_id: PersonId, now: int) -> None:
    """Let one person see what another sees. Marked is who was a member without the other: maybe both were."""
    theirs = people.list_audiences(tx, from_id)
    own = set(people.list_audiences(tx, to_id))
    for person_id, audiences in ((from_id, theirs), (to_id, [no for no in theirs if no in own])):
        from_linked = (
            "SELECT 1 FROM linked_row m JOIN person p ON p.id = m.person_id WHERE p.merged_into = $2"
            " AND m.table_name = $3 AND m.row_key = $1"
        )
        sql = f"""INSERT INTO linked_row (row_key, person_id, table_name) SELECT CAST($1 AS TEXT), $2, $3
            WHERE NOT EXISTS ({from_linked}) ON CONFLICT DO NOTHING"""
        tx.execute_many(sql, [(str(no), person_id, MEMBERSHIP_MARK) for no in audiences])
    for audience_no in theirs:
        people.join_audience(tx, audience_no, to_id, now)
    tx.execute("DELETE FROM audience_member WHERE person_id = $1", from_id)


def _move_read_marks(tx: Transaction, to_id: PersonId, from_id: PersonId) -> None:
    """Give the read marks of one person to another; in a conversation that both have read, the further mark counts."""
    sql = """INSERT INTO read_mark (session_no, person_id, read_seq, updated_at)
        SELECT session_no, $1, read_seq, updated_at FROM read_mark WHERE person_id = $2
        ON CONFLICT (session_no, person_id) DO UPDATE SET read_seq = CASE
        WHEN excluded.read_seq > read_mark.read_seq THEN excluded.read_seq ELSE read_mark.read_seq END"""
    tx.execute(sql, to_id, from_id)
    tx.execute("DELETE FROM read_mark WHERE person_id = $1", from_id)


def move_person_lane(
    tx: Transaction, from_key: SessionKey, to_key: SessionKey, survivor: PersonRow, other: PersonRow
) -> None:
    """Let the lane of a merged person continue as the survivor's, unless the survivor's is on a session already."""
    sql = """INSERT INTO lane (key, session_no, source, audience_no, shared, updated_at)
        SELECT $2, session_no, source, $3, shared, updated_at FROM lane WHERE key = $1
        AND session_no IS NOT NULL ON CONFLICT (key) DO UPDATE SET session_no = excluded.session_no,
        source = excluded.source, audience_no = excluded.audience_no, updated_at = excluded.updated_at
        WHERE lane.session_no IS NULL"""
    moved = tx.execute(sql, from_key, to_key, survivor.audience_no)
    if moved:
        tx.execute("UPDATE lane_move SET lane_key = $2 WHERE lane_key = $1", from_key, to_key)
    tx.execute("UPDATE session SET key = $2 WHERE key = $1 AND audience_no = $3", from_key, to_key, other.audience_no)
    tx.execute("DELETE FROM lane WHERE key = $1", from_key)


# ---- unlinking -------------------------------------------------------------------------------------------

# Undoes what linking did: a person who was linked to another has their own accounts and belongings again.
#
# What they had before returns, by its marks. Conversations return with everything that was written in them since,
# because they belong to the person's own audience. What was created after the link stays with the person it was
# created for.
#
# Always true: afterwards neither sees, runs or is sent anything of the other's: no membership, lane, project, share,
# open turn or run of a job crosses between the two.

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
    for column, moved in reversed(list(list_moved())):
        linked_rows.return_rows(tx, group, from_id, column, moved)
    crash_point("unlink.moved")
    for audience_no in audiences:
        for table, is_open in list_following():
            sql = f"""UPDATE {table} SET person_id = $1 WHERE person_id = $2 AND {is_open}
                AND session_no IN (SELECT no FROM session WHERE audience_no = $3)"""
            tx.execute(sql, to_id, from_id, audience_no)
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
    sql = "DELETE FROM linked_row WHERE person_id = $1 AND NOT EXISTS (SELECT 1 FROM person WHERE merged_into = $1)"
    tx.execute(
        sql,
        from_id,  # what they had, too, says nothing without a linked person
    )
    pairing_requests.delete_links_of_person(tx, from_id)
    return audiences


def _return_memberships(tx: Transaction, group: Sequence[PersonId], from_id: PersonId, now: int) -> None:
    """Let the linked person see again what they saw; the other one sees of that only what they saw without them."""
    to_id, without = group[0], build_placeholders(len(group), first=4)
    for key in {key for each in group for key in linked_rows.list_keys(tx, each, MEMBERSHIP_MARK)}:
        people.join_audience(tx, int(key), to_id, now)
        sql = (
            "SELECT 1 FROM linked_row m JOIN person p ON p.id = m.person_id WHERE m.table_name = $1 AND m.row_key = $2"
            f" AND (p.id = $3 OR p.merged_into = $3) AND p.id NOT IN ({without}) LIMIT 1"
        )
        is_kept = tx.fetch_one(sql, MEMBERSHIP_MARK, key, from_id, *group)
        if is_kept is None:
            tx.execute("DELETE FROM audience_member WHERE person_id = $1 AND audience_no = $2", from_id, int(key))


def _return_read_marks(tx: Transaction, to_id: PersonId, from_id: PersonId) -> None:
    """Both have read as far as one of them; none keeps a mark in a conversation that they don't see."""
    sees = (
        "EXISTS (SELECT 1 FROM session s JOIN audience_member a ON a.audience_no = s.audience_no"
        " WHERE s.no = read_mark.session_no AND a.person_id = $1)"
    )
    sql = f"""INSERT INTO read_mark (session_no, person_id, read_seq, updated_at)
        SELECT session_no, $1, read_seq, updated_at FROM read_mark WHERE person_id = $2 AND {sees}
        ON CONFLICT DO NOTHING"""
    tx.execute(sql, to_id, from_id)
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
        sql = "UPDATE person SET role = $2, unlinked_role = $3, merged_into = NULL WHERE id = $1"
        tx.execute(
            sql, person_id, role.value, None if role is base or ROLE_RANKS[role] < ROLE_RANKS[base] else base.value
        )


def return_person_lane(tx: Transaction, from_key: SessionKey, to_key: SessionKey, other: PersonRow) -> None:
    """Undo `move_person_lane`: conversations of the person who leaves are found under their own key again."""
    tx.execute("UPDATE session SET key = $2 WHERE key = $1 AND audience_no = $3", from_key, to_key, other.audience_no)


def detach_lanes(tx: Transaction, person_id: PersonId, accounts: Collection[tuple[str, str]], key_prefix: str) -> int:
    """Delete the lanes in which accounts wrote as this person, so that their next message is not in their session.

    The sessions stay with the person. Lanes of the accounts have keys with this prefix. Returns how many there were.
    """
    sql = """SELECT l.key, l.source FROM person p JOIN lane l ON l.audience_no = p.audience_no
        WHERE (p.id = $1 OR p.merged_into = $1) AND l.shared = 0 AND l.key >= $2 AND l.key < $3"""
    rows = tx.fetch_all(sql, person_id, key_prefix, key_prefix + "\uffff")
    keys = [key for key, source in rows if people.find_account(decode_source(source)) in accounts]
    for key in keys:
        tx.execute("DELETE FROM lane WHERE key = $1", key)
    return len(keys)
