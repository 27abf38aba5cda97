"""Deletes what belongs to one person alone, in batches: conversations, jobs, files, memories, projects, marks, usage.

What is declared beside its table (`people/person_data.py`) is deleted by `delete_rows`. Every other function does one
small batch of one step of an erasure, and returns how far the erasure has come then.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.accounts.person_tables import IMPORTED_ITEM_OWNER
from palaver.core.engines.base import Transaction, build_placeholders
from palaver.core.ids import new_turn_id
from palaver.sessions import (
    deletion_table as session_deletion,
    delivery_queries,
    search_table as search_merge,
    table as sessions,
)
from palaver.sessions.delivery import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from palaver.people.erasures_table import ErasedPerson, ErasureRow
    from palaver.people.person_data import PersonColumn

ROWS_PER_BATCH: Final = 200
EVENTS_PER_BATCH: Final = 200
_USAGE_ROUNDING_MICROS: Final = 900_000_000  # every time zone's day begins at a multiple of 15 minutes
MERGED_DELETIONS_PERCENT: Final = 10  # FTS5's own default of `deletemerge`, which is 0 otherwise (migration 13)
_NO_SESSION: Final = 0  # the `session_no` of anonymous usage: no session has it


def delete_rows(tx: Transaction, person: ErasedPerson, column: PersonColumn, limit: int | None = None) -> int:
    table, key, values = column.table, column.batch_key, get_values(person, column)
    if not values:
        return 0
    is_theirs = f"{build_condition(column, len(values))} AND {column.erase_only}"
    if limit is not None:
        is_theirs = f"({key}) IN (SELECT {key} FROM {table} WHERE {is_theirs} LIMIT {limit})"
    return tx.execute(f"DELETE FROM {table} WHERE {is_theirs}", *values)


def get_values(person: ErasedPerson, column: PersonColumn) -> Sequence[object]:
    special = {"audience_no": person.audiences, "address": person.addresses}
    return special.get(column.column, person.person_ids)


def build_condition(column: PersonColumn, count: int) -> str:
    return f"{column.column} IN ({build_placeholders(count)}) AND {column.only}"


def erase_rows(tx: Transaction, row: ErasureRow, column: PersonColumn) -> ErasureRow:
    deleted = delete_rows(tx, row.person, column, ROWS_PER_BATCH)
    counted = row.count(**{column.count: deleted}) if column.count else row
    return counted if deleted == ROWS_PER_BATCH else counted.go_on()


def erase_jobs(tx: Transaction, row: ErasureRow) -> ErasureRow:
    ids = row.person.person_ids
    some = build_placeholders(len(ids))
    job = tx.fetch_one(f"SELECT no, id FROM job WHERE person_id IN ({some}) ORDER BY no LIMIT 1", *ids)
    if job is None:
        return row.go_on()
    job_no, job_id = job
    runs = tx.execute(
        "DELETE FROM job_run WHERE no IN (SELECT no FROM job_run WHERE job_no = $1 ORDER BY slot LIMIT $2)",
        job_no,
        ROWS_PER_BATCH,
    )
    if runs == ROWS_PER_BATCH:
        return row.count(job_runs=runs)
    tx.execute("DELETE FROM job WHERE no = $1", job_no)
    for table in ("budget_window", "budget_limit"):
        tx.execute(f"DELETE FROM {table} WHERE scope = 'job' AND subject = $1", job_id)
    return row.count(jobs=1, job_runs=runs)


def erase_sessions(tx: Transaction, row: ErasureRow) -> ErasureRow:
    """Delete conversations that only the person sees; of a long one, a piece.

    Conversations that are being deleted come first, also other people's: their rows no longer say whose they were.
    """
    hidden_no = session_deletion.find_hidden(tx)
    if hidden_no is not None:
        session_deletion.delete_piece(tx, hidden_no)
        return row
    audiences = row.person.audiences
    rows_left = EVENTS_PER_BATCH
    while rows_left > 0:
        found = tx.fetch_one(
            f"SELECT no FROM session WHERE audience_no IN ({build_placeholders(len(audiences))}) LIMIT 1", *audiences
        )
        if found is None:
            return row.go_on() if session_deletion.find_hidden(tx) is None else row
        session_row = sessions.find_by_no(tx, found[0], tx.for_update)
        if session_row is None:
            continue
        tx.execute("DELETE FROM lane WHERE session_no = $1", session_row.no)
        deleted = session_deletion.delete(tx, session_row)
        row = row.count(conversations=1, messages=deleted.messages, deliveries=deleted.deliveries)
        rows_left -= max(deleted.rows, 1)
    return row


def erase_memories(tx: Transaction, row: ErasureRow) -> ErasureRow:
    """Delete the memories of the person's own audiences, and those that they added to others'."""
    person = row.person
    return _erase_in_order(
        tx,
        row,
        "memory",
        "audience_no, person_id",
        lambda audience_no, person_id: audience_no in person.audiences or person_id in person.person_ids,
    )


def erase_group_messages(tx: Transaction, row: ErasureRow) -> ErasureRow:
    return _erase_in_order(
        tx,
        row,
        "group_message",
        "platform, sender",
        lambda platform, sender: (platform, sender) in row.person.accounts,
    )


def _erase_in_order(
    tx: Transaction, row: ErasureRow, table: str, columns: str, is_theirs: Callable[..., bool]
) -> ErasureRow:
    """Read the next rows of a table in their order, and delete those of the person."""
    rows = tx.fetch_all(
        f"SELECT no, {columns} FROM {table} WHERE no > $1 ORDER BY no LIMIT $2", row.position, ROWS_PER_BATCH
    )
    theirs = [(no,) for no, *values in rows if is_theirs(*values)]
    tx.execute_many(f"DELETE FROM {table} WHERE no = $1", theirs)
    counted = row.count(**{row.step.value: len(theirs)})
    return replace(counted, position=rows[-1][0]) if len(rows) == ROWS_PER_BATCH else counted.go_on()


def erase_attachments(tx: Transaction, row: ErasureRow) -> ErasureRow:
    """Delete the rows of a few files; their bytes follow, and until then the row of the erasure names them."""
    ids = row.person.person_ids
    rows = tx.fetch_all(
        f"SELECT no, sha256, size FROM attachment WHERE person_id IN ({build_placeholders(len(ids))})"
        " ORDER BY no LIMIT 50",
        *ids,
    )
    if not rows:
        return row.go_on()
    tx.execute_many("DELETE FROM attachment WHERE no = $1", [(no,) for no, _, _ in rows])
    hashes = {sha256 for _, sha256, _ in rows} | set(row.person.pending_hashes)
    counted = row.count(files=len(rows), file_bytes=sum(size for _, _, size in rows))
    return replace(counted, person=replace(row.person, pending_hashes=tuple(sorted(hashes))))


def erase_receipts(tx: Transaction, row: ErasureRow) -> ErasureRow:
    """Delete the receipts of the person's messages. They are read in the order of their times, each time as a whole."""
    end = tx.fetch_one(
        "SELECT received_at FROM inbound_message WHERE received_at >= $1 ORDER BY received_at LIMIT 1 OFFSET $2",
        row.position,
        ROWS_PER_BATCH - 1,
    )
    (last,) = end or (2**62,)
    rows = tx.fetch_all(
        "SELECT platform, account, chat, sender, message_id, receipt FROM inbound_message"
        " WHERE received_at >= $1 AND received_at <= $2",
        row.position,
        last,
    )
    deleted = 0
    for *key, receipt in rows:
        if _is_receipt_of(tx, row.person, key, receipt):
            deleted += tx.execute(
                "DELETE FROM inbound_message WHERE platform = $1 AND account = $2 AND chat = $3 AND sender = $4"
                " AND message_id = $5",
                *key,
            )
    counted = row.count(receipts=deleted)
    return counted.go_on() if end is None else replace(counted, position=last + 1)


