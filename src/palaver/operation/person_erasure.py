"""The beginning and the end of erasing a person: who it is, taking all access away, deleting the person.

What comes in between is in `erasure_batches.py` (what belongs to the person alone) and `shared_erasure.py` (what they
wrote in conversations of others).

Always true: after `begin`, nothing can be done or written in the person's name, and an account of theirs that writes
again is a stranger's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.engines.base import build_placeholders
from palaver.core.ids import PersonId
from palaver.core.source import ChatType, decode_source
from palaver.jobs import table as jobs
from palaver.jobs.model import NO_ACCESS_REASON
from palaver.money import calls_table as model_calls
from palaver.people import access_table as sender_ids, account_table as accounts, table as people
from palaver.people.erasures_table import ErasedPerson, ErasureReport
from palaver.people.model import Role
from palaver.sessions.delivery import Address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.source import SessionSource

LANES_PER_BATCH: Final = 500


# -- whom it concerns ---------------------------------------------------------------------------------------


def describe_person(tx: Transaction, person_id: PersonId) -> ErasedPerson:
    """Return everything by which what belongs to a person is found."""
    linked = tx.fetch_all("SELECT id FROM person WHERE merged_into = $1 ORDER BY id", person_id)
    ids = (str(person_id), *(linked_id for (linked_id,) in linked))
    some = build_placeholders(len(ids))
    own = [(no, name) for no, name in tx.fetch_all(f"SELECT audience_no, name FROM person WHERE id IN ({some})", *ids)]
    audiences = {int(no) for no, _ in own} | set(_list_lonely_audiences(tx, ids))
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
    for source in _list_own_sources(tx, sorted(audiences)):
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


def _list_lonely_audiences(tx: Transaction, ids: Sequence[str]) -> list[int]:
    """List the audiences of which only this person is a member, such as a group in which no other person wrote."""
    some = build_placeholders(len(ids))
    rows = tx.fetch_all(
        f"SELECT DISTINCT m.audience_no FROM audience_member m WHERE m.person_id IN ({some}) AND NOT EXISTS"
        f" (SELECT 1 FROM audience_member o WHERE o.audience_no = m.audience_no AND o.person_id NOT IN ({some}))",
        *ids,
    )
    return [int(no) for (no,) in rows]


def _list_own_sources(tx: Transaction, audiences: Sequence[int]) -> Iterable[SessionSource]:
    rows = tx.fetch_all(
        f"SELECT source FROM lane WHERE audience_no IN ({build_placeholders(len(audiences))})", *audiences
    )
    return (decode_source(source) for (source,) in rows)


# -- the beginning ------------------------------------------------------------------------------------------


def begin(tx: Transaction, person: ErasedPerson, now: int) -> ErasureReport:
    """Take all access away: roles, sign-ins, tokens, accounts on platforms, memberships, lanes, jobs and open turns.

    Returns what was erased by that.
    """
    ids = person.person_ids
    some = build_placeholders(len(ids))
    for person_id in sorted(ids):  # in one order, so that two transactions don't wait for each other
        tx.fetch_one(f"SELECT id FROM person WHERE id = $1 {tx.for_update}", person_id)
    report = ErasureReport().add(
        sign_ins=_count(tx, f"sign_in WHERE person_id IN ({some})", ids),
        tokens=_count(tx, f"api_token WHERE person_id IN ({some})", ids),
        passkeys=_count(tx, f"passkey WHERE person_id IN ({some})", ids),
        shares=_count(tx, f"share WHERE person_id IN ({some})", ids),
        accounts=_count(tx, f"identity WHERE person_id IN ({some})", ids),
        home_channels=tx.execute(f"DELETE FROM home_channel WHERE set_by IN ({some})", *ids),
    )
    for person_id in ids:
        people.set_role(tx, PersonId(person_id), Role.GUEST)
        accounts.close_account(tx, PersonId(person_id))
        jobs.pause_all(tx, PersonId(person_id), NO_ACCESS_REASON, now)
    for table in ("link_code", "message_rate", "chat_access", "audience_member", "identity"):
        tx.execute(f"DELETE FROM {table} WHERE person_id IN ({some})", *ids)
    tx.execute(f"DELETE FROM link_code WHERE claim_person_id IN ({some})", *ids)
    tx.execute(f"DELETE FROM memory_turn WHERE person_id IN ({some}) AND ended_at IS NULL", *ids)
    tx.execute(f"UPDATE chat_access SET granted_by = NULL WHERE granted_by IN ({some})", *ids)
    tx.execute(f"UPDATE budget_limit SET set_by = NULL WHERE set_by IN ({some})", *ids)
    _delete_open_turns(tx, ids)
    _delete_chat_lanes(tx, person.audiences)
    for platform, account in person.accounts:
        tx.execute("DELETE FROM pairing_request WHERE platform = $1 AND account = $2", platform, account)
        tx.execute("DELETE FROM link_code WHERE claim_platform = $1 AND claim_account = $2", platform, account)
        for kind in ("stranger", "code"):
            tx.execute("DELETE FROM sign_in_attempt WHERE subject = $1", f"{kind} {platform}:{account}")
    for address in person.addresses:
        tx.execute("DELETE FROM dead_target WHERE address = $1", address)
        tx.execute("DELETE FROM preview WHERE address = $1", address)
    model_calls.forget_people(tx, ids)
    return report


def count_own(tx: Transaction, person: ErasedPerson) -> ErasureReport:
    """Count what belongs to the person alone, without changing anything."""
    ids, audiences = person.person_ids, person.audiences
    some, own = build_placeholders(len(ids)), build_placeholders(len(audiences))
    sums = tx.fetch_one(
        f"SELECT COUNT(*), COALESCE(SUM(message_count), 0) FROM session WHERE audience_no IN ({own})", *audiences
    )
    files = tx.fetch_one(f"SELECT COUNT(*), COALESCE(SUM(size), 0) FROM attachment WHERE person_id IN ({some})", *ids)
    report = ErasureReport().add(
        **{kind: _count(tx, f"{table} WHERE person_id IN ({some})", ids) for kind, table in _COUNTED_TABLES.items()},
        memories=_count(tx, f"memory WHERE audience_no IN ({own})", audiences),
        usage_rows=_count(tx, f"usage WHERE audience_no IN ({own})", audiences),
        job_runs=_count(tx, f"job_run r JOIN job j ON j.no = r.job_no WHERE j.person_id IN ({some})", ids),
        home_channels=_count(tx, f"home_channel WHERE set_by IN ({some})", ids),
    )
    for kinds, row in ((("conversations", "messages"), sums), (("files", "file_bytes"), files)):
        report = report.add(**dict(zip(kinds, map(int, row or (0, 0)), strict=True)))
    return report


_COUNTED_TABLES: Final = {
    "shares": "share",
    "projects": "project",
    "jobs": "job",
    "accounts": "identity",
    "sign_ins": "sign_in",
    "tokens": "api_token",
    "passkeys": "passkey",
    "read_marks": "read_mark",
}


def _count(tx: Transaction, rows: str, params: Sequence[object]) -> int:
    row = tx.fetch_one(f"SELECT COUNT(*) FROM {rows}", *params)
    return int(row[0]) if row else 0


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


# -- the end ------------------------------------------------------------------------------------------------


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
    some = build_placeholders(len(ids))
    for table in ("budget_window", "budget_limit"):
        tx.execute(f"DELETE FROM {table} WHERE scope = 'person' AND subject IN ({some})", *ids)
    tx.execute(f"DELETE FROM deleted_session WHERE audience_no IN ({some_audiences})", *audiences)
    tx.execute(f"UPDATE person SET merged_into = NULL WHERE id IN ({some})", *ids)
    tx.execute(f"DELETE FROM person WHERE id IN ({some})", *ids)
    return True
