"""The promises of every platform adapter, as tests: subclass `PlatformContract` and provide a platform.

    class TestMyPlatformContract(PlatformContract):
        @pytest.fixture
        async def platform(self):
            async with start_my_fake_server() as server:
                yield MyContractPlatform(server)

The tests use the adapter alone, without a gateway: `MemoryInbox` stands for the database.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import (
    AccountRefused,
    ChatMovedAway,
    DeliveryError,
    LeaseLost,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.delivery.adapter import OutgoingFile
from palaver.sessions.delivery import Button
from palaver.sessions.inbound import ButtonPressed, MessageDeleted, MessageEdited, MessageReaction
from palaver.testing.account_link import Death, MemoryInbox, MemoryLink
from palaver.testing.contract_platform import (
    Connection,
    ContractHelpers,
    ContractPlatform,
    Fault,
    cancel_task,
    read_ten_bytes,
    require_capability,
)

if TYPE_CHECKING:
    from palaver.delivery.adapter import Adapter, OutgoingMessage


@pytest.mark.asyncio
class PlatformContract(ContractHelpers):
    """Tests for one adapter. A subclass overrides `platform`."""

    @pytest.fixture
    def platform(self) -> ContractPlatform:
        """Return the platform to test with."""
        raise NotImplementedError("A subclass of PlatformContract overrides the fixture `platform`.")

    @pytest.fixture
    def inbox(self) -> MemoryInbox:
        """Return what stands for the gateway's database."""
        return MemoryInbox()

    # -- receiving -----------------------------------------------------------------------------------------

    async def test_it_signs_in(self, platform: ContractPlatform) -> None:
        adapter = platform.make_adapter()
        try:
            info = await self._limit(adapter.probe())
        finally:
            await self._limit(adapter.close())
        assert "" not in info.warnings
        assert adapter.platform == platform.address.platform
        assert adapter.account == platform.address.account

    async def test_a_message_is_accepted_once(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox):
            message_id = await platform.say("Hello, agent")
            await self._wait_for_texts(inbox, ["Hello, agent"])
        [message] = inbox.messages
        assert message.message_id == message_id
        assert message.source.platform == platform.address.platform
        assert message.source.chat_id == platform.address.chat_id
        assert message.source.user_id, "the source names no user: then no person can be given access"
        assert message.is_addressed
        assert not message.is_from_bot

    async def test_messages_are_accepted_in_order(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        texts = [f"Number {number}" for number in range(5)]
        async with self._run(platform, inbox):
            for text in texts:
                await platform.say(text)
            await self._wait_for_texts(inbox, texts)

    @pytest.mark.parametrize("death", list(Death))
    async def test_a_message_is_not_lost_when_the_process_dies(
        self, platform: ContractPlatform, inbox: MemoryInbox, death: Death
    ) -> None:
        link = MemoryLink(inbox, death=death)
        async with self._run(platform, inbox, link=link):
            saying = asyncio.create_task(platform.say("Do not lose me"))
            await self._limit(link.reached_death.wait())
        async with self._run(platform, inbox):
            await self._limit(saying)
            await self._wait_for_texts(inbox, ["Do not lose me"])
            await platform.say("And go on")
            await self._wait_for_texts(inbox, ["Do not lose me", "And go on"])

    async def test_what_was_accepted_is_not_accepted_again_after_a_restart(
        self, platform: ContractPlatform, inbox: MemoryInbox
    ) -> None:
        async with self._run(platform, inbox):
            await platform.say("Before")
            await self._wait_for_texts(inbox, ["Before"])
        async with self._run(platform, inbox):
            await platform.say("After")
            await self._wait_for_texts(inbox, ["Before", "After"])

    async def test_what_came_while_nothing_ran_is_accepted_later(
        self, platform: ContractPlatform, inbox: MemoryInbox
    ) -> None:
        if not platform.has_inbox:
            pytest.skip("not on this platform: it keeps nothing")
        async with self._run(platform, inbox):
            await platform.say("Before")
            await self._wait_for_texts(inbox, ["Before"])
        await platform.say("Meanwhile")
        async with self._run(platform, inbox):
            await self._wait_for_texts(inbox, ["Before", "Meanwhile"])

    async def test_an_update_that_comes_twice_is_one_message(
        self, platform: ContractPlatform, inbox: MemoryInbox
    ) -> None:
        async with self._run(platform, inbox):
            await platform.say("Once")
            await self._wait_for_texts(inbox, ["Once"])
            await platform.repeat_updates()
            await platform.say("Next")
            await self._wait_for_texts(inbox, ["Once", "Next"])

    async def test_updates_out_of_order_are_all_accepted(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox):
            await platform.say_in_reverse("first", "second")
            await inbox.wait_until(lambda: len(inbox.messages) >= 2, self.timeout_seconds)
        assert sorted(inbox.texts) == ["first", "second"]

    async def test_a_file_of_a_person_is_downloaded_on_demand(
        self, platform: ContractPlatform, inbox: MemoryInbox
    ) -> None:
        async with self._run(platform, inbox):
            message_id = await platform.say_with_file("notes.txt", b"0123456789")
            await inbox.wait_until(lambda: inbox.messages, self.timeout_seconds)
            [message] = inbox.messages
            data = b"".join([chunk for file in message.files async for chunk in file.open()])
        assert message.message_id == message_id
        assert [file.name for file in message.files] == ["notes.txt"]
        assert data == b"0123456789"

    async def test_an_edit_of_a_person_is_reported(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox):
            message_id = await platform.say("Helo")
            await self._wait_for_texts(inbox, ["Helo"])
            await platform.edit_as_person(message_id, "Hello")
            edit = await self._wait_for_update(inbox, MessageEdited)
        assert (edit.message_id, edit.content) == (message_id, "Hello")
        assert inbox.texts == ["Helo"]

    async def test_a_deletion_is_reported(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox):
            message_id = await platform.say("Forget this")
            await self._wait_for_texts(inbox, ["Forget this"])
            await platform.delete_as_person(message_id)
            deletion = await self._wait_for_update(inbox, MessageDeleted)
        assert deletion.message_id == message_id

    async def test_a_reaction_is_reported(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox) as adapter:
            message_id = await self._send(platform, adapter, "Do you like it?")
            await platform.react_as_person(message_id, "👍")
            reaction = await self._wait_for_update(inbox, MessageReaction)
        assert (reaction.message_id, reaction.emoji, reaction.is_removed) == (message_id, "👍", False)

    async def test_it_stops_when_another_process_runs_the_account(
        self, platform: ContractPlatform, inbox: MemoryInbox
    ) -> None:
        connection = Connection(platform, MemoryLink(inbox, has_lease=False))
        running = asyncio.create_task(connection.keep())
        saying = asyncio.create_task(platform.say("Not for you"))
        try:
            if not platform.is_called:
                with pytest.raises(LeaseLost):
                    await self._limit(asyncio.shield(running))
        finally:
            await cancel_task(running)
        async with self._run(platform, inbox):
            await self._limit(saying)
            await self._wait_for_texts(inbox, ["Not for you"])

    # -- sending -------------------------------------------------------------------------------------------

    async def test_a_message_is_sent(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox) as adapter:
            message_id = await self._send(platform, adapter, "Good **morning**")
            messages = await platform.list_messages()
        assert [message.message_id for message in messages] == [message_id]
        assert "Good" in messages[0].text
        assert "morning" in messages[0].text

    async def test_what_was_sent_does_not_come_back(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox) as adapter:
            await self._send(platform, adapter, "From the agent")
            await platform.say("From a person")
            await self._wait_for_texts(inbox, ["From a person"])

    async def test_a_long_text_arrives_whole_and_in_order(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox) as adapter:
            limit = adapter.capabilities.max_length or 20_000
            words = [f"word{number}" for number in range(5 * limit // 2 // len("word1000 "))]
            paragraphs = [" ".join(words[start : start + 50]) for start in range(0, len(words), 50)]
            markdown = "\n\n".join(paragraphs)
            bodies = adapter.render(markdown)
            assert bodies == adapter.render(markdown), "`render` is not repeatable: a retry would send something else"
            for number, body in enumerate(bodies):
                await self._send_body(platform, adapter, body, key=f"d_long.{number}")
            messages = await platform.list_messages()
        found = [word for message in messages for word in re.findall(r"word\d+", message.text)]
        assert found == words

    async def test_a_message_is_edited_in_place(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox) as adapter:
            require_capability(adapter.capabilities.can_edit)
            message_id = await self._send(platform, adapter, "Thinking")
            for _ in range(2):  # an unchanged message is no error
                message = self._make_message(platform, adapter.render("Ready")[0], key="d_edit.1")
                await self._limit(adapter.edit(message_id, message))
            messages = await platform.list_messages()
        assert [(message.message_id, message.text.strip()) for message in messages] == [(message_id, "Ready")]

    async def test_a_message_is_deleted(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox) as adapter:
            require_capability(adapter.capabilities.can_delete)
            message_id = await self._send(platform, adapter, "Oops")
            await self._limit(adapter.delete(platform.address, message_id))
            assert await platform.list_messages() == []
            await self._limit(adapter.delete(platform.address, message_id))  # a message that is gone is no error

    async def test_typing_is_shown(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox) as adapter:
            require_capability(adapter.capabilities.typing_seconds is not None)
            message_id = await platform.say("Are you there?")
            await self._wait_for_texts(inbox, ["Are you there?"])
            await self._limit(adapter.show_typing_for(platform.address, message_id))
            assert await platform.is_typing()
            await self._limit(adapter.stop_typing(platform.address))

    async def test_a_draft_is_no_message(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox) as adapter:
            require_capability(adapter.capabilities.has_native_stream)
            for text in ("Once", "Once upon", "Once upon a time"):
                await self._limit(adapter.show_draft(platform.address, "d_draft.1", adapter.render(text)[0]))
            await self._send(platform, adapter, "Once upon a time", key="d_draft.1")
            messages = await platform.list_messages()
        assert [message.text.strip() for message in messages] == ["Once upon a time"]

    async def test_a_reaction_is_set_and_taken_back(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox) as adapter:
            require_capability(adapter.capabilities.can_react)
            message_id = await platform.say("Look at this")
            await self._wait_for_texts(inbox, ["Look at this"])
            for emoji in ("👀", ""):
                await self._limit(adapter.react(platform.address, message_id, emoji))

    async def test_a_button_is_pressed(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox) as adapter:
            require_capability(adapter.capabilities.max_buttons > 0)
            button = Button("Stop", "stop:t_1")
            [body] = adapter.render("Working on it")
            message = self._make_message(platform, body, buttons=[button])
            message_id = await self._limit(adapter.send(message))
            assert message_id
            await platform.press_button(message_id, "Stop")
            press = await self._wait_for_update(inbox, ButtonPressed)
            await self._limit(adapter.answer_press(press.press_id, "Stopped"))
        assert (press.message_id, press.data) == (message_id, "stop:t_1")
        assert press.source.user_id

    async def test_a_file_is_sent(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox) as adapter:
            require_capability(adapter.capabilities.max_file_bytes > 0)
            file = OutgoingFile("notes.txt", "text/plain", 10, read_ten_bytes)
            await self._limit(adapter.send(self._make_message(platform, "", file=file)))
            messages = await platform.list_messages()
        assert [message.file_names for message in messages] == [("notes.txt",)]

    # -- marking -------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("has_file", [False, True])
    async def test_a_message_is_marked_before_it_can_arrive(
        self, platform: ContractPlatform, inbox: MemoryInbox, has_file: bool
    ) -> None:
        shown_at_mark: list[int] = []

        async def mark() -> None:
            shown_at_mark.append(len(await platform.list_messages()))

        async with self._run(platform, inbox) as adapter:
            message = self._make_markable(platform, adapter, has_file=has_file)
            await self._limit(adapter.send(replace(message, mark_sending=mark)))
            assert len(await platform.list_messages()) == 1
        assert shown_at_mark[:1] == [0]
        assert set(shown_at_mark) == {0}

    @pytest.mark.parametrize("has_file", [False, True])
    async def test_nothing_is_sent_after_a_failed_mark(
        self, platform: ContractPlatform, inbox: MemoryInbox, has_file: bool
    ) -> None:
        async def mark() -> None:
            raise LeaseLost

        async with self._run(platform, inbox) as adapter:
            message = self._make_markable(platform, adapter, has_file=has_file)
            with pytest.raises((LeaseLost, DeliveryError)):
                await self._limit(adapter.send(replace(message, mark_sending=mark)))
            await self._send(platform, adapter, "The next one")
            messages = await platform.list_messages()
        assert [message.text.strip() for message in messages] == ["The next one"]

    def _make_markable(self, platform: ContractPlatform, adapter: Adapter, *, has_file: bool) -> OutgoingMessage:
        require_capability(adapter.marks_sending and (not has_file or adapter.capabilities.max_file_bytes > 0))
        file = OutgoingFile("notes.txt", "text/plain", 10, read_ten_bytes) if has_file else None
        return self._make_message(platform, "" if has_file else adapter.render("Marked")[0], key="d_mark.1", file=file)

    # -- failing -------------------------------------------------------------------------------------------

    async def test_a_rate_limit_says_how_long_to_wait(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        error = await self._fail_to_send(platform, inbox, Fault.RATE_LIMITED)
        assert isinstance(error, SendRetryable)
        assert error.retry_after
        assert error.retry_after > 0

    async def test_a_server_error_does_not_end_a_delivery(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        error = await self._fail_to_send(platform, inbox, Fault.SERVER_ERROR)
        assert isinstance(error, SendRetryable | SendUncertain)

    async def test_a_refused_message_is_rejected(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        error = await self._fail_to_send(platform, inbox, Fault.REFUSED)
        assert isinstance(error, SendRejected)
        assert not isinstance(error, TargetUnreachable), "one bad message would end all deliveries to the chat"

    async def test_a_chat_that_is_gone_is_unreachable(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        assert isinstance(await self._fail_to_send(platform, inbox, Fault.CHAT_GONE), TargetUnreachable)

    async def test_a_chat_that_has_moved_is_named(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        error = await self._fail_to_send(platform, inbox, Fault.CHAT_MOVED)
        assert isinstance(error, ChatMovedAway)
        assert error.new_chat_id not in {"", platform.address.chat_id}

    async def test_without_a_connection_nothing_was_sent(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        assert isinstance(await self._fail_to_send(platform, inbox, Fault.UNREACHABLE), SendRetryable)

    async def test_a_lost_answer_is_uncertain_and_never_a_second_message(
        self, platform: ContractPlatform, inbox: MemoryInbox
    ) -> None:
        self._require_fault(platform, Fault.ANSWER_LOST)
        async with self._run(platform, inbox) as adapter:
            await platform.break_platform(Fault.ANSWER_LOST)
            try:
                await self._send(platform, adapter, "Only once", key="d_lost.1")
            except SendUncertain as error:
                self._check_error(platform, error)
        async with self._run(platform, inbox) as adapter:  # the connection may have ended, too
            if adapter.capabilities.key_lifetime:  # then the outbox sends it again, with the same key
                await self._send(platform, adapter, "Only once", key="d_lost.1")
            messages = await self._wait_for_messages(platform, 1)
        assert [message.text.strip() for message in messages] == ["Only once"]

    async def test_a_message_that_is_sent_again_with_its_key_is_one_message(
        self, platform: ContractPlatform, inbox: MemoryInbox
    ) -> None:
        async with self._run(platform, inbox) as adapter:
            require_capability(bool(adapter.capabilities.key_lifetime))
            message_ids = [await self._send(platform, adapter, "Only once", key="d_again.1") for _ in range(2)]
            messages = await platform.list_messages()
        assert message_ids == [message.message_id for message in messages] * 2

    async def test_after_a_fault_messages_are_sent_again(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        fault = next((each for each in (Fault.RATE_LIMITED, Fault.SERVER_ERROR) if each in platform.faults), None)
        require_capability(fault is not None)
        async with self._run(platform, inbox) as adapter:
            await platform.break_platform(fault or Fault.SERVER_ERROR)
            with pytest.raises(DeliveryError):
                await self._send(platform, adapter, "Later", key="d_again.1")
            await self._send(platform, adapter, "Later", key="d_again.1")
            messages = await platform.list_messages()
        assert [message.text.strip() for message in messages] == ["Later"]

    async def test_revoked_credentials_are_refused(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        self._require_fault(platform, Fault.REVOKED)
        await platform.break_platform(Fault.REVOKED)
        connecting = asyncio.create_task(Connection(platform, MemoryLink(inbox)).keep())
        try:
            with pytest.raises(AccountRefused) as refused:
                await self._limit(asyncio.shield(connecting))
        finally:
            await cancel_task(connecting)
        self._check_error(platform, refused.value)

    async def test_it_goes_on_after_a_cut_connection(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        self._require_fault(platform, Fault.CONNECTION_CUT)
        async with self._run(platform, inbox):
            await platform.say("Before")
            await self._wait_for_texts(inbox, ["Before"])
            await platform.break_platform(Fault.CONNECTION_CUT)
            await platform.say("After")
            await self._wait_for_texts(inbox, ["Before", "After"])

    async def test_nothing_is_left_running(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        before = asyncio.all_tasks()
        async with self._run(platform, inbox) as adapter:
            await platform.say("Hello")
            await self._wait_for_texts(inbox, ["Hello"])
            await self._send(platform, adapter, "Hello to you")
        left = asyncio.all_tasks() - before
        if left:
            await asyncio.wait(left, timeout=self.timeout_seconds)  # a connection may take a moment to end
        assert [task for task in left if not task.done()] == []

    async def test_closing_twice_is_no_error(self, platform: ContractPlatform) -> None:
        adapter = platform.make_adapter()
        await self._limit(adapter.close())
        await self._limit(adapter.close())

    async def test_secrets_are_not_in_representations(self, platform: ContractPlatform, inbox: MemoryInbox) -> None:
        async with self._run(platform, inbox) as adapter:
            texts = [repr(adapter), str(adapter), repr(vars(adapter)) if hasattr(adapter, "__dict__") else ""]
        assert [secret for secret in platform.secrets if any(secret in text for text in texts)] == []
