"""The adapter on a real homeserver."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from palaver.core.errors import (
    AccountRefused,
    ChatMovedAway,
    ConnectionLost,
    SendRejected,
    SendRetryable,
    TargetUnreachable,
)
from palaver.core.source import ChatType
from palaver.delivery.adapter import OutgoingFile, OutgoingMessage
from palaver.platforms.matrix import receiver
from palaver.platforms.matrix.receiver import build_sync_filter
from palaver.sessions.delivery import Address, DeliveryKind
from palaver.sessions.inbound import ChatMoved, MembersChanged, MessageDeleted, MessageEdited, MessageReaction
from palaver.testing.account_link import MemoryInbox, MemoryLink
from support.gateway import TIMEOUT_SECONDS
from support.platform_adapters import connect_adapter, wait_for_texts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from palaver.platforms.matrix.adapter import MatrixAdapter

    from .conftest import MakeAdapter, Register
    from .homeserver import Person

pytestmark = pytest.mark.slow


async def wait_for_update(inbox: MemoryInbox, kind: type[Any]) -> Any:
    await inbox.wait_until(lambda: any(isinstance(update, kind) for update in inbox.updates), TIMEOUT_SECONDS)
    return next(update for update in inbox.updates if isinstance(update, kind))


def make_message(adapter: MatrixAdapter, room_id: str, markdown: str, **fields: Any) -> OutgoingMessage:
    [body] = adapter.render(markdown)
    thread_id = fields.pop("thread_id", None)
    fields.setdefault("key", f"d_{secrets.token_hex(6)}.1")
    return OutgoingMessage(address=Address(adapter.platform, room_id, thread_id), body=body, **fields)


async def open_dm(inbox: MemoryInbox, person: Person, bot: Person, **options: Any) -> str:
    """Create a direct chat, and wait until the running adapter is in it."""
    room_id = await person.create_room(bot.user_id, is_direct=True, **options)
    await inbox.wait_until(
        lambda: any(
            isinstance(update, MembersChanged) and update.is_own_account and update.source.chat_id == room_id
            for update in inbox.updates
        ),
        TIMEOUT_SECONDS,
    )
    return room_id


async def test_an_invitation_is_accepted_and_what_was_written_before_is_read(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person
) -> None:
    async with connect_adapter(make_adapter(bot), inbox):
        room_id = await ada.create_room(bot.user_id, is_direct=True)
        event_id = await ada.say(room_id, "Hello!")
        [message] = await wait_for_texts(inbox, "Hello!")
    assert message.message_id == event_id
    assert message.is_addressed
    source = message.source
    assert (source.chat_id, source.chat_type, source.user_id) == (room_id, ChatType.DM, ada.user_id)
    assert (source.user_name, source.chat_name) == ("Ada", None)
    assert message.sent_at is not None


async def test_the_first_start_reads_no_history_but_accepts_waiting_invitations(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person
) -> None:
    old_room = await ada.create_room(bot.user_id, is_direct=True)
    await bot.join(old_room)
    await ada.say(old_room, "Long ago")
    new_room = await ada.create_room(bot.user_id, is_direct=True)
    async with connect_adapter(make_adapter(bot), inbox):
        await ada.wait_for(new_room, lambda event: event.get("state_key") == bot.user_id, count=2)
        await ada.say(old_room, "Now")
        await wait_for_texts(inbox, "Now")


async def test_a_gap_in_a_busy_room_is_filled(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "build_sync_filter", lambda limit=3: build_sync_filter(limit))
    monkeypatch.setattr(receiver, "PAGE_EVENTS", 4)
    adapter = make_adapter(bot)
    async with connect_adapter(adapter, inbox):
        room_id = await open_dm(inbox, ada, bot)
    texts = [f"Number {number}" for number in range(12)]
    for text in texts:
        await ada.say(room_id, text)
    preview = await bot.say(room_id, "Thinking")
    for number in range(5):  # our own edits are what usually makes the gap
        await bot.edit(room_id, preview, f"Thinking {number}")
    async with connect_adapter(make_adapter(bot), inbox):
        await wait_for_texts(inbox, *texts)
    assert inbox.duplicate_count == 0


async def test_a_room_that_is_busy_when_we_join_it_is_read_from_our_invitation(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "build_sync_filter", lambda limit=3: build_sync_filter(limit))
    adapter = make_adapter(bot)
    async with connect_adapter(adapter, inbox):
        pass
    room_id = await ada.create_room()
    await ada.say(room_id, "Before the invitation")
    await ada.call("POST", f"rooms/{quote(room_id)}/invite", {"user_id": bot.user_id})
    texts = [f"Number {number}" for number in range(8)]
    for text in texts:
        await ada.say(room_id, text)
    async with connect_adapter(make_adapter(bot), inbox):
        await wait_for_texts(inbox, *texts)


async def test_a_group_with_mentions_replies_and_threads(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person, ben: Person
) -> None:
    adapter = make_adapter(bot)
    room_id = await ada.create_room(ben.user_id, bot.user_id, name="The club", topic="Chess")
    await ben.join(room_id)
    async with connect_adapter(adapter, inbox):
        root = await ada.say(room_id, "Nice weather")
        await ben.say(room_id, "Palaver: what is e4?", **{"m.mentions": {"user_ids": [bot.user_id]}})
        reply = {"m.relates_to": {"m.in_reply_to": {"event_id": root}}}
        await ben.say(room_id, f"> <{ada.user_id}> Nice weather\n\nIndeed", **reply)
        thread = {"rel_type": "m.thread", "event_id": root, "is_falling_back": True}
        await ada.say(room_id, "In a thread", **{"m.relates_to": {**thread, "m.in_reply_to": {"event_id": root}}})
        chatter, question, answer, threaded = await wait_for_texts(
            inbox, "Nice weather", "what is e4?", "Indeed", "In a thread"
        )
        assert not chatter.is_addressed
        assert (chatter.source.chat_name, chatter.source.chat_topic) == ("The club", "Chess")
        assert chatter.source.chat_type is ChatType.GROUP
        assert question.is_addressed
        assert question.source.user_name == "Ben"
        assert answer.replied_message is not None
        assert (answer.replied_message.author, answer.replied_message.text) == ("Ada", "Nice weather")
        assert (answer.is_addressed, answer.replied_message.is_own) == (False, False)
        assert (threaded.source.thread_id, threaded.replied_message) == (root, None)

        sent = await adapter.send(make_message(adapter, room_id, "e4 is a move", reply_to=question.message_id))
        await adapter.send(make_message(adapter, room_id, "Here too", thread_id=root, reply_to=threaded.message_id))
        await ben.say(room_id, "Thanks", **{"m.relates_to": {"m.in_reply_to": {"event_id": sent}}})
        await inbox.wait_until(lambda: len(inbox.messages) == 5, TIMEOUT_SECONDS)
    thanks = inbox.messages[-1]
    assert thanks.is_addressed
    assert thanks.replied_message is not None
    assert thanks.replied_message.is_own
    shown = await ada.wait_for_text(room_id, "e4 is a move")
    assert shown["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == question.message_id
    in_thread = await ada.wait_for_text(room_id, "Here too")
    assert in_thread["content"]["m.relates_to"] == {
        "rel_type": "m.thread",
        "event_id": root,
        "is_falling_back": True,
        "m.in_reply_to": {"event_id": threaded.message_id},
    }


async def test_edits_deletions_and_reactions_of_people(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person, ben: Person
) -> None:
    adapter = make_adapter(bot)
    room_id = await ada.create_room(ben.user_id, bot.user_id)
    await ben.join(room_id)
    async with connect_adapter(adapter, inbox):
        event_id = await ada.say(room_id, "Helo")
        await ben.edit(room_id, event_id, "Forged")  # servers let every member write such an event
        await ada.edit(room_id, event_id, "Hello")
        edit = await wait_for_update(inbox, MessageEdited)
        reaction_id = await ben.react(room_id, event_id, "👍")
        reaction = await wait_for_update(inbox, MessageReaction)
        await ben.redact(room_id, reaction_id)
        await inbox.wait_until(lambda: getattr(inbox.updates[-1], "is_removed", False), TIMEOUT_SECONDS)
        await ada.redact(room_id, event_id)
        deletion = await wait_for_update(inbox, MessageDeleted)
    assert (edit.message_id, edit.content, edit.source.user_id) == (event_id, "Hello", ada.user_id)
    assert (reaction.message_id, reaction.emoji, reaction.source.user_id) == (event_id, "👍", ben.user_id)
    assert (deletion.message_id, deletion.source.user_id) == (event_id, ada.user_id)
    assert [update.content for update in inbox.updates if isinstance(update, MessageEdited)] == ["Hello"]


async def test_a_key_is_one_event_and_its_echo_confirms_it(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person
) -> None:
    adapter = make_adapter(bot)
    async with connect_adapter(adapter, inbox):
        room_id = await open_dm(inbox, ada, bot)
        message = make_message(adapter, room_id, "Good **morning**", key="d_key.1")
        first, second = await adapter.send(message), await adapter.send(message)
        await inbox.wait_until(lambda: inbox.confirmed, TIMEOUT_SECONDS)
        edited = make_message(adapter, room_id, "Good *evening*", key="d_key.1")
        assert first is not None
        await adapter.edit(first, edited)
        event = await ada.wait_for_text(room_id, "evening")
        await adapter.delete(edited.address, first)
        await adapter.delete(edited.address, first)
        await ada.wait_for(room_id, lambda event: event["type"] == "m.room.redaction")
    assert first == second
    assert inbox.confirmed == {"d_key.1": first}
    assert event["content"]["m.new_content"]["formatted_body"] == "<p>Good <em>evening</em></p>"
    assert event["content"]["msgtype"] == "m.notice"
    assert not inbox.texts
    notices = [event for event in ada.events[room_id] if event["content"].get("msgtype")]
    assert len(notices) == 2


async def test_files_in_both_directions(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person
) -> None:
    adapter = make_adapter(bot)
    async with connect_adapter(adapter, inbox):
        room_id = await open_dm(inbox, ada, bot)
        url = await ada.upload(b"RIFF", "audio/ogg")
        content = {"msgtype": "m.audio", "url": url, "info": {"mimetype": "audio/ogg", "size": 4}}
        await ada.say(room_id, "voice.ogg", **content, **{"org.matrix.msc3245.voice": {}})
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)
        [message] = inbox.messages
        [file] = message.files
        assert b"".join([chunk async for chunk in file.open()]) == b"RIFF"
        assert (message.content, file.name, file.media_type, file.size, file.is_voice) == (
            *("", "voice.ogg", "audio/ogg", 4, True),
        )

        async def read() -> AsyncIterator[bytes]:
            yield b"one, "
            yield b"two"

        outgoing = OutgoingFile("count.txt", "text/plain", 8, read)
        address = Address(adapter.platform, room_id)
        sending = OutgoingMessage(key="d_file.1", address=address, body="", file=outgoing)
        assert await adapter.send(sending) == await adapter.send(sending)
        event = await ada.wait_for_text(room_id, "count.txt")
    assert event["content"]["msgtype"] == "m.file"
    assert await ada.download(event["content"]["url"]) == b"one, two"


async def test_typing_and_our_own_reaction(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person
) -> None:
    adapter = make_adapter(bot)
    async with connect_adapter(adapter, inbox):
        room_id = await open_dm(inbox, ada, bot)
        address = Address(adapter.platform, room_id)
        await adapter.show_typing(address)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while ada.typing.get(room_id) != [bot.user_id]:
                await ada.sync()
        await adapter.stop_typing(address)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while ada.typing.get(room_id) != []:
                await ada.sync()
        event_id = await ada.say(room_id, "Look")
        await adapter.react(address, event_id, "👀")
        [reaction] = await ada.wait_for(room_id, lambda event: event["type"] == "m.reaction")
        await make_adapter(bot).react(address, event_id, "")  # after a restart
        await ada.wait_for(room_id, lambda event: event["type"] == "m.room.redaction")
    assert reaction["content"]["m.relates_to"]["key"] == "👀"


async def test_a_rate_limit_applies_to_the_whole_account(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person, register: Register
) -> None:
    adapter = make_adapter(bot)
    async with connect_adapter(adapter, inbox):
        room_id = await open_dm(inbox, ada, bot)
        admin = await register("Admin", is_admin=True)
        limits = {"messages_per_second": 1, "burst_count": 1}
        await admin.call("POST", f"/_synapse/admin/v1/users/{quote(bot.user_id)}/override_ratelimit", limits)
        sends = [adapter.send(make_message(adapter, room_id, "Too fast")) for _ in range(20)]
        with pytest.raises(SendRetryable) as limited:
            await asyncio.gather(*sends)
    assert limited.value.whole_account
    assert limited.value.retry_after is not None
    assert 0 < limited.value.retry_after <= 10


async def test_a_room_that_we_are_not_in_is_unreachable(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person
) -> None:
    adapter = make_adapter(bot)
    async with connect_adapter(adapter, inbox):
        room_id = await open_dm(inbox, ada, bot, preset="private_chat")
        await ada.call("POST", f"rooms/{quote(room_id)}/kick", {"user_id": bot.user_id})
        await inbox.wait_until(lambda: getattr(inbox.updates[-1], "left", ()), TIMEOUT_SECONDS)
        with pytest.raises(TargetUnreachable):
            await adapter.send(make_message(adapter, room_id, "Still there?"))
        with pytest.raises(TargetUnreachable):
            await adapter.send(make_message(adapter, "!nothing:localhost", "Hello?"))
    removed = inbox.updates[-1]
    assert isinstance(removed, MembersChanged)
    assert (removed.is_own_account, removed.left) == (True, ("Palaver",))


async def test_a_room_where_we_may_not_write_refuses_only_the_message(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person
) -> None:
    room_id = await ada.create_room(
        bot.user_id, preset="private_chat", power_level_content_override={"events_default": 50}
    )
    await bot.join(room_id)
    adapter = make_adapter(bot)
    with pytest.raises(SendRejected) as rejected:
        await adapter.send(make_message(adapter, room_id, "May I?"))
    assert not isinstance(rejected.value, TargetUnreachable)


async def test_an_upgraded_room_moves(make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person) -> None:
    adapter = make_adapter(bot)
    async with connect_adapter(adapter, inbox):
        room_id = await ada.create_room(bot.user_id, preset="private_chat", name="Old", room_version="10")
        await inbox.wait_until(lambda: inbox.updates, TIMEOUT_SECONDS)
        new_id = (await ada.call("POST", f"rooms/{quote(room_id)}/upgrade", {"new_version": "11"}))["replacement_room"]
        moved = await wait_for_update(inbox, ChatMoved)
        with pytest.raises(ChatMovedAway) as away:
            await adapter.send(make_message(adapter, room_id, "Hello?"))
        await ada.call("POST", f"rooms/{quote(new_id)}/invite", {"user_id": bot.user_id})
        await ada.wait_for(new_id, lambda event: event["content"].get("membership") == "join", count=2)
        await adapter.send(make_message(adapter, new_id, "Hello!"))
    assert (moved.source.chat_id, moved.new_chat_id, away.value.new_chat_id) == (room_id, new_id, new_id)


async def test_a_revoked_token_is_refused(make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person) -> None:
    adapter = make_adapter(bot)
    assert (await adapter.probe()).user_id == bot.user_id
    await bot.call("POST", "logout", {})
    with pytest.raises(AccountRefused, match="access_token"):
        await adapter.run(MemoryLink(inbox))
    with pytest.raises(AccountRefused) as refused:
        await make_adapter(bot).probe()
    assert bot.access_token not in str(refused.value)


async def test_a_password_signs_in_once_and_again_when_the_token_has_ended(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, tmp_path: Path
) -> None:
    sign_in: dict[str, Any] = {"user_id": bot.user_id, "password": bot.password}
    stored = tmp_path / "matrix" / "sign-in.json"
    await make_adapter(bot, **sign_in).probe()
    first = json.loads(stored.read_text())
    assert stored.stat().st_mode & 0o777 == 0o600
    adapter = make_adapter(bot, **sign_in)
    await adapter.probe()
    assert json.loads(stored.read_text()) == first
    await bot.call("POST", "logout/all", {})
    with pytest.raises(ConnectionLost, match="Signing in again"):
        await adapter.run(MemoryLink(inbox))
    async with connect_adapter(adapter, inbox):
        second = json.loads(stored.read_text())
    assert second["device_id"] != first["device_id"]
    stored.unlink()
    with pytest.raises(AccountRefused, match="MATRIX_PASSWORD"):
        await make_adapter(bot, user_id=bot.user_id, password="wrong one").probe()


async def test_the_probe_tells_the_limit_of_files_and_what_can_not_be_read(
    make_adapter: MakeAdapter, bot: Person
) -> None:
    adapter = make_adapter(bot)
    info = await adapter.probe()
    assert info.name == bot.user_id
    assert "encryption is off" in info.warnings[0]
    assert adapter.capabilities.max_file_bytes == 50 * 1024 * 1024


async def test_an_encrypted_room_is_told_once_that_it_can_not_be_read(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person
) -> None:
    state = [{"type": "m.room.encryption", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}]
    adapter = make_adapter(bot)
    room_id = await ada.create_room(bot.user_id, initial_state=state)
    async with connect_adapter(adapter, inbox):
        for _ in range(2):
            await ada.send(room_id, "m.room.encrypted", {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "…"})
        other_room = await open_dm(inbox, ada, bot)
        await ada.say(other_room, "Done")
        await wait_for_texts(inbox, "Done")
        with pytest.raises(SendRejected, match="matrix-encryption"):
            await adapter.send(make_message(adapter, room_id, "A secret"))
    await ada.wait_for_text(room_id, "palaver[matrix-encryption]")
    assert len([event for event in ada.events[room_id] if event["sender"] == bot.user_id]) == 2  # it has joined, too


async def test_a_verification_is_canceled_and_explained_once(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person
) -> None:
    def is_cancel(event: dict[str, Any]) -> bool:
        return bool(event["type"] == "m.key.verification.cancel")

    def refers_to(event_id: str, event: dict[str, Any]) -> bool:
        return bool(event["content"].get("m.relates_to") == {"rel_type": "m.reference", "event_id": event_id})

    fields = {"from_device": ada.device_id, "methods": ["m.sas.v1"]}
    async with connect_adapter(make_adapter(bot), inbox):
        room_id = await open_dm(inbox, ada, bot)
        request = {**fields, "msgtype": "m.key.verification.request", "to": bot.user_id}
        asked = [await ada.say(room_id, "Verify me", **request) for _ in range(2)]
        for event_id in asked:
            await ada.wait_for(room_id, partial(refers_to, event_id))
        content = {**fields, "transaction_id": "t1", "timestamp": int(time.time() * 1000)}
        path = f"sendToDevice/m.key.verification.request/{secrets.token_hex(4)}"
        await ada.call("PUT", path, {"messages": {bot.user_id: {bot.device_id: content}}})
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not (found := [event for event in ada.to_device if is_cancel(event)]):
                await ada.sync()
        [event] = found
        assert (event["sender"], event["content"]["transaction_id"]) == (bot.user_id, "t1")
        assert event["content"]["code"] == "m.unknown_method"
        await ada.say(room_id, "Done")
        await wait_for_texts(inbox, "Done")
    await ada.wait_for_text(room_id, "can't verify devices")
    events = [event for event in await ada.list_events(room_id) if event["sender"] == bot.user_id]
    assert len([event for event in events if is_cancel(event)]) == 2
    assert len([event for event in events if event["content"].get("msgtype") == "m.notice"]) == 1


async def test_answers_can_be_sent_as_text(make_adapter: MakeAdapter, bot: Person, ada: Person) -> None:
    room_id = await ada.create_room(bot.user_id)
    await bot.join(room_id)
    adapter = make_adapter(bot, send_as="text")
    await adapter.send(make_message(adapter, room_id, "An answer"))
    await adapter.send(make_message(adapter, room_id, "A notice", kind=DeliveryKind.NOTICE))
    answer, notice = await ada.wait_for_text(room_id, "An answer"), await ada.wait_for_text(room_id, "A notice")
    assert (answer["content"]["msgtype"], notice["content"]["msgtype"]) == ("m.text", "m.notice")