def _is_receipt_of(tx: Transaction, person: ErasedPerson, key: Sequence[str], receipt: str) -> bool:
    platform, _, chat, sender, _ = key
    facts = json.loads(receipt)
    if sender in person.person_ids or (platform, sender) in person.accounts:
        return True
    if (platform, chat) in person.accounts or (platform, facts.get("sender")) in person.accounts:
        return True
    addresses = map(Address.from_text, person.addresses)
    if any((str(each.platform), each.chat_id) == (platform, chat) for each in addresses):
        return True
    session_id = facts.get("session_id")
    if session_id is None or chat != session_id:
        return False
    return tx.fetch_one("SELECT 1 FROM session WHERE id = $1", session_id) is None


def erase_imports(tx: Transaction, row: ErasureRow) -> ErasureRow:
    """Forget what was imported for the person, or as an account of theirs.

    What a conversation of theirs was called in files that an owner imported stays, so that it does not come back.
    """
    if delete_rows(tx, row.person, IMPORTED_ITEM_OWNER, ROWS_PER_BATCH) == ROWS_PER_BATCH:
        return row
    formats = [name for (name,) in tx.fetch_all("SELECT DISTINCT format FROM imported_item")]
    for name in formats:
        for account in row.person.accounts:
            tx.execute(
                "DELETE FROM imported_item WHERE format = $1 AND kind = 'account' AND owner = '' AND origin_id = $2",
                name,
                ":".join(account),
            )
    return row.go_on()


