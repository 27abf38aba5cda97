"""Erasing what belongs to one person alone: who it is, taking all access away, the batches in between, the end.

What they wrote in conversations of others is erased by `shared_erasure.py`. Each column says beside its table when its
rows go (`people/person_data.py`): what is declared there is deleted by `_delete_rows`. Every function of a step does
one small batch of it, and returns how far the erasure has come then.

Always true: after `begin`, nothing can be done or written in the person's name, and an account of theirs that writes
again is a stranger's.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from palaver.accounts.person_tables import IMPORTED_ITEM_OWNER, PERSON_DATA
from palaver.core.engines.base import Transaction, build_placeholders
from palaver.core.ids import PersonId, new_turn_id
from palaver.core.source import ChatType, decode_source
from palaver.jobs import table as jobs
from palaver.jobs.model import NO_ACCESS_REASON
from palaver.money import calls_table as model_calls
from palaver.people import (
    access_table as sender_ids,
    account_table as accounts,
    pairing_table as pairing_requests,
    table as people,
)
from palaver.people.erasures_table import ErasedPerson, ErasureReport, ErasureRow
from palaver.people.model import Role
from palaver.people.person_data import EraseAt, ErasureStep, PersonColumn
from palaver.sessions import (
    deletion_table as session_deletion,
    delivery_queries,
    search_table as search_merge,
    table as sessions,
)
from palaver.sessions.delivery import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


LANES_PER_BATCH: Final = 500
ROWS_PER_BATCH: Final = 200
EVENTS_PER_BATCH: Final = 200
_USAGE_ROUNDING_MICROS: Final = 900_000_000  # every time zone's day begins at a multiple of 15 minutes
MERGED_DELETIONS_PERCENT: Final = 10  # FTS5's own default of `deletemerge`, which is 0 otherwise (migration 13)
_NO_SESSION: Final = 0  # the `session_no` of anonymous usage: no session has it


def describe_person(tx: Transaction, person_id: PersonId) -> ErasedPerson:
    """Return everything by which what belongs to a person is found."""
    linked = tx.fetch_all("SELECT id FROM person WHERE merged_into = $1 ORDER BY id", person_id)
    ids = (str(person_id), *(linked_id for (linked_id,) in linked))
    some = build_placeholders(len(ids))
    own = [(no, name) for no, name in tx.fetch_all(f"SELECT audience_no, name FROM person WHERE id IN ({some})", *ids)]
    audiences = {int(no) for no, _ in own} | set(_list_audiences_without_others(tx, ids))
    known = people.list_identities(tx, person_id)
    account_ids = [
        (str(each.platform), text)
        for each in known
        for text in sender_ids.list_ids(tx, str(each.platform), each.account)
    ]
    names = {name for _, name in own}
    addresses: set[str] = set()
    for each in known:
        if each.dm_source is not None:
            names |= {each.dm_source.user_name or "", each.dm_source.chat_name or ""}
            addresses.add(str(Address.from_source(each.dm_source)))
    lanes = tx.fetch_all(
        f"SELECT source FROM lane WHERE audience_no IN ({build_placeholders(len(audiences))})", *sorted(audiences)
    )
    for source in (decode_source(text) for (text,) in lanes):
        if source.chat_type is ChatType.DM and source.chat_id:
            addresses.add(str(Address.from_source(source)))
        names.add(source.user_name or "")
    job_rows = tx.fetch_all(f"SELECT id FROM job WHERE person_id IN ({some}) ORDER BY id", *ids)
    return ErasedPerson(
        person_ids=ids,
        audiences=tuple(sorted(audiences)),
        names=tuple(sorted(names - {""})),
        accounts=tuple(sorted(account_ids)),
        addresses=tuple(sorted(addresses)),
        folders=tuple(job_id for (job_id,) in job_rows),
    )


def _list_audiences_without_others(tx: Transaction, ids: Sequence[str]) -> list[int]:
    """List the audiences of which only this person is a member, such as a group in which no other person wrote."""
    some = build_placeholders(len(ids))
    sql = f"""SELECT DISTINCT m.audience_no FROM audience_member m WHERE m.person_id IN ({some}) AND NOT EXISTS
        (SELECT 1 FROM audience_member o WHERE o.audience_no = m.audience_no AND o.person_id NOT IN ({some}))"""
    rows = tx.fetch_all(sql, *ids)
    return [int(no) for (no,) in rows]


def begin(tx: Transaction, person: ErasedPerson, now: int) -> ErasureReport:
    """Take all access away: roles, sign-ins, tokens, accounts on platforms, memberships, lanes, jobs and open turns.

    Returns what was erased by that.
    """
    ids = person.person_ids
    for person_id in sorted(ids):  # in one order, so that two transactions don't wait for each other
        tx.fetch_one(f"SELECT id FROM person WHERE id = $1 {tx.for_update}", person_id)
    report = _count_rows(tx, person, [each for each in PERSON_DATA if isinstance(each.erase, EraseAt)])
    for person_id in ids:
        people.set_role(tx, PersonId(person_id), Role.GUEST)
        accounts.close_account(tx, PersonId(person_id))
        jobs.pause_all(tx, PersonId(person_id), NO_ACCESS_REASON, now)
    some = build_placeholders(len(ids))
    for each in PERSON_DATA:
        if each.erase is EraseAt.START:
            _delete_rows(tx, person, each)
        elif each.erase is EraseAt.START_CLEARED:
            tx.execute(f"UPDATE {each.table} SET {each.column} = NULL WHERE {each.column} IN ({some})", *ids)
    _delete_open_turns(tx, ids)
    _delete_chat_lanes(tx, person.audiences)
    for platform, account in person.accounts:
        tx.execute("DELETE FROM pairing_request WHERE platform = $1 AND account = $2", platform, account)
        pairing_requests.delete_links_of_account(tx, (platform, account))
        for kind in ("stranger", "code"):
            tx.execute("DELETE FROM sign_in_attempt WHERE subject = $1", f"{kind} {platform}:{account}")
    model_calls.forget_people(tx, ids)
    return report


def count_own(tx: Transaction, person: ErasedPerson) -> ErasureReport:
    """Count what belongs to the person alone, without changing anything."""
    ids, audiences = person.person_ids, person.audiences
    some, own = build_placeholders(len(ids)), build_placeholders(len(audiences))
    report = _count_rows(tx, person, PERSON_DATA)
    for kinds, rows, params in (
        ("conversations messages", f"SUM(message_count) FROM session WHERE audience_no IN ({own})", audiences),
        ("files file_bytes", f"SUM(size) FROM attachment WHERE person_id IN ({some})", ids),
        ("job_runs", f"NULL FROM job_run r JOIN job j ON j.no = r.job_no WHERE j.person_id IN ({some})", ids),
    ):
        counts = tx.fetch_one(f"SELECT COUNT(*), {rows}", *params) or ()
        report = report.add(**{kind: int(count or 0) for kind, count in zip(kinds.split(), counts, strict=False)})
    return report


def _count_rows(tx: Transaction, person: ErasedPerson, columns: Iterable[PersonColumn]) -> ErasureReport:
    report = ErasureReport()
    for each in columns:
        if each.count:
            values = _get_values(person, each)
            condition = _build_condition(each, len(values))
            (count,) = tx.fetch_one(f"SELECT COUNT(*) FROM {each.table} WHERE {condition}", *values) or (0,)
            report = report.add(**{each.count: int(count)})
    return report


def _delete_open_turns(tx: Transaction, ids: Sequence[str]) -> None:
    """Delete what waits or runs in the person's name: a worker that still runs it finds nothing to store into."""
    sql = f"""SELECT no FROM turn WHERE state IN ('queued', 'running') AND person_id IN ({build_placeholders(len(ids))})
        ORDER BY no {tx.for_update}"""
    rows = tx.fetch_all(sql, *ids)
    tx.execute_many("DELETE FROM turn WHERE no = $1", rows)


