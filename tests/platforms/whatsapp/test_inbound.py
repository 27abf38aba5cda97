"""What webhooks of the Cloud API become: every type of message, who wrote it, and what became of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.platforms.whatsapp.inbound import parse_webhook
from palaver.sessions.inbound import ButtonPressed, ChatMoved, Inbound, MessageDeleted, MessageEdited, MessageReaction

from .cloud_types import check_webhook
from .graph_server import (
    ADAS_BSUID,
    ADAS_NUMBER,
    BENS_BSUID,
    BENS_NUMBER,
    NUMBER_ID,
    OWN_NUMBER,
    make_contact,
    make_message,
    make_status,
    make_webhook,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.sessions.inbound import AnyUpdate

PLACE = {"latitude": 52.5, "longitude": 13.4}
ORDER = {
    "catalog_id": "c1",
    "text": "Soon, please",
    "product_items": [{"product_retailer_id": "tea", "quantity": 2, "item_price": 4.5, "currency": "EUR"}],
}
CONTACT = {
    "name": {"formatted_name": "Bob Stone", "first_name": "Bob"},
    "phones": [{"phone": "+49 30 1", "type": "WORK"}],
    "emails": [{"email": "bob@example.org"}],
}
UNSUPPORTED = [{"code": 131051, "title": "Message type unknown", "message": "Message type unknown"}]


async def open_media(media_id: str) -> AsyncIterator[bytes]:
    yield media_id.encode()


def parse(*messages: Any, **fields: Any) -> list[AnyUpdate]:
    return parse_webhook(make_webhook(*messages, **fields), NUMBER_ID, open_media)[0]


def parse_one(kind: str, content: Any = None, **fields: Any) -> Inbound:
    [update] = parse(make_message(kind, content, **fields))
    assert isinstance(update, Inbound)
    return update


TEXTS = [
    ("text", {"body": "Hello"}, "Hello"),
    ("location", PLACE, "[Location: 52.5, 13.4]"),
    ("location", PLACE | {"name": "Café", "address": "Street 1"}, "[Place: Café, Street 1 (52.5, 13.4)]"),
    ("contacts", [CONTACT], "[Contact: Bob Stone, +49 30 1, bob@example.org]"),
    ("order", ORDER, "Soon, please\n[Order: 2 × tea at 4.5 EUR]"),
    ("button", {"payload": "yes-please", "text": "Yes"}, "Yes"),
    ("sticker", {"id": "1", "mime_type": "image/webp", "sha256": "x", "animated": False}, "[Sticker]"),
    ("interactive", {"type": "button_reply", "button_reply": {"id": "x", "title": "Maybe"}}, "Maybe"),
    ("interactive", {"type": "list_reply", "list_reply": {"id": "x", "title": "B", "description": "d"}}, "B"),
    (
        "interactive",
        {"type": "nfm_reply", "nfm_reply": {"name": "flow", "body": "Sent", "response_json": '{"a":1}'}},
        '[Form: {"a":1}]',
    ),
]


@pytest.mark.parametrize(("kind", "content", "text"), TEXTS)
def test_every_type_of_message_is_a_text(kind: str, content: Any, text: str) -> None:
    message = parse_one(kind, content)
    assert message.content == text
    assert check_webhook(make_webhook(make_message(kind, content))) == []


def test_a_message_that_whatsapp_does_not_pass_on_is_named() -> None:
    message = parse_one("unsupported", {"type": "poll"}, errors=UNSUPPORTED)
    assert message.content == "[A message that WhatsApp does not pass on to businesses: poll. Message type unknown]"
    assert parse_one("hologram", {}).content == "[A message that WhatsApp does not pass on to businesses: hologram]"


FILES = [
    ("image", {"id": "1", "mime_type": "image/jpeg", "sha256": "x", "caption": "Look"}, "Look", "image.jpg"),
    ("video", {"id": "1", "mime_type": "video/mp4", "sha256": "x"}, "", "video.mp4"),
    ("document", {"id": "1", "mime_type": "text/plain", "sha256": "x", "filename": "notes.txt"}, "", "notes.txt"),
    ("audio", {"id": "1", "mime_type": "audio/mpeg", "sha256": "x"}, "", "audio.mp3"),
]


@pytest.mark.parametrize(("kind", "content", "text", "name"), FILES)
async def test_files_are_described_and_opened_on_demand(kind: str, content: Any, text: str, name: str) -> None:
    message = parse_one(kind, content)
    [file] = message.files
    assert (message.content, file.name, file.is_voice) == (text, name, False)
    assert [chunk async for chunk in file.open()] == [b"1"]


def test_a_voice_note_is_one() -> None:
    [file] = parse_one("audio", {"id": "1", "mime_type": "audio/ogg; codecs=opus", "voice": True}).files
    assert (file.name, file.media_type, file.is_voice) == (None, "audio/ogg", True)


def test_replies_and_forwards_are_told() -> None:
    reply = parse_one("text", "Why?", context={"from": OWN_NUMBER, "id": "wamid.out1"}).replied_message
    assert reply is not None
    assert (reply.message_id, reply.is_own) == ("wamid.out1", True)
    own = parse_one("text", "As I said", context={"from": ADAS_NUMBER, "id": "wamid.in1"}).replied_message
    assert own is not None
    assert not own.is_own
    assert parse_one("text", "News", context={"forwarded": True}).content == "[Forwarded]\nNews"


def test_what_people_do_with_messages() -> None:
    reaction, removal, edit, revoke = parse(
        make_message("reaction", {"message_id": "wamid.out1", "emoji": "👍"}),
        make_message("reaction", {"message_id": "wamid.out1"}),
        make_message(
            "edit", {"original_message_id": "wamid.in9", "message": {"type": "text", "text": {"body": "Better"}}}
        ),
        make_message("revoke", {"original_message_id": "wamid.in9"}),
    )
    assert isinstance(reaction, MessageReaction)
    assert (reaction.message_id, reaction.emoji, reaction.is_removed) == ("wamid.out1", "👍", False)
    assert isinstance(removal, MessageReaction)
    assert removal.is_removed
    assert isinstance(edit, MessageEdited)
    assert (edit.message_id, edit.content) == ("wamid.in9", "Better")
    assert isinstance(revoke, MessageDeleted)


@pytest.mark.parametrize("kind", ["button_reply", "list_reply"])
def test_a_button_of_ours_is_a_press(kind: str) -> None:
    reply = {"id": "retry:t_1", "title": "Retry"}
    [press] = parse(
        make_message("interactive", {"type": kind, kind: reply}, context={"from": OWN_NUMBER, "id": "wamid.out1"})
    )
    assert isinstance(press, ButtonPressed)
    assert (press.message_id, press.data, press.press_id) == ("wamid.out1", "retry:t_1", "wamid.in1")


# ---- who it is -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "bsuid", "ids"),
    [
        (ADAS_NUMBER, None, (ADAS_NUMBER, ADAS_NUMBER, None)),
        (ADAS_NUMBER, ADAS_BSUID, (ADAS_NUMBER, ADAS_NUMBER, ADAS_BSUID)),
        (None, ADAS_BSUID, (ADAS_BSUID, ADAS_BSUID, None)),
    ],
)
def test_the_ids_that_meta_names_are_given_on(number: str | None, bsuid: str | None, ids: Any) -> None:
    source = parse_one("text", "Hello", number=number, bsuid=bsuid).source
    assert (source.chat_id, source.user_id, source.user_id_alt) == ids
    assert source.user_name == "Ada"


def test_the_contact_of_the_sender_completes_their_ids() -> None:
    contacts = [make_contact(BENS_NUMBER, BENS_BSUID), make_contact(ADAS_NUMBER, ADAS_BSUID)]
    messages = [make_message("text", "a"), make_message("text", "b", number=BENS_NUMBER)]
    ada, ben = parse(*messages, contacts=contacts)
    assert (ada.source.user_id_alt, ada.source.user_name) == (ADAS_BSUID, "Ada")
    assert (ben.source.user_id_alt, ben.source.user_name) == (BENS_BSUID, "Ben")


def test_the_contact_of_another_person_is_not_used() -> None:
    [update] = parse(make_message("text", "Hello"), contacts=[make_contact(BENS_NUMBER, BENS_BSUID)])
    assert (update.source.user_id, update.source.user_id_alt, update.source.user_name) == (ADAS_NUMBER, None, None)


def test_a_changed_number_moves_the_chat() -> None:
    system = {
        "body": "User A changed from 4917011111111 to 4917099999999",
        "type": "user_changed_number",
        "wa_id": "4917099999999",
        "user_id": "DE.999",
        "previous_user_id": ADAS_BSUID,
    }
    [moved] = parse(make_message("system", system))
    assert isinstance(moved, ChatMoved)
    assert (moved.source.user_id, moved.source.user_id_alt) == (ADAS_NUMBER, ADAS_BSUID)
    assert (moved.new_chat_id, moved.new_user_ids) == ("4917099999999", ("4917099999999", "DE.999"))
    hidden = {"body": "", "type": "user_changed_user_id", "user_id": "DE.999", "previous_user_id": ADAS_BSUID}
    [moved] = parse(make_message("system", hidden, number=None))
    assert isinstance(moved, ChatMoved)
    assert (moved.source.user_id, moved.new_user_ids) == (ADAS_BSUID, ("DE.999",))
    assert parse(make_message("system", {"body": "", "type": "customer_identity_changed"})) == []


# ---- what is broken --------------------------------------------------------------------------------------------

BROKEN: list[Any] = [
    None,
    "text",
    {},
    {"type": "text"},
    make_message("text"),
    make_message("text", {"body": "who?"}, number=None),
    make_message("text", "Hello", number="../../etc"),
    make_message("text", "Hello", bsuid="not a bsuid"),
    make_message("text", "Hello") | {"timestamp": "soon"},
    make_message("text", "Hello") | {"timestamp": "9" * 30},
    make_message("text", "Hello") | {"timestamp": "1" + "0" * 17},
    make_message("image", {}),
    make_message("text", "Hello", group_id="g1"),
    make_message("system", {"type": "user_changed_number", "wa_id": "x"}),
]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_message_never_stops_the_rest(broken: Any) -> None:
    payload = make_webhook(make_message("text", "one"), make_message("text", "two", message_id="wamid.in2"))
    payload["entry"][0]["changes"][0]["value"]["messages"].insert(1, broken)
    updates, _ = parse_webhook(payload, NUMBER_ID, open_media)
    assert [each.content for each in updates if isinstance(each, Inbound)] == ["one", "two"]


@pytest.mark.parametrize("broken", [None, 1, {}, {"changes": None}, {"changes": [None, {"field": "messages"}]}])
def test_a_broken_entry_never_stops_the_rest(broken: Any) -> None:
    payload = make_webhook(make_message("text", "one"))
    payload["entry"].insert(0, broken)
    payload["entry"].append(
        {"changes": [{"field": "messages", "value": None}, {"field": "account_update", "value": {}}]}
    )
    payload["entry"][1]["changes"][0]["value"]["errors"] = [broken]
    payload["entry"][1]["changes"][0]["value"]["contacts"].insert(0, {"wa_id": broken, "user_id": [broken]})
    [update] = parse_webhook(payload, NUMBER_ID, open_media)[0]
    assert update.source.user_name == "Ada"


def test_other_numbers_are_left_to_their_own_accounts() -> None:
    assert parse(make_message("text", "Hello"), number_id="1065999") == []


def test_statuses_carry_our_key() -> None:
    statuses = [
        make_status("wamid.out1", "sent", "d_1.1"),
        make_status("wamid.out2", "failed", "d_1.2", code=131047),
        make_status("wamid.out3", "sent", None),  # sent by another program
    ]
    payload = make_webhook(statuses=statuses)
    assert check_webhook(payload) == []
    payload["entry"][0]["changes"][0]["value"]["statuses"].insert(
        1, {"status": "sent", "biz_opaque_callback_data": "d_1.3"}
    )
    first, second = parse_webhook(payload, NUMBER_ID, open_media)[1]
    assert (first.message_id, first.key, first.status) == ("wamid.out1", "d_1.1", "sent")
    assert isinstance(second.error, dict)
    assert second.error["code"] == 131047


# ---- a second opinion ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "content"),
    [*((kind, content) for kind, content, _ in TEXTS), *((kind, content) for kind, content, *_ in FILES)],
)
def test_another_library_reads_our_webhooks_too(kind: str, content: Any) -> None:
    from pywa.client import WhatsApp
    from pywa.types.callback import CallbackButton, CallbackSelection
    from pywa.types.flows import FlowCompletion
    from pywa.types.message import Message

    client = WhatsApp(token="x", phone_id=NUMBER_ID)
    payload: Any = make_webhook(
        make_message(kind, content, bsuid=ADAS_BSUID, context={"from": OWN_NUMBER, "id": "wamid.out1"}),
        contacts=[make_contact(bsuid=ADAS_BSUID)],
    )
    readers = {"button_reply": CallbackButton, "list_reply": CallbackSelection, "nfm_reply": FlowCompletion}
    reader: Any = CallbackButton if kind == "button" else Message
    if kind == "interactive":
        reader = readers[content["type"]]
    update = reader.from_update(client, payload)
    assert (update.id, update.from_user.wa_id, update.from_user.bsuid) == ("wamid.in1", ADAS_NUMBER, ADAS_BSUID)
