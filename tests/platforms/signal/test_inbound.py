"""Each kind of event becomes what it means for the gateway."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.source import ChatType
from palaver.platforms.signal.inbound import (
    EventParser,
    MessageRef,
    read_sender_name,
)
from palaver.platforms.signal.linking import LinkedAccount
from palaver.sessions.inbound import Inbound, MessageDeleted, MessageEdited, MessageReaction

from .signal_server import ADA, BEN, GROUP, OWN_ACI, OWN_DEVICE, OWN_NUMBER, SignalServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

OWN = LinkedAccount(aci=OWN_ACI, number=OWN_NUMBER, device_id=OWN_DEVICE, is_registered=True)
TIME = 1_790_000_000_000
# As the real signal-cli 0.13.19 has printed it.
RECORDED_MESSAGE = json.loads("""
{"envelope":{"source":"94987c48-bbb0-4c6d-abcc-5ba8f177caaf","sourceNumber":null,
"sourceUuid":"94987c48-bbb0-4c6d-abcc-5ba8f177caaf","sourceName":"","sourceDevice":1,"timestamp":1794843968312,
"serverReceivedTimestamp":1794843968312,"serverDeliveredTimestamp":0,"dataMessage":{"timestamp":1794843968312,
"message":"hello","expiresInSeconds":0,"viewOnce":false}},"account":"+14154948710"}
""")
RECORDED_NOTE = json.loads("""
{"envelope":{"source":"+14154948710","sourceNumber":"+14154948710",
"sourceUuid":"d24e9f53-8ab1-4e08-8ff2-a9329e1edeeb","sourceName":"","sourceDevice":1,"timestamp":1794843969537,
"serverReceivedTimestamp":1794843969537,"serverDeliveredTimestamp":0,"syncMessage":{"sentMessage":{
"destination":"+14154948710","destinationNumber":"+14154948710","destinationUuid":"d24e9f53-8ab1-4e08-8ff2-a9329e1edeeb",
"timestamp":1794843969537,"message":"a note","expiresInSeconds":0,"viewOnce":false}}},"account":"+14154948710"}
""")


async def open_nothing(_file_id: str) -> AsyncIterator[bytes]:
    yield b"content"


def make_event(person: str = ADA, **content: Any) -> dict[str, Any]:
    return {"envelope": SignalServer.make_envelope(person, TIME, **content), "account": OWN_NUMBER}


def make_data(text: str | None = "Hello", **fields: Any) -> dict[str, Any]:
    return {"timestamp": TIME, "message": text, "expiresInSeconds": 0, "viewOnce": False, **fields}


def make_group() -> dict[str, Any]:
    return {"groupId": GROUP, "groupName": "Engines", "revision": 3, "type": "DELIVER"}


def make_mention(person: str, start: int) -> dict[str, Any]:
    return {"name": person, "number": None, "uuid": person, "start": start, "length": 1}


def make_quote(author: str, text: str | None = "Earlier", **fields: Any) -> dict[str, Any]:
    address = {"author": author, "authorNumber": None, "authorUuid": author}
    return {"id": TIME - 5000, **address, "text": text, "attachments": [], **fields}


def make_parser(own: LinkedAccount = OWN, *, answers_everybody: bool = True) -> EventParser:
    return EventParser(
        own=own,
        answers_everybody=answers_everybody,
        find_name={ADA: "Ada", BEN: "Ben"}.get,
        find_original=lambda ref: ref,
        open_file=open_nothing,
    )


def parse(event: dict[str, Any], own: LinkedAccount = OWN, *, answers_everybody: bool = True) -> Any:
    updates = make_parser(own, answers_everybody=answers_everybody).parse(event)
    return updates[0] if updates else None


def parse_data(text: str | None = "Hello", person: str = ADA, **fields: Any) -> Any:
    return parse(make_event(person, dataMessage=make_data(text, **fields)))


def test_a_private_message() -> None:
    message = parse_data()
    assert isinstance(message, Inbound)
    assert (message.content, message.message_id) == ("Hello", f"{ADA}:{TIME}")
    server_time = datetime.fromtimestamp((TIME + 10) / 1000, UTC)  # no sender can choose it
    assert (message.sent_at, message.is_sent_at_reliable) == (server_time, True)
    source = message.source
    assert (source.chat_id, source.chat_type, source.user_id, source.user_name) == (ADA, ChatType.DM, ADA, "Ada")
    assert message.is_addressed


def test_what_the_real_signal_cli_has_printed() -> None:
    message = parse(RECORDED_MESSAGE)
    person = RECORDED_MESSAGE["envelope"]["sourceUuid"]
    assert (message.content, message.source.user_id, message.source.user_name) == ("hello", person, "94987c48")
    own = replace(OWN, aci=RECORDED_NOTE["envelope"]["sourceUuid"], number=RECORDED_NOTE["account"], device_id=2)
    note = parse(RECORDED_NOTE, own)
    assert (note.content, note.source.chat_id, note.source.user_id) == ("a note", own.aci, own.aci)


@pytest.mark.parametrize("name", ["", " ", "\u200b\u2060", None])
@pytest.mark.parametrize(("number", "shown"), [("+4930123456", "+4930123456"), (None, "0b5ce4f1")])
def test_a_person_without_a_profile_name_still_has_one(name: str | None, number: str | None, shown: str) -> None:
    person = "0b5ce4f1-1a5c-4b2e-9a2f-0000000000ff"
    for group_info in (None, make_group()):
        event = make_event(person, dataMessage=make_data(groupInfo=group_info))
        event["envelope"] |= {"sourceName": name, "sourceNumber": number}
        assert parse(event).source.user_name == shown
        assert read_sender_name(event) is None
    quote = make_quote(person) | {"authorNumber": number}
    assert parse_data(quote=quote).replied_message.author == shown


def test_a_profile_name_is_one_line() -> None:
    event = make_event(dataMessage=make_data())
    event["envelope"]["sourceName"] = " Ada\n Lovelace "
    assert parse(event).source.user_name == "Ada Lovelace"


def test_without_an_aci_the_number_is_the_person() -> None:
    event = make_event(dataMessage=make_data())
    event["envelope"] |= {"sourceUuid": None, "sourceNumber": "+4930123456"}
    assert parse(event).source.user_id == "+4930123456"


@pytest.mark.parametrize(
    ("fields", "is_addressed"),
    [
        ({}, False),
        ({"mentions": [make_mention(OWN_ACI, 0)]}, True),
        ({"mentions": [make_mention(BEN, 0)]}, False),
        ({"quote": make_quote(OWN_ACI)}, True),
        ({"quote": make_quote(BEN)}, False),
    ],
)
def test_in_a_group_mentions_and_replies_are_for_the_agent(fields: dict[str, Any], *, is_addressed: bool) -> None:
    message = parse_data("\ufffc Palaver, hello", groupInfo=make_group(), **fields)
    assert message.is_addressed is is_addressed
    source = message.source
    assert (source.chat_id, source.chat_name, source.chat_type) == (GROUP, "Engines", ChatType.GROUP)
    assert source.user_id == ADA


@pytest.mark.parametrize(("text", "is_addressed"), [("/retry", True), ("/shrug", False), ("retry", False)])
def test_in_a_group_a_command_of_ours_is_for_the_agent(text: str, *, is_addressed: bool) -> None:
    assert parse_data(text, groupInfo=make_group()).is_addressed is is_addressed


@pytest.mark.parametrize(
    ("text", "mentions", "shown"),
    [
        ("\ufffc hello", [(OWN_ACI, 0)], "hello"),
        ("\ufffc \ufffc hello", [(OWN_ACI, 0), (BEN, 2)], "@Ben hello"),
        ("👍 \ufffc ok", [(BEN, 3)], "👍 @Ben ok"),
        ("ask \ufffc", [(OWN_ACI, 4)], f"ask @{OWN_ACI[:8]}"),
        ("\ufffc and \ufffc", [(BEN, 6), (ADA, 0)], "@Ada and @Ben"),
        ("short", [(BEN, 50)], "short"),
    ],
)
def test_mentions_become_names(text: str, mentions: list[tuple[str, int]], shown: str) -> None:
    fields = [make_mention(person, start) for person, start in mentions]
    assert parse_data(text, mentions=fields, groupInfo=make_group()).content == shown


def test_mentions_with_impossible_lengths_are_left_out() -> None:
    fields = [make_mention(ADA, 4) | {"length": -4}, make_mention(ADA, -1), make_mention(ADA, 9)]
    assert parse_data("Good morning", mentions=fields, groupInfo=make_group()).content == "Good morn@Adang"


def test_a_reply_names_what_it_replies_to() -> None:
    replied = parse_data(quote=make_quote(BEN)).replied_message
    assert (replied.message_id, replied.author, replied.text) == (f"{BEN}:{TIME - 5000}", "Ben", "Earlier")
    assert not replied.is_own
    files = [{"contentType": "image/png", "filename": "cat.png"}]
    assert parse_data(quote=make_quote(BEN, None, attachments=files)).replied_message.text == "Files: cat.png"
    by_number = make_quote(OWN_ACI) | {"authorUuid": None, "authorNumber": OWN_NUMBER}
    replied = parse_data(quote=by_number).replied_message
    assert (replied.is_own, replied.message_id) == (True, f"{OWN_ACI}:{TIME - 5000}")


def make_attachment(name: str | None, media_type: str, file_id: str | None = "f1") -> dict[str, Any]:
    unknown = dict.fromkeys(("width", "height", "caption", "uploadTimestamp"))
    return {"contentType": media_type, "filename": name, "id": file_id, "size": 7, **unknown}


async def test_files_are_described_and_read_later() -> None:
    attachments = [
        make_attachment("notes.txt", "text/plain"),
        make_attachment(None, "audio/aac"),
        make_attachment(None, "image/jpeg", "f2.jpg"),
        make_attachment(None, "text/x-signal-plain"),
        make_attachment("never-downloaded.bin", "application/octet-stream", None),
    ]
    message = parse_data(None, attachments=attachments)
    described = [(file.name, file.media_type, file.is_voice) for file in message.files]
    assert described == [
        ("notes.txt", "text/plain", False),
        (None, "audio/aac", True),
        ("f2.jpg", "image/jpeg", False),
        ("message.txt", "text/plain", False),
    ]
    assert [chunk async for chunk in message.files[0].open()] == [b"content"]


def test_an_edit() -> None:
    edit = {"targetSentTimestamp": TIME - 1000, "dataMessage": make_data("Better")}
    event = make_event(editMessage=edit)
    update = parse(event)
    assert isinstance(update, MessageEdited)
    assert (update.message_id, update.content) == (f"{ADA}:{TIME - 1000}", "Better")
    assert make_parser().find_revision(event) == (MessageRef(ADA, TIME - 1000), MessageRef(ADA, TIME))
    in_group = {"targetSentTimestamp": TIME, "dataMessage": make_data("Better", groupInfo=make_group())}
    assert parse(make_event(editMessage=in_group)).source.chat_id == GROUP


def test_deletions() -> None:
    update = parse_data(None, remoteDelete={"timestamp": TIME - 1})
    assert isinstance(update, MessageDeleted)
    assert update.message_id == f"{ADA}:{TIME - 1}"
    admin = {"targetAuthor": BEN, "targetAuthorNumber": None, "targetAuthorUuid": BEN, "targetSentTimestamp": 7}
    assert parse_data(None, adminDelete=admin, groupInfo=make_group()).message_id == f"{BEN}:7"


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_reaction(*, is_removed: bool) -> None:
    target = {"targetAuthor": OWN_ACI, "targetAuthorNumber": None, "targetAuthorUuid": OWN_ACI}
    reaction = {"emoji": "👍", **target, "targetSentTimestamp": 9, "isRemove": is_removed}
    update = parse_data(None, reaction=reaction)
    assert isinstance(update, MessageReaction)
    assert (update.message_id, update.emoji, update.is_removed) == (f"{OWN_ACI}:9", "👍", is_removed)


def make_sync(destination: str | None, text: str | None = "Note", **fields: Any) -> dict[str, Any]:
    sent = {"destination": destination, "destinationNumber": None, "destinationUuid": destination}
    return make_event(OWN_ACI, syncMessage={"sentMessage": {**sent, **make_data(text, **fields)}})


def test_a_note_to_self_is_a_question() -> None:
    note = parse(make_sync(OWN_ACI))
    assert (note.content, note.source.chat_id, note.source.user_id) == ("Note", OWN_ACI, OWN_ACI)
    assert note.is_addressed
    by_number = make_sync(OWN_NUMBER)
    by_number["envelope"]["syncMessage"]["sentMessage"]["destinationUuid"] = None
    assert parse(by_number).content == "Note"


def test_an_edited_note_is_an_edit() -> None:
    edit = {"targetSentTimestamp": TIME - 1000, "dataMessage": make_data("Better")}
    sent = {"destination": OWN_ACI, "destinationNumber": None, "destinationUuid": OWN_ACI, "editMessage": edit}
    update = parse(make_event(OWN_ACI, syncMessage={"sentMessage": sent}))
    assert (update.content, update.message_id) == ("Better", f"{OWN_ACI}:{TIME - 1000}")


def test_what_the_owner_writes_to_others_is_not_answered() -> None:
    assert parse(make_sync(ADA)) is None
    in_group = parse(make_sync(None, mentions=[make_mention(OWN_ACI, 0)], groupInfo=make_group()))
    assert (in_group.is_addressed, in_group.source.user_id) == (False, OWN_ACI)


def test_own_messages_of_this_device_do_not_come_back() -> None:
    event = make_sync(OWN_ACI)
    event["envelope"]["sourceDevice"] = OWN_DEVICE
    assert parse(event) is None


def test_only_notes_are_answered_if_the_account_belongs_to_a_person() -> None:
    assert parse(make_event(dataMessage=make_data()), answers_everybody=False) is None
    assert parse(make_event(dataMessage=make_data(groupInfo=make_group())), answers_everybody=False) is None
    assert parse(make_sync(None, groupInfo=make_group()), answers_everybody=False) is None
    assert parse(make_sync(OWN_ACI), answers_everybody=False).content == "Note"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"sticker": {"packId": "ab", "stickerId": 1}}, "[Sticker]"),
        (
            {"contacts": [{"name": {"display": "Bob B"}, "phone": [{"value": "+4912345"}]}]},
            "[Contacts: Bob B, +4912345]",
        ),
        ({"pollCreate": {"question": "When?", "options": ["Mon", "Tue"]}}, "[Poll: When?: Mon; Tue]"),
    ],
)
def test_other_content_is_described(fields: dict[str, Any], text: str) -> None:
    assert parse_data(None, **fields).content == text


@pytest.mark.parametrize(
    "content",
    [
        {"receiptMessage": {"when": TIME, "isDelivery": True, "isRead": False, "isViewed": False, "timestamps": [1]}},
        {"typingMessage": {"action": "STARTED", "timestamp": TIME}},
        {"syncMessage": {}},
        {"syncMessage": {"readMessages": []}},
        {"dataMessage": make_data(None)},
        {"dataMessage": make_data(None, groupInfo=make_group() | {"type": "UPDATE"})},
        {},
    ],
)
def test_other_events_mean_nothing(content: dict[str, Any]) -> None:
    for person in (ADA, OWN_ACI):
        assert parse(make_event(person, **content)) is None
    assert parse({"account": OWN_NUMBER}) is None
    assert parse({"envelope": {}}) is None


def test_the_name_of_a_sender_is_read() -> None:
    assert read_sender_name(make_event(dataMessage=make_data())) == (ADA, "Ada")
    assert read_sender_name(make_event("0b5ce4f1-1a5c-4b2e-9a2f-0000000000ff")) is None