def _delete_chat_lanes(tx: Transaction, audiences: Sequence[int]) -> None:
    """Delete the person's lanes on chat platforms, so that the next message there starts as a stranger's.

    Those of the web page and of jobs, of which there may be many, are deleted with their conversations.
    """
    rows = tx.fetch_all(f"SELECT key FROM lane WHERE audience_no IN ({build_placeholders(len(audiences))})", *audiences)
    for (key,) in rows:
        if key.split(":")[2:3] not in (["web"], ["api"], ["cron"]):
            tx.execute("DELETE FROM lane WHERE key = $1", key)


def _delete_rows(tx: Transaction, person: ErasedPerson, column: PersonColumn, limit: int | None = None) -> int:
    table, key, values = column.table, column.batch_key, _get_values(person, column)
    if not values:
        return 0
    is_theirs = f"{_build_condition(column, len(values))} AND {column.erase_only}"
    if limit is not None:
        is_theirs = f"({key}) IN (SELECT {key} FROM {table} WHERE {is_theirs} LIMIT {limit})"
    return tx.execute(f"DELETE FROM {table} WHERE {is_theirs}", *values)


def _get_values(person: ErasedPerson, column: PersonColumn) -> Sequence[object]:
    special = {"audience_no": person.audiences, "address": person.addresses}
    return special.get(column.column, person.person_ids)


