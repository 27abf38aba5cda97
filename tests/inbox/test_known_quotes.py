"""What a message quotes is cut only by what its own session has, also if others write it or it comes again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, ResetPolicy
from palaver.sessions.inbound import Inbound, KnownText, Outcome
from palaver.sessions.policy import ResetMode
from support.inbox import answer, list_rows, load_log, make_dm, make_group, make_inbox, say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from palaver import SessionSource, SessionStore
    from palaver.inbox import Inbox
    from palaver.sessions.inbound import Receipt
    from palaver.testing import FakeClock


class Quoter:
    """A message that quotes; it remembers what it was told that its conversation has."""

    def __init__(self, inbox: Inbox, source: SessionSource, message_id: str = "q", **fields: Any) -> None:
        self.known: list[KnownText] = []
        fields = {"content": "new, and a quote", "message_id": message_id, "cut_quotes": self._cut, **fields}
        self._inbox = inbox
        self._inbound = Inbound(source=source, **fields)

    def _cut(self, known: Sequence[KnownText]) -> str:
        self.known = list(known)
        return "new"

    async def send(self) -> Receipt:
        return await self._inbox.accept(self._inbound)

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.known]


def get_last_text(store: SessionStore, receipt: Receipt) -> str:
    message = load_log(store, receipt)[-1].message
    assert message is not None
    return message.text


@pytest.mark.both_engines
async def test_a_quote_is_compared_with_what_its_session_has(store: SessionStore) -> None:
    inbox = make_inbox(store)
    first = await say(inbox, make_dm(), "hello", "1")
    answer(store, first, "Let me look.")
    answer(store, first, "Good day.")
    quoter = Quoter(inbox, make_dm())
    receipt = await quoter.send()
    assert quoter.known == [
        KnownText("Good day."),
        KnownText("Let me look."),
        KnownText("Let me look.\n\nGood day."),  # as it was sent
        KnownText("hello", ("ada", "Ada")),
    ]
    assert get_last_text(store, receipt) == "new"


async def test_another_conversation_is_never_looked_at(store: SessionStore) -> None:
    inbox = make_inbox(store)
    for source in (make_dm("ben"), make_dm(thread_id="other"), make_group("ada"), make_group("ada", chat="ada")):
        answer(store, await say(inbox, source, "a secret", f"{source.chat_id}{source.thread_id}"), "of another")
    quoter = Quoter(inbox, make_dm())
    await quoter.send()
    assert quoter.known == []


async def test_what_a_reset_leaves_behind_is_not_known(
    open_store: Callable[..., SessionStore], clock: FakeClock
) -> None:
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=10)
    store = open_store(GatewayConfig(default_reset_policy=policy))
    inbox = make_inbox(store)
    answer(store, await say(inbox, make_dm(), "hello", "1"))
    clock.advance(minutes=11)
    quoter = Quoter(inbox, make_dm())
    receipt = await quoter.send()
    assert quoter.known == []
    assert [event.message.text for event in load_log(store, receipt) if event.message] == ["new"]


async def test_the_messages_of_a_group_have_their_authors(store: SessionStore) -> None:
    inbox = make_inbox(store)
    shared = make_group(thread_id="t")
    await say(inbox, make_group("ben", thread_id="t"), "said before", "1", is_addressed=False)
    quoter = Quoter(inbox, shared, "2")
    first = await quoter.send()
    assert quoter.known == [KnownText("said before", ("Ben",))]
    answer(store, first)
    quoter = Quoter(inbox, make_group("ben", thread_id="t"), "3")
    await quoter.send()
    assert quoter.known == [KnownText("Done."), KnownText("new", ("ada", "Ada")), KnownText("said before", ("Ben",))]


async def test_a_message_to_others_is_not_cut_by_what_the_agent_may_never_see(store: SessionStore) -> None:
    inbox = make_inbox(store)
    await say(inbox, make_group("ben", thread_id="t"), "said before", "1", is_addressed=False)
    quoter = Quoter(inbox, make_group(thread_id="t"), "2", is_addressed=False)
    assert (await quoter.send()).outcome is Outcome.RECORDED
    assert quoter.known == []
    assert list_rows(store, "SELECT content FROM group_message ORDER BY no") == [("said before",), ("new",)]


async def test_the_same_message_twice_is_one_message(store: SessionStore) -> None:
    inbox = make_inbox(store)
    first = await Quoter(inbox, make_dm()).send()
    assert (await Quoter(inbox, make_dm()).send()).outcome is Outcome.DUPLICATE
    assert len([event for event in load_log(store, first) if event.message]) == 1


async def test_a_message_that_breaks_the_comparison_is_accepted_as_it_came(store: SessionStore) -> None:
    def fail(_known: Sequence[KnownText]) -> str:
        raise ValueError("broken")

    receipt = await Quoter(make_inbox(store), make_dm(), cut_quotes=fail).send()
    assert get_last_text(store, receipt) == "new, and a quote"


async def test_what_was_undone_is_not_known(store: SessionStore) -> None:
    inbox = make_inbox(store)
    first = await say(inbox, make_dm(), "hello", "1")
    answer(store, first)
    await say(inbox, make_dm(), "/undo", "2")
    quoter = Quoter(inbox, make_dm())
    await quoter.send()
    assert quoter.known == []
