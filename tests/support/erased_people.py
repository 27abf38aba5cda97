"""A person who has left traces everywhere, all with one word, and a search for that word in all that is stored."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from palaver import Platform, SessionSource, TurnUsage
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.memory import table as memories
from palaver.people import account_table as accounts, table as people
from palaver.people.model import Role
from palaver.prompts.service import SavedPromptOperations
from palaver.sessions import (
    inbound_table as group_messages,
    log_table as events,
    table as sessions,
    versions_table as compactions,
)
from palaver.sessions.conversations import build_person_source
from palaver.sessions.events import EventKind
from palaver.sessions.inbound import Inbound, RepliedMessage
from palaver.sessions.shares import Shares
from support.inbox import answer, make_inbox, say

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.media.attachments import Attachments
    from palaver.people.model import Person

MARK = "zebraquux"  # in everything that Ada wrote or is, and in nothing else
OTHER_MARK = "bobcatvex"  # the same of Bob


def make_private(mark: str) -> SessionSource:
    return SessionSource("telegram", f"chat-{mark}", user_id=f"id-{mark}", user_name=f"Name {mark}")


def make_shared(mark: str, chat: str = "club") -> SessionSource:
    """The thread of a group, which everybody there shares."""
    return SessionSource(
        "telegram", chat, chat_type="group", thread_id="7", user_id=f"id-{mark}", user_name=f"Name {mark}"
    )


def make_group(mark: str) -> SessionSource:
    """A group in which each person has a conversation of their own."""
    return SessionSource("telegram", "park", chat_type="group", user_id=f"id-{mark}", user_name=f"Name {mark}")


def execute(store: SessionStore, sql: str, *params: object) -> None:
    store.engine.run(Write(partial(_execute, sql, params)))


def _execute(sql: str, params: tuple[object, ...], tx: Transaction) -> None:
    tx.execute(sql, *params)


async def read_chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def leave_traces(store: SessionStore, attachments: Attachments, mark: str) -> Person:
    """Let a person use everything that stores something, with `mark` in each text and id."""
    inbox = make_inbox(store, files=attachments)
    private, shared, group = make_private(mark), make_shared(mark), make_group(mark)
    now = to_micros(store.clock.now())
    for number in range(3):
        receipt = await say(inbox, private, f"private {mark} {number}", message_id=f"m-{mark}-{number}")
        seq = answer(store, receipt, f"About {mark}, I know nothing.")
        usage = TurnUsage(turn_id=receipt.turn_id, model="m", input_tokens=3, output_tokens=2, cost="0.000000005")
        store.update_session(receipt.session_id or "", usage=usage)
    assert receipt.session_id is not None
    person = store.get_or_create_person(private)
    execute(store, "UPDATE person SET role = 'member' WHERE id = $1", person.id)
    person = store.get_or_create_person(private)

    def open_account(tx: Transaction) -> None:
        accounts.open_account(tx, person, now)

    store.engine.run(Write(open_account))
    await _write_in_groups(store, inbox, mark, shared, group)
    await _use_the_page(store, inbox, attachments, person, mark)
    _add_rows(store, person, receipt.session_id, seq, mark)
    return person


async def _write_in_groups(
    store: SessionStore, inbox: Any, mark: str, shared: SessionSource, group: SessionSource
) -> None:
    receipt = await say(inbox, shared, f"together {mark}", message_id=f"g-{mark}", is_addressed=True)
    answer(store, receipt, f"Dear {mark}, here I am.")
    usage = TurnUsage(turn_id=receipt.turn_id, model="m", input_tokens=7, output_tokens=1, cost="0.000000002")
    store.update_session(receipt.session_id or "", usage=usage)
    new = group_messages.NewGroupMessage(
        message_id=f"u-{mark}", sender=f"id-{mark}", author=f"Name {mark}", text=f"overheard {mark}"
    )
    now = to_micros(store.clock.now())
    store.engine.run(Write(lambda tx: group_messages.add(tx, group, new, now)))
    first = await say(inbox, group, f"in the park {mark}", message_id=f"p-{mark}", is_addressed=True)
    answer(store, first)


async def _use_the_page(store: SessionStore, inbox: Any, attachments: Attachments, person: Person, mark: str) -> None:
    file = await attachments.receive(person.principal, f"{mark}.txt", read_chunks(f"file {mark}".encode()))
    await attachments.receive(person.principal, "same.txt", read_chunks(b"the same bytes of several people"))
    source = build_person_source(person, Platform.WEB)
    inbound = Inbound(source=source, content=f"page {mark}", message_id=f"k-{mark}", attachment_ids=(file.id,))
    receipt = await inbox.accept(inbound)
    answer(store, receipt, f"Seen: {mark}.")
    view = store.seen_by(person.principal)
    view.rename(receipt.session_id or "", f"Title {mark}")
    project = view.projects.create(f"Project {mark}")
    view.part(SavedPromptOperations).create(f"Prompt {mark}", f"Explain {mark} to {{{{name}}}}.")
    view.move(receipt.session_id or "", project.id)
    execute(
        store,
        "INSERT INTO read_mark SELECT no, $2, 1, 1 FROM session WHERE id = $1 ON CONFLICT DO NOTHING",
        receipt.session_id,
        person.id,
    )
    await Shares(store).create(person.principal, receipt.session_id or "")


def _add_rows(store: SessionStore, person: Person, session_id: str, seq: int, mark: str) -> None:
    now = to_micros(store.clock.now())
    origin = json.dumps(make_private(mark).to_dict())

    def add(tx: Transaction) -> None:
        row = sessions.get(tx, session_id)
        new = compactions.NewCompaction(
            summary=f"Summary of {mark}", first_kept_seq=seq, last_replaced_seq=seq - 1, message_count=2
        )
        compactions.create(tx, row.no, new, now)
        memory = memories.NewMemory(text=f"Remember {mark}", person_id=person.id)
        memories.add(tx, row.audience_no, memory, now)
        shared_no = tx.fetch_one("SELECT no, audience_no FROM session WHERE shared = 1 ORDER BY no LIMIT 1")
        assert shared_no is not None
        memories.add(
            tx, shared_no[1], memories.NewMemory(text=f"Remember of the club {mark}", person_id=person.id), now
        )
        summary = compactions.NewCompaction(
            summary=f"Club: {mark}", first_kept_seq=3, last_replaced_seq=2, message_count=1, focus=mark
        )
        compactions.create(tx, shared_no[0], summary, now)
        tx.execute(
            "INSERT INTO job (id, person_id, name, name_key, prompt, schedule, timezone, anchor, targets, origin,"
            " toolsets, state, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, 'every 1h', 'UTC', 0, '[]', $6,"
            " '[]', 'paused', $7, $7)",
            f"j_{mark}",
            person.id,
            f"Job {mark}",
            mark,
            f"Tell {mark}",
            origin,
            now,
        )
        tx.execute(
            "INSERT INTO job_run (id, job_no, slot, kind, state, reason, start_after, created_at, ended_at)"
            " SELECT $1, no, 1, 'manual', 'failed', $1, 0, 1, 2 FROM job WHERE id = $2",
            f"r-{mark}",
            f"j_{mark}",
        )
        for number in range(3):
            tx.execute(
                "INSERT INTO delivery (id, kind, platform, account, address, content, state, created_at, ended_at)"
                " VALUES ($1, 'notice', 'telegram', '', $2, $3, 'sent', 1, 2)",
                f"d-{mark}-{number}",
                f"telegram::chat-{mark}",
                f"Notice for {mark}",
            )
        tx.execute("INSERT INTO dead_target VALUES ($1, $2, 1)", f"telegram::chat-{mark}", f"blocked by {mark}")
        tx.execute("INSERT INTO home_channel VALUES ($1, $2, $3, 1)", f"platform-{mark}", origin, person.id)
        tx.execute(
            "INSERT INTO api_token (id, digest, person_id, name, scopes, created_at) VALUES ($1, $1, $2, $1, '', 1)",
            f"token-{mark}",
            person.id,
        )
        tx.execute(
            "INSERT INTO sign_in VALUES ($1, $1, $2, 'link', $3, '::1', 1, 1)", f"s-{mark}", person.id, f"Phone {mark}"
        )
        _subscribe_a_browser(tx, row.no, mark)
        for kind, owner, origin_id in (("memory", person.id, f"m-{mark}"), ("account", "", f"telegram:id-{mark}")):
            tx.execute(
                "INSERT INTO imported_item (format, kind, owner, origin_id, state, imported_at)"
                " VALUES ('hermes', $1, $2, $3, 'done', 1)",
                kind,
                owner,
                origin_id,
            )
        tx.execute(
            "INSERT INTO link_code (digest, person_id, source, expires_at) VALUES ($1, $2, $3, 1)",
            f"code-{mark}",
            person.id,
            origin,
        )
        for scope, subject in (("person", person.id), ("job", f"j_{mark}")):
            tx.execute(
                "INSERT INTO budget_window (scope, subject, period, starts_at) VALUES ($1, $2, 'day', 0)",
                scope,
                subject,
            )
            tx.execute("INSERT INTO budget_limit VALUES ($1, $2, 'day', 'usd', 1, $3, 1)", scope, subject, person.id)

    store.engine.run(Write(add))


def _subscribe_a_browser(tx: Transaction, session_no: int, mark: str) -> None:
    """Let the browser of the person's sign-in get notifications; one about a conversation is on its way."""
    tx.execute(
        "INSERT INTO push_subscription (id, sign_in_id, endpoint, public_key, auth_secret, server_key, created_at)"
        " VALUES ($1, $2, $3, $4, $5, 'ours', 1)",
        f"push-{mark}",
        f"s-{mark}",
        f"https://push.example/{mark}",
        f"public-{mark}",
        f"auth-{mark}",
    )
    tx.execute(
        "INSERT INTO push_message (subscription_id, session_no, seq, due_at, created_at) VALUES ($1, $2, 1, 1, 1)",
        f"push-{mark}",
        session_no,
    )


