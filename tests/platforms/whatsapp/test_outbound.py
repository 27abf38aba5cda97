"""The requests that messages become, and what each refusal of the Graph API means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.core.source import Platform
from palaver.delivery.adapter import OutgoingFile
from palaver.platforms.whatsapp import outbound
from palaver.platforms.whatsapp.client import GraphRefusal, make_delivery_error, make_late_error, make_platform_error
from palaver.sessions.delivery import Address, Button

from .cloud_types import check_request
from .conftest import make_outgoing
from .graph_server import ADAS_BSUID

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BUTTONS = [Button(f"Button number {number} of ten", f"retry:t_{number}") for number in range(12)]


async def read_nothing() -> AsyncIterator[bytes]:
    yield b""


def make_file(media_type: str, size: int = 10, name: str = "notes.txt") -> OutgoingFile:
    return OutgoingFile(name, media_type, size, read_nothing)


def test_a_text_has_no_preview_and_carries_its_key() -> None:
    request = outbound.build_text(make_outgoing("Hello", reply_to="wamid.in1"))
    assert check_request(request) == []
    assert request["text"] == {"body": "Hello", "preview_url": False}
    assert (request["biz_opaque_callback_data"], request["context"]) == ("d_1.1", {"message_id": "wamid.in1"})


def test_a_person_without_a_number_is_reached_by_their_bsuid() -> None:
    request = outbound.build_text(make_outgoing(address=Address(Platform.WHATSAPP, ADAS_BSUID)))
    assert check_request(request) == []
    assert "to" not in request
    assert request["recipient"] == ADAS_BSUID


@pytest.mark.parametrize("chat_id", ["4917011111111@former.17", "someone", "", "77@lid", "1" * 30])
def test_an_address_that_whatsapp_does_not_know_is_unreachable(chat_id: str) -> None:
    with pytest.raises(TargetUnreachable):
        outbound.build_text(make_outgoing(address=Address(Platform.WHATSAPP, chat_id)))


@pytest.mark.parametrize(
    ("count", "length", "kind"),
    [(1, 10, "button"), (3, 1024, "button"), (3, 1025, "list"), (4, 10, "list"), (12, 4096, "list")],
)
def test_buttons_and_lists_keep_to_the_limits(count: int, length: int, kind: str) -> None:
    request = outbound.build_text(make_outgoing("x" * length, buttons=BUTTONS[:count]))
    assert check_request(request) == []
    assert request["interactive"]["type"] == kind


def test_reactions_and_the_sign_of_typing() -> None:
    assert check_request(outbound.build_reaction("4917011111111", "wamid.in1", "👀")) == []
    assert check_request(outbound.build_reaction("4917011111111", "wamid.in1", "")) == []
    assert check_request(outbound.build_typing("wamid.in1")) == []
    assert check_request(outbound.build_reply("4917011111111", "wamid.in1", "Stopped.")) == []


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [
        ("image/png", ("image", "image/png")),
        ("audio/ogg; codecs=opus", ("audio", "audio/ogg")),
        ("video/mp4", ("video", "video/mp4")),
        ("application/pdf", ("document", "application/pdf")),
        ("text/markdown", ("document", "text/plain")),
        ("application/json", ("document", "text/plain")),
    ],
)
def test_files_are_sent_as_what_they_are(media_type: str, expected: tuple[str, str]) -> None:
    file = make_file(media_type)
    assert outbound.choose_media(file) == expected
    request = outbound.build_media(make_outgoing("", file=file, reply_to="wamid.in1"), expected[0], "7001")
    assert check_request(request) == []


@pytest.mark.parametrize(
    ("media_type", "size", "reason"),
    [
        ("application/zip", 10, "takes no files of the type application/zip"),
        ("image/png", 6_000_000, "up to 5 MB"),
        ("video/mp4", 17_000_000, "up to 16 MB"),
    ],
)
def test_files_that_whatsapp_does_not_take_are_refused_in_words(media_type: str, size: int, reason: str) -> None:
    with pytest.raises(SendRejected, match=reason):
        outbound.choose_media(make_file(media_type, size))


# ---- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (GraphRefusal(400, 131047), TargetUnreachable),
        (GraphRefusal(400, 131026), TargetUnreachable),
        (GraphRefusal(400, 131030), TargetUnreachable),
        (GraphRefusal(400, 131056), SendRetryable),
        (GraphRefusal(400, 130429), SendRetryable),
        (GraphRefusal(429, None), SendRetryable),
        (GraphRefusal(401, 190), SendRetryable),
        (GraphRefusal(403, 10), SendRetryable),
        (GraphRefusal(403, 200), SendRetryable),
        (GraphRefusal(400, 100, 33), SendRetryable),
        (GraphRefusal(400, 100), SendRejected),
        (GraphRefusal(400, 131009), SendRejected),
        (GraphRefusal(400, 131053), SendRejected),
        (GraphRefusal(500, 131000), SendUncertain),
        (GraphRefusal(502, None), SendUncertain),
        (GraphRefusal(500, 2), SendUncertain),
    ],
)
def test_each_refusal_of_a_message_has_its_meaning(refusal: GraphRefusal, expected: type[Exception]) -> None:
    assert type(make_delivery_error(refusal)) is expected


def test_waits_are_those_of_whatsapp() -> None:
    person, account = (make_delivery_error(GraphRefusal(400, code)) for code in (131056, 130429))
    assert isinstance(person, SendRetryable)
    assert (person.retry_after, person.whole_account) == (6, False)
    assert isinstance(account, SendRetryable)
    assert account.whole_account


@pytest.mark.parametrize("code", [0, 3, 10, 190, 200, 299, 368, 131031, 133010])
def test_refusals_of_the_account_say_what_to_do(code: int) -> None:
    assert isinstance(make_platform_error(GraphRefusal(400, code)), AccountRefused)
    assert isinstance(make_platform_error(GraphRefusal(503, None)), ConnectionLost)


def test_what_fails_later_is_a_rejection_with_its_reason() -> None:
    window = make_late_error(GraphRefusal.from_error({"code": 131047, "title": "Re-engagement message"}))
    assert isinstance(window, TargetUnreachable)
    assert "24 hours" in str(window)
    rate = make_late_error(GraphRefusal.from_error({"code": 130429, "error_data": {"details": "Rate limit hit"}}))
    assert (type(rate), str(rate)) == (SendRejected, "WhatsApp could not deliver the message: Rate limit hit")


def test_every_code_of_sending_that_another_library_knows_is_decided() -> None:
    """No code becomes an uncertain delivery by accident: that happens only for Meta's own failures."""
    from pywa import errors

    families = (errors.SendMessageError, errors.ThrottlingError, errors.IntegrityError, errors.AuthorizationError)
    kinds: Any = [each for family in families for each in family.__subclasses__()]
    codes = {code for kind in kinds for code in kind.__error_codes__ or ()}
    assert len(codes) > 30
    uncertain = {code for code in codes if isinstance(make_delivery_error(GraphRefusal(400, code)), SendUncertain)}
    assert uncertain == {131000, 135000}
    throttles: Any = errors.ThrottlingError.__subclasses__()
    limits = {code for kind in throttles for code in kind.__error_codes__ or ()}
    waiting = {code for code in limits if isinstance(make_delivery_error(GraphRefusal(400, code)), SendRetryable)}
    assert limits - waiting <= {133016, 131064}  # of registering numbers, and of a day


def test_a_file_name_cannot_break_the_form() -> None:
    from palaver.platforms.whatsapp.client import _frame_upload

    head, _ = _frame_upload("b", 'a"\r\nContent-Type: text/html\r\n\r\n.txt', "text/plain")
    assert b'filename="a___Content-Type: text/html____.txt"' in head


def test_a_message_is_not_changed_by_building_it() -> None:
    message = make_outgoing("Hello")
    assert outbound.build_text(message) == outbound.build_text(replace(message))


@pytest.mark.parametrize(
    "change",
    [{"foo": 1}, {"to": "+49 170"}, {"type": "poem"}, {"text": {"body": "x" * 5000}}, {"context": {}}, {"text": {}}],
)
def test_the_local_server_refuses_what_meta_would_refuse(change: dict[str, Any]) -> None:
    assert check_request(outbound.build_text(make_outgoing("Hello")) | change) != []
