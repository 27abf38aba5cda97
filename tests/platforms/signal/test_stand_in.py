"""The stand-in for signal-cli prints, takes and answers what the real one was recorded with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from palaver.platforms.signal.inbound import EventParser
from palaver.platforms.signal.linking import LinkedAccount
from palaver.sessions.inbound import Inbound

from .signal_checks import check_record, find_problem
from .signal_cli_record import SignalCliRecord, describe_fields, name_kind
from .signal_server import GROUP, OWN_ACI

if TYPE_CHECKING:
    from .signal_server import SignalServer

RECORD = SignalCliRecord.load()
NOTE = RECORD.events["sentMessage"]["envelope"]
OWN = LinkedAccount(aci=NOTE["sourceUuid"], number=NOTE["sourceNumber"], device_id=2, is_registered=True)


def print_events(server: SignalServer) -> dict[str, Any]:
    """Return an event of each kind, as the stand-in prints it."""
    server.push_text("Hello")
    mention = {"name": OWN_ACI, "number": None, "uuid": OWN_ACI, "start": 0, "length": 1}
    server.push_text("\ufffc hello", group=GROUP, mentions=[mention])
    server.push_sync("Remember this")
    return {name_kind(event): event for event in map(json.loads, server.pending)}


@pytest.mark.parametrize("kind", RECORD.events)
def test_an_event_has_the_same_fields(server: SignalServer, kind: str) -> None:
    recorded = RECORD.events[kind]
    problems: list[str] = []
    check_record("envelope", recorded["envelope"], problems)
    assert problems == []
    assert describe_fields(print_events(server)[kind]) == describe_fields(recorded)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("dataMessage", "Hello 👋"), ("dataMessage groupInfo", "hello group"), ("sentMessage", "Remember the milk")],
)
def test_a_recorded_event_is_a_message(kind: str, text: str) -> None:
    parser = EventParser(
        own=OWN,
        find_name=lambda _person: None,
        find_original=lambda ref: ref,
        open_file=lambda _file_id: pytest.fail("there is no file"),
    )
    [message] = parser.parse(RECORD.events[kind])
    assert isinstance(message, Inbound)
    assert (message.content, message.is_addressed) == (text, True)


@pytest.mark.parametrize("name", RECORD.answers)
def test_a_request_is_taken_and_answered_alike(server: SignalServer, name: str) -> None:
    method, parameters, result = (RECORD.answers[name][key] for key in ("method", "parameters", "result"))
    assert find_problem({"jsonrpc": "2.0", "id": "1", "method": method, "params": parameters}) is None
    if "editTimestamp" in parameters:
        first = server._handle("send", {key: value for key, value in parameters.items() if key != "editTimestamp"})
        parameters = parameters | {"editTimestamp": first["timestamp"]}
    assert describe_fields(server._handle(method, parameters)) == describe_fields(result)
