"""The beginning and the end of erasing a person: who it is, taking all access away, deleting the person.

What comes in between is in `erasure_batches.py` (what belongs to the person alone) and `shared_erasure.py` (what they
wrote in conversations of others). Each column says beside its table when its rows go (`people/person_data.py`).

Always true: after `begin`, nothing can be done or written in the person's name, and an account of theirs that writes
again is a stranger's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.accounts.person_tables import PERSON_DATA
from palaver.core.engines.base import Transaction, build_placeholders
from palaver.core.ids import PersonId
from palaver.core.source import ChatType, decode_source
from palaver.jobs import table as jobs
from palaver.jobs.model import NO_ACCESS_REASON
from palaver.money import calls_table as model_calls
from palaver.operation.erasure_batches import build_condition, delete_rows, get_values
from palaver.people import (
    access_table as sender_ids,
    account_table as accounts,
    pairing_table as pairing_requests,
    table as people,
)
from palaver.people.erasures_table import ErasedPerson, ErasureReport
from palaver.people.model import Role
from palaver.people.person_data import EraseAt, PersonColumn
from palaver.sessions.delivery import Address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


LANES_PER_BATCH: Final = 500


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
    rows = tx.fetch_all(
        f"SELECT DISTINCT m.audience_no FROM audience_member m WHERE m.person_id IN ({some}) AND NOT EXISTS"
        f" (SELECT 1 FROM audience_member o WHERE o.audience_no = m.audience_no AND o.person_id NOT IN ({some}))",
        *ids,
    )
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
            delete_rows(tx, person, each)
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
            values = get_values(person, each)
            condition = build_condition(each, len(values))
            (count,) = tx.fetch_one(f"SELECT COUNT(*) FROM {each.table} WHERE {condition}", *values) or (0,)
            report = report.add(**{each.count: int(count)})
    return report


def _delete_open_turns(tx: Transaction, ids: Sequence[str]) -> None:
    """Delete what waits or runs in the person's name: a worker that still runs it finds nothing to store into."""
    rows = tx.fetch_all(
        f"SELECT no FROM turn WHERE state IN ('queued', 'running') AND person_id IN ({build_placeholders(len(ids))})"
        f" ORDER BY no {tx.for_update}",
        *ids,
    )
    for (no,) in rows:
        tx.execute("DELETE FROM turn WHERE no = $1", no)


def _delete_chat_lanes(tx: Transaction, audiences: Sequence[int]) -> None:
    """Delete the person's lanes on chat platforms, so that the next message there starts as a stranger's.

    Those of the web page and of jobs, of which there may be many, are deleted with their conversations.
    """
    rows = tx.fetch_all(f"SELECT key FROM lane WHERE audience_no IN ({build_placeholders(len(audiences))})", *audiences)
    for (key,) in rows:
        if key.split(":")[2:3] not in (["web"], ["api"], ["cron"]):
            tx.execute("DELETE FROM lane WHERE key = $1", key)


def delete_person(tx: Transaction, person: ErasedPerson) -> bool:
    """Delete the person themselves; False if some of their lanes are left for another batch.

    The rows of their audiences, which are nothing but numbers, stay: SQLite would give the numbers to others.
    """
    ids, audiences = person.person_ids, person.audiences
    some_audiences = build_placeholders(len(audiences))
    lanes = tx.execute(
        f"DELETE FROM lane WHERE key IN (SELECT key FROM lane WHERE audience_no IN ({some_audiences})"
        f" LIMIT {LANES_PER_BATCH})",
        *audiences,
    )
    if lanes == LANES_PER_BATCH:
        return False
    for each in PERSON_DATA:
        if each.erase is EraseAt.END:
            delete_rows(tx, person, each)
    some = build_placeholders(len(ids))
    tx.execute(f"UPDATE person SET merged_into = NULL WHERE id IN ({some})", *ids)
    tx.execute(f"DELETE FROM person WHERE id IN ({some})", *ids)
    return True
