"""A chat that gets another id takes its conversations, answers on their way, access and home channel along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, SessionSource
from palaver.core.clock import from_micros
from palaver.core.engines.base import Read, Write
from palaver.core.source import Platform, encode_source
from palaver.delivery import chat_moves, table as deliveries
from palaver.jobs import table as jobs
from palaver.jobs.model import Job, JobState
from palaver.people import table as people
from palaver.sessions import turns_table as turns
from palaver.sessions.delivery import Address, DeliveryState

if TYPE_CHECKING:
    from palaver import SessionStore

pytestmark = pytest.mark.both_engines


OLD, NEW = "-100", "-1009"
TELEGRAM = Platform.TELEGRAM
NOW = 1_700_000_000_000_000


def make_group(chat: str, user: str = "ada", **fields: Any) -> SessionSource:
    return SessionSource("telegram", chat, chat_type="group", user_id=user, user_name=user.title(), **fields)


def move_chat(store: SessionStore, old: str = OLD, new: str = NEW, account: str = "") -> bool:
    return store.engine.run(Write(lambda tx: chat_moves.move_chat(tx, "telegram", account, old, new, NOW)))


def get_job(store: SessionStore, job_id: str) -> Job:
    return store.engine.run(Read(lambda tx: jobs.get_any(tx, job_id))).job


def queue_delivery(store: SessionStore, chat: str, content: str, thread: str | None = None) -> None:
    address = str(Address(TELEGRAM, chat, thread))
    store.engine.run(Write(lambda tx: deliveries.enqueue(tx, address, content, NOW)))


def send_next(store: SessionStore) -> list[tuple[str, str]]:
    """Send what is due, and return the chat and the text of each message."""

    def run(tx: Any) -> list[tuple[str, str]]:
        leases = deliveries.claim_due(tx, "test", NOW + 1, NOW + 2, 10, (TELEGRAM, ""))
        for lease in leases:
            deliveries.finish(tx, lease, DeliveryState.SENT, NOW + 1)
        return [(str(lease.delivery.address), lease.delivery.content) for lease in leases]

    return store.engine.run(Write(run))


def test_conversations_go_on_in_the_new_chat(store: SessionStore) -> None:
    before = store.record_user_message(make_group(OLD), "hello")
    in_thread = store.record_user_message(make_group(OLD, thread_id="7"), "in the thread")
    earlier = store.record_user_message(make_group(OLD, "bob"), "earlier")
    store.reset_session(earlier.session_key)
    elsewhere = store.record_user_message(make_group("-1005"), "elsewhere")
    assert move_chat(store)
    assert store.record_user_message(make_group(NEW), "again").session_id == before.session_id
    assert store.record_user_message(make_group(NEW, thread_id="7"), "again").session_id == in_thread.session_id
    assert store.restore(GatewayConfig().build_session_key(make_group(NEW, "bob"))).session_id == earlier.session_id
    assert store.get_session(earlier.session_id).origin.chat_id == NEW
    assert store.get_session(earlier.session_id).key.endswith(f":{NEW}:bob")
    assert store.record_user_message(make_group("-1005"), "again").session_id == elsewhere.session_id
    assert store.record_user_message(make_group(OLD), "new there").session_id != before.session_id


def test_only_chats_of_the_same_account_and_platform_move(store: SessionStore) -> None:
    work = store.record_user_message(make_group(OLD, account="work"), "hello")
    discord = store.record_user_message(SessionSource("discord", OLD, chat_type="group", user_id="ada"), "hello")
    assert not move_chat(store)
    assert store.get_session(work.session_id).origin.chat_id == OLD
    assert store.get_session(discord.session_id).origin.chat_id == OLD
    assert move_chat(store, account="work")
    assert store.get_session(work.session_id).origin.chat_id == NEW


def test_jobs_go_on_sending_to_the_new_chat(store: SessionStore) -> None:
    store.record_user_message(make_group(OLD), "hello")
    ada = store.get_or_create_person(make_group(OLD))
    targets = ("origin", f"telegram:{OLD}", f"telegram:{OLD}:7", f"telegram@work:{OLD}", "telegram:-1005")

    def add(tx: Any, name: str, origin: SessionSource) -> jobs.JobRow:
        now = from_micros(NOW)
        new_job = jobs.NewJob(
            person_id=ada.id,
            name=name,
            prompt="Say hello.",
            schedule="every 2h",
            timezone="UTC",
            anchor=now,
            targets=targets,
            origin=origin,
            toolsets=(),
            state=JobState.ACTIVE,
            next_slot=now,
        )
        row = jobs.insert(tx, new_job, NOW)
        return jobs.update_fields(tx, row, {"proposed_change": {"targets": list(targets), "prompt": "Hi."}}, NOW)

    made_there = store.engine.run(Write(lambda tx: add(tx, "there", make_group(OLD, thread_id="7"))))
    made_elsewhere = store.engine.run(Write(lambda tx: add(tx, "elsewhere", make_group(OLD, account="work"))))
    assert move_chat(store)
    moved = ("origin", f"telegram:{NEW}", f"telegram:{NEW}:7", f"telegram@work:{OLD}", "telegram:-1005")
    for row, chat in ((made_there, NEW), (made_elsewhere, OLD)):
        job = get_job(store, row.job.id)
        assert job.targets == moved
        assert job.proposed_change == {"targets": list(moved), "prompt": "Hi."}
        assert job.origin.chat_id == chat
    assert not move_chat(store)


def test_direct_messages_are_sent_to_the_new_chat(store: SessionStore) -> None:
    dm = SessionSource("telegram", OLD, user_id="ada", user_name="Ada")
    store.record_user_message(dm, "hello")
    ada = store.get_or_create_person(dm)
    store.engine.run(Write(lambda tx: people.remember_dm_source(tx, dm, None)))
    move_chat(store)
    [identity] = store.engine.run(Read(lambda tx: people.list_identities(tx, ada.id)))
    assert identity.dm_source is not None
    assert identity.dm_source.chat_id == NEW


def test_moving_twice_changes_nothing(store: SessionStore) -> None:
    before = store.record_user_message(make_group(OLD), "hello")
    assert move_chat(store)
    entry = store.get_or_create_session(make_group(NEW))
    assert not move_chat(store)
    assert store.get_or_create_session(make_group(NEW)) == entry
    assert store.record_user_message(make_group(NEW), "again").session_id == before.session_id


def test_both_conversations_stay_if_the_new_chat_has_one(store: SessionStore) -> None:
    old = store.record_user_message(make_group(OLD), "old")
    new = store.record_user_message(make_group(NEW), "new")
    move_chat(store)
    assert store.record_user_message(make_group(NEW), "more").session_id == new.session_id
    restored = store.restore(GatewayConfig().build_session_key(make_group(NEW)))
    assert restored.session_id == old.session_id
    assert [message["content"] for message in store.load_transcript(old.session_id)] == ["old"]


def test_an_empty_conversation_in_the_new_chat_gives_way(store: SessionStore) -> None:
    old = store.record_user_message(make_group(OLD), "old")
    store.get_or_create_session(make_group(NEW))
    move_chat(store)
    assert store.record_user_message(make_group(NEW), "more").session_id == old.session_id


def test_deliveries_move_and_keep_their_order(store: SessionStore) -> None:
    queue_delivery(store, OLD, "first")
    queue_delivery(store, NEW, "second")
    queue_delivery(store, OLD, "third")
    queue_delivery(store, OLD, "in a thread", thread="7")
    move_chat(store)
    sent = [send_next(store) for _ in range(4)]
    assert sorted(sent[0]) == [("telegram::-1009", "first"), ("telegram::-1009:7", "in a thread")]
    assert sent[1:] == [[("telegram::-1009", "second")], [("telegram::-1009", "third")], []]


def test_an_open_turn_answers_in_the_new_chat(store: SessionStore) -> None:
    recorded = store.record_user_message(make_group(OLD), "hello")

    def run(tx: Any) -> None:
        row = tx.fetch_one("SELECT no FROM session WHERE id = $1", recorded.session_id)
        address = str(Address(TELEGRAM, OLD))
        request = turns.TurnRequest(session_no=row[0], input_seq=recorded.seq, address=address, reply_to="5")
        turns.enqueue(tx, request, NOW)

    store.engine.run(Write(run))
    move_chat(store)
    rows = store.engine.run(Read(lambda tx: tx.fetch_all("SELECT address, reply_to FROM turn")))
    assert rows == [("telegram::-1009", None)]  # message 5 of the new chat is another message


def test_access_home_and_messages_of_the_group_move(store: SessionStore) -> None:
    def prepare(tx: Any) -> None:
        tx.execute(
            "INSERT INTO chat_access (platform, account, chat_id, granted_at) VALUES ('telegram', '', $1, 1)", OLD
        )
        home = encode_source(make_group(OLD, thread_id="7"))
        tx.execute("INSERT INTO home_channel (platform, source, set_at) VALUES ('telegram', $1, 1)", home)
        tx.execute("INSERT INTO dead_target VALUES ('telegram::-100', 'gone', 1)")
        tx.execute(
            "INSERT INTO group_message (platform, account, chat_id, thread_id, message_id, author, content, sent_at)"
            " VALUES ('telegram', '', $1, '', '5', 'Bob', 'lunch?', 1)",
            OLD,
        )

    store.engine.run(Write(prepare))
    assert move_chat(store)

    def read(tx: Any) -> list[Any]:
        return [
            tx.fetch_all("SELECT chat_id FROM chat_access"),
            tx.fetch_all("SELECT source FROM home_channel"),
            tx.fetch_all("SELECT address FROM dead_target"),
            tx.fetch_all("SELECT chat_id, message_id, content FROM group_message"),
        ]

    home = encode_source(make_group(NEW, thread_id="7"))
    assert store.engine.run(Read(read)) == [[(NEW,)], [(home,)], [], [(NEW, None, "lunch?")]]


@pytest.mark.parametrize("chat", ["!room:example.org", "a%b;c", "user=x"])
def test_ids_with_special_characters_move(store: SessionStore, chat: str) -> None:
    before = store.record_user_message(make_group(chat), "hello")
    queue_delivery(store, chat, "answer")
    assert move_chat(store, chat, "!new:example.org")
    assert store.record_user_message(make_group("!new:example.org"), "again").session_id == before.session_id
    assert send_next(store) == [(str(Address(TELEGRAM, "!new:example.org")), "answer")]


def test_a_chat_is_known_by_its_lanes(store: SessionStore) -> None:
    store.record_user_message(make_group(OLD), "hello")

    def has_lane(chat: str) -> bool:
        return store.engine.run(Read(lambda tx: chat_moves.has_lane_in_chat(tx, "telegram", "", chat)))

    assert has_lane(OLD)
    assert not has_lane("-10")
    assert not has_lane("-1000")