def _build_condition(column: PersonColumn, count: int) -> str:
    return f"{column.column} IN ({build_placeholders(count)}) AND {column.only}"


def _erase_rows(tx: Transaction, row: ErasureRow, column: PersonColumn) -> ErasureRow:
    deleted = _delete_rows(tx, row.person, column, ROWS_PER_BATCH)
    counted = row.count(**{column.count: deleted}) if column.count else row
    return counted if deleted == ROWS_PER_BATCH else counted.go_on()


def _erase_jobs(tx: Transaction, row: ErasureRow) -> ErasureRow:
    ids = row.person.person_ids
    some = build_placeholders(len(ids))
    job = tx.fetch_one(f"SELECT no, id FROM job WHERE person_id IN ({some}) ORDER BY no LIMIT 1", *ids)
    if job is None:
        return row.go_on()
    job_no, job_id = job
    sql = "DELETE FROM job_run WHERE no IN (SELECT no FROM job_run WHERE job_no = $1 ORDER BY slot LIMIT $2)"
    runs = tx.execute(sql, job_no, ROWS_PER_BATCH)
    if runs == ROWS_PER_BATCH:
        return row.count(job_runs=runs)
    tx.execute("DELETE FROM job WHERE no = $1", job_no)
    for table in ("budget_window", "budget_limit"):
        tx.execute(f"DELETE FROM {table} WHERE scope = 'job' AND subject = $1", job_id)
    return row.count(jobs=1, job_runs=runs)


def _erase_sessions(tx: Transaction, row: ErasureRow) -> ErasureRow:
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


def _erase_in_order(
    tx: Transaction, row: ErasureRow, table: str, columns: str, is_theirs: Callable[..., bool]
) -> ErasureRow:
    """Read the next rows of a table in their order, and delete those of the person."""
    rows = tx.fetch_all(
        f"SELECT no, {columns} FROM {table} WHERE no > $1 ORDER BY no LIMIT $2", row.position, ROWS_PER_BATCH
    )
    theirs = [(no,) for no, *values in rows if is_theirs(row.person, *values)]
    tx.execute_many(f"DELETE FROM {table} WHERE no = $1", theirs)
    counted = row.count(**{row.step.value: len(theirs)})
    return replace(counted, position=rows[-1][0]) if len(rows) == ROWS_PER_BATCH else counted.go_on()


def _erase_attachments(tx: Transaction, row: ErasureRow) -> ErasureRow:
    """Delete the rows of a few files; their bytes follow, and until then the row of the erasure names them."""
    ids = row.person.person_ids
    sql = f"""SELECT no, sha256, size FROM attachment WHERE person_id IN ({build_placeholders(len(ids))})
        ORDER BY no LIMIT 50"""
    rows = tx.fetch_all(sql, *ids)
    if not rows:
        return row.go_on()
    tx.execute_many("DELETE FROM attachment WHERE no = $1", [(no,) for no, _, _ in rows])
    hashes = {sha256 for _, sha256, _ in rows} | set(row.person.pending_hashes)
    counted = row.count(files=len(rows), file_bytes=sum(size for _, _, size in rows))
    return replace(counted, person=replace(row.person, pending_hashes=tuple(sorted(hashes))))


def _erase_receipts(tx: Transaction, row: ErasureRow) -> ErasureRow:
    """Delete the receipts of the person's messages. They are read in the order of their times, each time as a whole."""
    sql = "SELECT received_at FROM inbound_message WHERE received_at >= $1 ORDER BY received_at LIMIT 1 OFFSET $2"
    end = tx.fetch_one(sql, row.position, ROWS_PER_BATCH - 1)
    (last,) = end or (2**62,)
    sql = """SELECT platform, account, chat, sender, message_id, receipt FROM inbound_message
        WHERE received_at >= $1 AND received_at <= $2"""
    rows = tx.fetch_all(sql, row.position, last)
    deleted = 0
    for *key, receipt in rows:
        if _is_receipt_of(tx, row.person, key, receipt):
            sql = """DELETE FROM inbound_message WHERE platform = $1 AND account = $2 AND chat = $3 AND sender = $4
                AND message_id = $5"""
            deleted += tx.execute(sql, *key)
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


def _erase_imports(tx: Transaction, row: ErasureRow) -> ErasureRow:
    """Forget what was imported for the person, or as an account of theirs.

    What a conversation of theirs was called in files that an owner imported stays, so that it does not come back.
    """
    if _delete_rows(tx, row.person, IMPORTED_ITEM_OWNER, ROWS_PER_BATCH) == ROWS_PER_BATCH:
        return row
    formats = tx.fetch_all("SELECT DISTINCT format FROM imported_item")
    sql = "DELETE FROM imported_item WHERE format = $1 AND kind = 'account' AND owner = '' AND origin_id = $2"
    tx.execute_many(sql, [(name, ":".join(account)) for (name,) in formats for account in row.person.accounts])
    return row.go_on()