def erase_deliveries(tx: Transaction, row: ErasureRow) -> ErasureRow:
    """Delete what was sent to the person's direct messages outside of conversations, such as notices."""
    deleted = 0
    for address in row.person.addresses:
        tx.lock_name(address)
        deleted += tx.execute(
            "DELETE FROM delivery WHERE no IN (SELECT no FROM delivery WHERE session_no IS NULL AND address = $1"
            " LIMIT $2)",
            address,
            ROWS_PER_BATCH,
        )
        delivery_queries.make_next_due(tx, [address])
        if deleted >= ROWS_PER_BATCH:
            return row.count(deliveries=deleted)
    return row.count(deliveries=deleted).go_on()


def anonymize_usage(tx: Transaction, row: ErasureRow) -> ErasureRow:
    """Detach what was used from the person: the sums stay exact, and nothing tells whose it was or which turn.

    The time is rounded down to a quarter of an hour, so that every day and month has the same sums as before.
    """
    audiences = row.person.audiences
    rows = tx.fetch_all(
        f"SELECT session_no, turn_id, model FROM usage WHERE audience_no IN ({build_placeholders(len(audiences))})"
        f" ORDER BY audience_no, created_at LIMIT {ROWS_PER_BATCH}",
        *audiences,
    )
    turns: dict[tuple[int, str], str] = {}
    for session_no, turn_id, model in rows:
        tx.execute(
            "UPDATE usage SET session_no = $4, turn_id = $5, audience_no = NULL, created_at = created_at -"
            f" created_at % {_USAGE_ROUNDING_MICROS} WHERE session_no = $1 AND turn_id = $2 AND model = $3",
            session_no,
            turn_id,
            model,
            _NO_SESSION,
            turns.setdefault((session_no, turn_id), new_turn_id()),
        )
    counted = row.count(usage_rows=len(rows))
    return counted if len(rows) == ROWS_PER_BATCH else counted.go_on()


def clean_search_index(tx: Transaction, row: ErasureRow) -> ErasureRow:
    """Merge a part of SQLite's search index: until then, it keeps the words of deleted messages."""
    if tx.name != "sqlite":
        return row.go_on()
    if row.position == 0:
        search_merge.set_delete_merge(tx, MERGED_DELETIONS_PERCENT)
    pages = -search_merge.MERGED_PAGES if row.position == 0 else search_merge.MERGED_PAGES
    if search_merge.merge_pages(tx, pages) and row.position < search_merge.MAX_MERGE_STEPS:
        return replace(row, position=row.position + 1)
    search_merge.set_delete_merge(tx, 0)
    return row.go_on()
