"""Edits, deletions and reactions on a platform: recorded in the log, seen by the agent, harmless to other people."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Principal
from palaver.core.engines.base import Write
from palaver.delivery import table as deliveries
from palaver.sessions.inbound import MessageDeleted, MessageEdited, MessageReaction, Outcome
from palaver.testing import ScriptedAgent
from support.gateway import StartGateway, wait_for_turn
from support.inbox import (
    answer,
    list_kinds,
    list_notices,
    list_rows,
    load_log,
    make_dm,
    make_group,
    make_inbox,
    say,
)

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.sessions.inbound import Receipt

OFFER = "You edited your message. Send /retry to answer the edited message."


def load_texts(store: SessionStore, receipt: Receipt) -> list[Any]:
    return [message["content"] for message in store.load_transcript(receipt.session_id or "")]


def mark_sent(store: SessionStore, receipt: Receipt, address: str, message_id: str) -> None:
    """Store that an answer was sent as one message."""

    def run(tx: Any) -> None:
        session_no, turn_no = tx.fetch_one("SELECT session_no, no FROM turn WHERE id = $1", receipt.turn_id)
        if tx.fetch_one("SELECT 1 FROM delivery WHERE turn_no = $1", turn_no) is None:
            deliveries.enqueue(tx, address, "x", 1, session_no=session_no, turn_no=turn_no)
        tx.execute(
            "INSERT INTO delivery_part (delivery_no, part_no, body, state, sent_message_id)"
            " SELECT no, 1, 'x', 'sent', $2 FROM delivery WHERE turn_no = $1",
            turn_no,
            message_id,
        )

    store.engine.run(Write(run))


# -- edits --------------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_a_queued_message_is_answered_as_edited(store: SessionStore) -> None:
    inbox = make_inbox(store)
    receipt = await say(inbox, make_dm(), "Helo", "1")
    edited = await inbox.accept(MessageEdited(source=make_dm(), message_id="1", content="Hello"))
    assert edited.outcome is Outcome.RECORDED
    assert load_texts(store, receipt) == ["Hello"]
    assert list_notices(store) == []  # it is not answered yet
    stored = list_rows(store, "SELECT content FROM event WHERE kind = 'message'")
    assert stored == [("Helo",)]  # the log keeps what was said first
    edit = load_log(store, receipt)[-1]
    assert (edit.kind.value, edit.facts) == (
        "message_edited",
        {"seq": receipt.seq, "text": "Hello", "previous_text": "Helo", "platform": "telegram"},
    )


async def test_the_same_edit_twice_is_one_edit(store: SessionStore) -> None:
    inbox = make_inbox(store)
    receipt = await say(inbox, make_dm(), "Helo", "1")
    edit = MessageEdited(source=make_dm(), message_id="1", content="Hello")
    assert [(await inbox.accept(edit)).outcome for _ in range(2)] == [Outcome.RECORDED, Outcome.IGNORED]
    assert list_kinds(store, receipt).count("message_edited") == 1


@pytest.mark.both_engines
async def test_an_edit_after_the_answer_offers_to_answer_again(start_gateway: StartGateway) -> None:
    agent = ScriptedAgent()
    gateway = await start_gateway(agent)
    receipt = await say(gateway.inbox, make_dm(), "Who is Bab?", "1")
    await wait_for_turn(gateway, receipt.turn_id)
    for text in ("Who is Bob?", "Who is Bob Ross?"):
        await gateway.inbox.accept(MessageEdited(source=make_dm(), message_id="1", content=text))
    assert list_notices(gateway.store).count(OFFER) == 1  # once, however often it is edited
    ((buttons,),) = list_rows(gateway.store, "SELECT buttons FROM delivery WHERE kind = 'notice'")
    assert json.loads(buttons) == [["Answer again", f"rerun:{receipt.session_id}:{receipt.seq}"]]
    retried = await say(gateway.inbox, make_dm(), "/retry", "2")
    await wait_for_turn(gateway, retried.turn_id)
    assert [message["content"] for message in agent.requests[-1].messages] == ["Who is Bob Ross?"]
    # The message is asked again as a copy; later edits concern the copy.
    await gateway.inbox.accept(MessageEdited(source=make_dm(), message_id="1", content="Who was Bob Ross?"))
    assert load_texts(gateway.store, receipt) == ["Who was Bob Ross?", "Done."]
    assert list_notices(gateway.store).count(OFFER) == 2
    # The version before it has the text again that it was answered with.
    await say(gateway.inbox, make_dm(), "/version 1", "3")
    assert load_texts(gateway.store, receipt) == ["Who is Bab?", "Done."]
    await say(gateway.inbox, make_dm(), "/version 2", "4")
    assert load_texts(gateway.store, receipt) == ["Who was Bob Ross?", "Done."]


async def test_an_edit_of_an_older_message_is_only_recorded(store: SessionStore) -> None:
    inbox = make_inbox(store)
    first = await say(inbox, make_dm(), "one", "1")
    answer(store, first)
    answer(store, await say(inbox, make_dm(), "two", "2"))
    await inbox.accept(MessageEdited(source=make_dm(), message_id="1", content="uno"))
    assert load_texts(store, first) == ["uno", "Done.", "two", "Done."]
    assert list_notices(store) == []


@pytest.mark.both_engines
async def test_an_edited_message_is_found_by_its_new_text(store: SessionStore) -> None:
    inbox = make_inbox(store)
    await say(inbox, make_dm(), "the old wording", "1")
    view = store.seen_by(store.get_or_create_person(make_dm()).principal)
    assert [hit.seq for hit in view.search("wording")]
    await inbox.accept(MessageEdited(source=make_dm(), message_id="1", content="a fresh phrase"))
    assert not view.search("wording")
    (hit,) = view.search("phrase")
    assert hit.snippet.text == "a fresh phrase"
    assert hit.message.text == "a fresh phrase"
    assert store.get_session(hit.session_id).preview == "a fresh phrase"


@pytest.mark.both_engines
async def test_a_branch_has_the_edited_text(store: SessionStore) -> None:
    inbox = make_inbox(store)
    receipt = await say(inbox, make_dm(), "Helo", "1")
    answer(store, receipt)
    await inbox.accept(MessageEdited(source=make_dm(), message_id="1", content="Hello"))
    fork = store.fork(receipt.session_id or "")
    assert [message["content"] for message in store.load_transcript(fork.id)] == ["Hello", "Done."]


async def test_people_cannot_edit_or_delete_in_another_conversation(store: SessionStore) -> None:
    """The same message ids in other chats, accounts and platforms, and of other people in the same group."""
    inbox = make_inbox(store)
    in_dm = await say(inbox, make_dm("ada"), "mine", "1")
    in_group = await say(inbox, make_group("ada"), "ours", "2")
    for source, message_id in (
        (make_dm("eve"), "1"),
        (make_dm("eve"), "2"),
        (make_group("eve"), "1"),
        (make_group("eve"), "2"),
        (make_group("ada", "other"), "2"),
        (make_dm("ada", account="work"), "1"),
    ):
        edit = MessageEdited(source=source, message_id=message_id, content="forged")
        assert (await inbox.accept(edit)).outcome is Outcome.IGNORED
        if source != make_group("eve") or message_id == "1":  # the platform decides who may delete in a group
            deletion = MessageDeleted(source=source, message_id=message_id)
            assert (await inbox.accept(deletion)).outcome is Outcome.IGNORED
    assert load_texts(store, in_dm) == ["mine"]
    assert load_texts(store, in_group) == ["ours"]


async def test_an_author_without_access_can_edit_nothing(store: SessionStore) -> None:
    receipt = await say(make_inbox(store), make_dm(), "mine", "1")
    closed: Any = make_inbox(store, open_platforms=frozenset())
    edit = MessageEdited(source=make_dm(), message_id="1", content="changed")
    assert (await closed.accept(edit)).outcome is Outcome.IGNORED
    assert load_texts(store, receipt) == ["mine"]


# -- deletions ----------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_a_deleted_message_is_hidden_and_not_answered(store: SessionStore) -> None:
    inbox = make_inbox(store)
    first = await say(inbox, make_dm(), "one", "1")
    answer(store, first)
    second = await say(inbox, make_dm(), "two", "2")
    deletion = MessageDeleted(source=make_dm(), message_id="2")
    assert [(await inbox.accept(deletion)).outcome for _ in range(2)] == [Outcome.RECORDED, Outcome.IGNORED]
    assert load_texts(store, first) == ["one", "Done."]
    session = store.get_session(first.session_id or "")
    assert (session.message_count, session.preview) == (2, "Done.")
    assert load_log(store, first)[-1].facts == {"seq": second.seq, "platform": "telegram"}
    assert list_rows(store, "SELECT state FROM turn WHERE id = $1", second.turn_id) == [("interrupted",)]


@pytest.mark.both_engines
async def test_where_the_platform_does_not_check_it_only_the_author_can_delete_in_a_group(store: SessionStore) -> None:
    inbox = make_inbox(store)
    spoken = await say(inbox, make_group("ada"), "ours", "1")
    for source, outcome in (
        (make_group("eve"), Outcome.IGNORED),
        (replace(make_group(), user_id=None, user_name=None), Outcome.IGNORED),
        (make_group("ada"), Outcome.RECORDED),
    ):
        deletion = MessageDeleted(source=source, message_id="1", is_by_author=True)
        assert (await inbox.accept(deletion)).outcome is outcome
    assert load_texts(store, spoken) == []


@pytest.mark.both_engines
async def test_the_rest_of_an_album_is_answered_if_one_picture_is_deleted(store: SessionStore) -> None:
    inbox = make_inbox(store)
    receipts = [await say(inbox, make_dm(), f"picture {n}", str(n), album_id="a") for n in range(3)]
    for deleted in ("2", "1"):
        await inbox.accept(MessageDeleted(source=make_dm(), message_id=deleted))
    assert list_rows(store, "SELECT state, input_seq FROM turn") == [("queued", receipts[0].seq)]
    await inbox.accept(MessageDeleted(source=make_dm(), message_id="0"))
    assert list_rows(store, "SELECT state FROM turn") == [("interrupted",)]


async def test_an_answer_whose_question_was_deleted_is_still_a_valid_history(start_gateway: StartGateway) -> None:
    agent = ScriptedAgent()
    gateway = await start_gateway(agent)
    receipt = await say(gateway.inbox, make_dm(), "secret", "1")
    await wait_for_turn(gateway, receipt.turn_id)
    await gateway.inbox.accept(MessageDeleted(source=make_dm(), message_id="1"))
    later = await say(gateway.inbox, make_dm(), "hello", "2")
    await wait_for_turn(gateway, later.turn_id)
    roles = [message["role"] for message in agent.requests[-1].messages]
    assert roles == ["user", "assistant", "user"]
    assert "secret" not in str(agent.requests[-1].messages)


# -- reactions ----------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_a_reaction_is_told_to_the_agent_with_the_next_message(start_gateway: StartGateway) -> None:
    agent = ScriptedAgent()
    gateway = await start_gateway(agent)
    receipt = await say(gateway.inbox, make_dm(), "Draw a cat", "1")
    await wait_for_turn(gateway, receipt.turn_id)
    mark_sent(gateway.store, receipt, "telegram::ada", "100")
    reaction = MessageReaction(source=make_dm(), message_id="100", emoji="👍")
    outcomes = [(await gateway.inbox.accept(reaction)).outcome for _ in range(2)]
    assert outcomes == [Outcome.RECORDED, Outcome.IGNORED]
    assert len(agent.requests) == 1  # no turn
    event = load_log(gateway.store, receipt)[-1]
    assert event.facts["seq"] == load_log(gateway.store, receipt)[-2].seq
    for text in ("Thanks", "Bye"):
        later = await say(gateway.inbox, make_dm(), text)
        await wait_for_turn(gateway, later.turn_id)
    contents = [message["content"] for message in agent.requests[-1].messages if message["role"] == "user"]
    assert contents == ["Draw a cat", "[Ada reacted with 👍 to your answer]\nThanks", "Bye"]


async def test_a_reaction_can_be_taken_back(store: SessionStore) -> None:
    inbox = make_inbox(store)
    receipt = await say(inbox, make_dm(), "hi", "1")
    removal = MessageReaction(source=make_dm(), message_id="1", emoji="👍", is_removed=True)
    assert (await inbox.accept(removal)).outcome is Outcome.IGNORED
    await inbox.accept(MessageReaction(source=make_dm(), message_id="1", emoji="👍"))
    assert (await inbox.accept(removal)).outcome is Outcome.RECORDED
    assert [event.facts["removed"] for event in load_log(store, receipt)[-2:]] == [False, True]


@pytest.mark.both_engines
async def test_reactions_of_people_who_cannot_see_the_conversation_are_ignored(store: SessionStore) -> None:
    inbox = make_inbox(store)
    receipt = await say(inbox, make_group("ada"), "@bot hi", "1")
    answer(store, receipt)
    mark_sent(store, receipt, "telegram::club", "100")
    for source, message_id in ((make_group("eve"), "1"), (make_group("eve"), "100"), (make_dm("ada"), "100")):
        reaction = MessageReaction(source=source, message_id=message_id, emoji="👎")
        assert (await inbox.accept(reaction)).outcome is Outcome.IGNORED
    assert "reaction" not in list_kinds(store, receipt)


async def test_people_of_a_shared_session_may_react(open_store: Any) -> None:
    store = open_store(GatewayConfig(group_sessions_per_user=False))
    inbox = make_inbox(store)
    receipt = await say(inbox, make_group("ada"), "@bot hi", "1")
    await say(inbox, make_group("eve"), "@bot hi too", "2")
    reaction = MessageReaction(source=make_group("eve"), message_id="1", emoji="🎉")
    assert (await inbox.accept(reaction)).outcome is Outcome.RECORDED
    person = store.get_or_create_person(make_group("eve"))
    assert load_log(store, receipt)[-1].person_id == person.id
    assert isinstance(person.principal, Principal)