def _erase_deliveries(tx: Transaction, row: ErasureRow) -> ErasureRow:
    """Delete what was sent to the person's direct messages outside of conversations, such as notices."""
    deleted = 0
    for address in row.person.addresses:
        tx.lock_name(address)
        sql = """DELETE FROM delivery WHERE no IN (SELECT no FROM delivery WHERE session_no IS NULL AND address = $1
            LIMIT $2)"""
        deleted += tx.execute(sql, address, ROWS_PER_BATCH)
        delivery_queries.make_next_due(tx, [address])
        if deleted >= ROWS_PER_BATCH:
            return row.count(deliveries=deleted)
    return row.count(deliveries=deleted).go_on()


def _anonymize_usage(tx: Transaction, row: ErasureRow) -> ErasureRow:
    """Detach what was used from the person: the sums stay exact, and nothing tells whose it was or which turn.

    The time is rounded down to a quarter of an hour, so that every day and month has the same sums as before.
    """
    audiences = row.person.audiences
    sql = f"""SELECT session_no, turn_id, model FROM usage WHERE audience_no IN ({build_placeholders(len(audiences))})
        ORDER BY audience_no, created_at LIMIT {ROWS_PER_BATCH}"""
    rows = tx.fetch_all(sql, *audiences)
    turns: dict[tuple[int, str], str] = {}
    for session_no, turn_id, model in rows:
        sql = f"""UPDATE usage SET session_no = $4, turn_id = $5, audience_no = NULL, created_at = created_at -
            created_at % {_USAGE_ROUNDING_MICROS} WHERE session_no = $1 AND turn_id = $2 AND model = $3"""
        tx.execute(sql, session_no, turn_id, model, _NO_SESSION, turns.setdefault((session_no, turn_id), new_turn_id()))
    counted = row.count(usage_rows=len(rows))
    return counted if len(rows) == ROWS_PER_BATCH else counted.go_on()


def _clean_search_index(tx: Transaction, row: ErasureRow) -> ErasureRow:
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


STEPS: Final[Mapping[ErasureStep, Callable[[Transaction, ErasureRow], ErasureRow]]] = {
    **{
        each.erase: partial(_erase_rows, column=each)
        for each in PERSON_DATA
        if isinstance(each.erase, ErasureStep) and each.batch_key
    },
    ErasureStep.JOBS: _erase_jobs,
    ErasureStep.SESSIONS: _erase_sessions,
    ErasureStep.MEMORIES: partial(  # of the person's own audiences, and those that they added to others'
        _erase_in_order,
        table="memory",
        columns="audience_no, person_id",
        is_theirs=lambda person, audience, person_id: audience in person.audiences or person_id in person.person_ids,
    ),
    ErasureStep.SHARES: lambda _tx, row: row.go_on(),
    ErasureStep.ATTACHMENTS: _erase_attachments,
    ErasureStep.GROUP_MESSAGES: partial(
        _erase_in_order,
        table="group_message",
        columns="platform, sender",
        is_theirs=lambda person, *account: account in person.accounts,
    ),
    ErasureStep.RECEIPTS: _erase_receipts,
    ErasureStep.IMPORTS: _erase_imports,
    ErasureStep.DELIVERIES: _erase_deliveries,
    ErasureStep.USAGE: _anonymize_usage,
    ErasureStep.SEARCH_INDEX: _clean_search_index,
}


def delete_person(tx: Transaction, person: ErasedPerson) -> bool:
    """Delete the person themselves; False if some of their lanes are left for another batch.

    The rows of their audiences, which are nothing but numbers, stay: SQLite would give the numbers to others.
    """
    ids, audiences = person.person_ids, person.audiences
    some_audiences = build_placeholders(len(audiences))
    sql = f"""DELETE FROM lane WHERE key IN (SELECT key FROM lane WHERE audience_no IN ({some_audiences})
        LIMIT {LANES_PER_BATCH})"""
    lanes = tx.execute(sql, *audiences)
    if lanes == LANES_PER_BATCH:
        return False
    for each in PERSON_DATA:
        if each.erase is EraseAt.END:
            _delete_rows(tx, person, each)
    some = build_placeholders(len(ids))
    tx.execute(f"UPDATE person SET merged_into = NULL WHERE id IN ({some})", *ids)
    tx.execute(f"DELETE FROM person WHERE id IN ({some})", *ids)
    return True