async def quote_and_copy(store: SessionStore, attachments: Attachments, mark: str, by: Person, by_mark: str) -> None:
    """Let another person quote what one has said, copy the conversation that they share, and share a copy of it."""
    inbox = make_inbox(store, files=attachments)
    replied = RepliedMessage(message_id=f"g-{mark}", author=f"Name {mark}", text=f"together {mark}")
    receipt = await say(
        inbox, make_shared(by_mark), f"me too {by_mark}", "r-1", is_addressed=True, replied_message=replied
    )
    answer(store, receipt, f"Hello {by_mark}.")
    quoting = await say(inbox, make_group(by_mark), f"what was said? {by_mark}", "r-2", is_addressed=True)
    answer(store, quoting)
    view = store.seen_by(by.principal)
    view.fork(receipt.session_id or "")
    owner = store.get_owner()
    assert owner.role is Role.OWNER
    await Shares(store).create(owner.principal, receipt.session_id or "", everything=True)

    def react(tx: Transaction) -> None:
        person = people.find_by_source(tx, make_shared(mark))
        assert person is not None
        no = sessions.get_no(tx, receipt.session_id or "")
        kinds = {"emoji": "+1", "author": f"Name {mark}", "seq": 2}
        now = to_micros(store.clock.now())
        events.append_event(tx, no, EventKind.REACTION, now, person.person.id, **kinds)
        events.append_event(tx, no, EventKind.MEMBERS_CHANGED, now, None, joined=[f"Name {mark}", "Eve"], left=[])

    store.engine.run(Write(react))


# -- searching everything -----------------------------------------------------------------------------------


def find_everywhere(store: SessionStore, folder: Path, text: str) -> list[str]:
    """Return where a text is found: every column of every table, and every file of a folder."""
    wanted = text.casefold()
    found = []
    for table in _list_tables(store):
        found += [f"{table}: {row[:300]}" for row in _load_texts(store, table) if wanted in row.casefold()]
    for path in folder.rglob("*"):
        if wanted in path.name.casefold() or (path.is_file() and wanted.encode() in path.read_bytes()):
            found.append(str(path))
    return found


def _list_tables(store: SessionStore) -> list[str]:
    if store.engine.name == "sqlite":
        sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'search'"
    else:
        sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    return [name for (name,) in store.engine.run(Read(lambda tx: tx.fetch_all(sql)))]


def _load_texts(store: SessionStore, table: str) -> list[str]:
    if store.engine.name == "sqlite":
        rows = store.engine.run(Read(lambda tx: tx.fetch_all(f"SELECT * FROM {table}")))
        return [
            " ".join(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in row)
            for row in rows
        ]
    return [text for (text,) in store.engine.run(Read(lambda tx: tx.fetch_all(f"SELECT t::text FROM {table} t")))]
