"""`kill -9` after any statement of a request with a key: however often it is repeated, it is done exactly once.

A request that was refused before has left nothing behind, so repeating it does it, once.
"""

from __future__ import annotations

import signal
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver.core.engines.base import Read, Write
from palaver.people import account_table as accounts, table as people
from palaver.people.model import Role
from palaver.sessions.conversations import build_person_source
from scenarios.receipt_process import AFTER_COMMIT, KEY, TEXT, WEBHOOK
from scenarios.store_harness import find_inconsistencies

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.people.model import Person
    from support.warm_process import WarmLauncher

pytestmark = [pytest.mark.slow, pytest.mark.both_engines]
SCRIPT = Path(__file__).with_name("receipt_process.py")
MAX_STATEMENTS = 60
NO_KILL = "1000"
REQUESTS = {
    "message": f"SELECT COUNT(*) FROM event WHERE kind = 'message' AND content = '{TEXT}'",
    "webhook": f"SELECT COUNT(*) FROM event WHERE kind = 'message' AND content = '{TEXT}'",
    "command": "SELECT COUNT(*) FROM event WHERE kind = 'undone'",
    "conversation": "SELECT COUNT(*) FROM event WHERE kind = 'renamed'",
}


def add_person(store: SessionStore) -> Person:
    def run(tx: Transaction) -> Person:
        person = people.add_person(tx, "Ada", Role.MEMBER, 1).person
        accounts.open_account(tx, person, 1)
        return person

    return store.engine.run(Write(run))


def fetch_count(store: SessionStore, sql: str) -> int:
    row = store.engine.run(Read(lambda tx: tx.fetch_one(sql)))
    assert row is not None
    return int(row[0])


def make_refused(store: SessionStore, person: Person, request: str) -> None:
    """Let the request be refused."""
    if request == "message":  # the agent is busy
        store.record_user_message(build_person_source(person), "earlier")
        store.engine.run(
            Write(
                lambda tx: tx.execute(
                    "INSERT INTO turn (id, session_no, kind, input_seq, state, queue_round, due_at, created_at)"
                    " SELECT 'busy', no, 'answer', 1, 'queued', 0, 0, 1 FROM session"
                )
            )
        )
    elif request == "webhook":  # the last message of this minute was sent; the process has a clock of its own
        webhook = store.get_or_create_person(WEBHOOK)
        far_ahead = "INSERT INTO message_rate (person_id, busy_until) VALUES ($1, $2)"
        until = int(time.time() * 1e6) + 58_000_000
        store.engine.run(Write(lambda tx: tx.execute(far_ahead, webhook.id, until)))


def end_refusal(store: SessionStore, person: Person, request: str) -> None:
    """Let nothing speak against the request any more."""
    store.engine.run(Write(lambda tx: tx.execute("DELETE FROM turn WHERE id = 'busy'")))
    store.engine.run(Write(lambda tx: tx.execute("DELETE FROM message_rate")))
    if request == "command":  # without a conversation it has nothing to undo
        store.record_user_message(build_person_source(person), "earlier")


@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_request_that_is_repeated_until_it_is_answered_is_done_once(
    launcher: WarmLauncher, store: SessionStore, store_url: str, request_name: str
) -> None:
    person = add_person(store)

    def send(statements: str) -> tuple[int, str]:
        ended = launcher.run_script(SCRIPT, store_url, person.id, request_name, statements)
        assert ended.returncode in {0, -signal.SIGKILL}, ended.stderr
        return ended.returncode, ended.stdout.strip()

    if request_name != "conversation":
        make_refused(store, person, request_name)
        assert send(NO_KILL) == (0, "rejected")
        assert fetch_count(store, f"SELECT COUNT(*) FROM inbound_message WHERE message_id = '{KEY}'") == 0
        end_refusal(store, person, request_name)
    step = 1 if store_url.startswith("sqlite:") else 5  # what is undone depends on the moment and not on the engine
    kills = 0
    for statements in count(1, step):
        assert statements < MAX_STATEMENTS
        before = fetch_count(store, REQUESTS[request_name])
        code, outcome = send(str(statements))
        if code == 0:
            break
        kills += 1
        assert fetch_count(store, REQUESTS[request_name]) == before == 0
    assert kills >= 2
    assert outcome
    repeated = {send(NO_KILL)[1] for _ in range(2)}
    assert repeated == ({outcome} if request_name == "conversation" else {"duplicate"})
    assert fetch_count(store, REQUESTS[request_name]) == 1
    assert find_inconsistencies(store_url) == []


@pytest.mark.parametrize("request_name", ["message", "webhook"])
def test_a_request_whose_process_dies_after_the_commit_is_done_once(
    launcher: WarmLauncher, store: SessionStore, store_url: str, request_name: str
) -> None:
    person = add_person(store)
    killed = launcher.run_script(SCRIPT, store_url, person.id, request_name, AFTER_COMMIT)
    assert killed.returncode == -signal.SIGKILL
    outcomes = [
        launcher.run_script(SCRIPT, store_url, person.id, request_name, NO_KILL).stdout.strip() for _ in range(2)
    ]
    assert outcomes == ["duplicate", "duplicate"]
    assert fetch_count(store, REQUESTS[request_name]) == 1
    assert find_inconsistencies(store_url) == []
