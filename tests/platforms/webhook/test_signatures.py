"""Signatures of webhooks are those of the specification, and anything else is refused."""

from __future__ import annotations

import pytest

from palaver.platforms.webhook.manifest import (
    SignatureRefused,
    compute_signature,
    read_key,
    sign_request,
    verify_request,
)

# The example of the specification Standard Webhooks.
KEY = read_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
MESSAGE_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
TIMESTAMP = 1614265330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
HEADERS = {"webhook-id": MESSAGE_ID, "webhook-timestamp": str(TIMESTAMP), "webhook-signature": SIGNATURE}


def test_a_signature_is_that_of_the_specification() -> None:
    assert compute_signature(KEY, MESSAGE_ID, str(TIMESTAMP), BODY) == SIGNATURE
    assert sign_request(KEY, MESSAGE_ID, TIMESTAMP + 0.9, BODY) == HEADERS


@pytest.mark.parametrize("drift", [0, 300, -300])
def test_a_signed_request_has_its_id(drift: int) -> None:
    assert verify_request(KEY, HEADERS, BODY, TIMESTAMP + drift) == MESSAGE_ID


def test_one_of_several_signatures_is_enough() -> None:
    headers = HEADERS | {"webhook-signature": f"v1a,something v1,wrong {SIGNATURE}"}
    assert verify_request(KEY, headers, BODY, TIMESTAMP) == MESSAGE_ID


def test_without_an_id_the_signature_is_the_id() -> None:
    headers = sign_request(KEY, "", TIMESTAMP, BODY)
    del headers["webhook-id"]
    assert verify_request(KEY, headers, BODY, TIMESTAMP) == headers["webhook-signature"]


@pytest.mark.parametrize(
    ("headers", "body", "now"),
    [
        pytest.param({}, BODY, TIMESTAMP, id="no headers"),
        pytest.param(HEADERS, BODY + b" ", TIMESTAMP, id="another body"),
        pytest.param(HEADERS | {"webhook-id": "msg_2"}, BODY, TIMESTAMP, id="another id"),
        pytest.param({**HEADERS, "webhook-id": ""}, BODY, TIMESTAMP, id="id removed"),
        pytest.param(HEADERS | {"webhook-timestamp": str(TIMESTAMP + 1)}, BODY, TIMESTAMP, id="another time"),
        pytest.param(HEADERS | {"webhook-timestamp": "²"}, BODY, TIMESTAMP, id="not a number"),
        pytest.param(HEADERS | {"webhook-timestamp": "9" * 1000}, BODY, TIMESTAMP, id="long number"),
        pytest.param(HEADERS | {"webhook-signature": SIGNATURE[3:]}, BODY, TIMESTAMP, id="no version"),
        pytest.param(HEADERS | {"webhook-signature": "v1,é"}, BODY, TIMESTAMP, id="not ASCII"),
        pytest.param(HEADERS | {"webhook-signature": "x " * 20 + SIGNATURE}, BODY, TIMESTAMP, id="too many"),
        pytest.param(HEADERS, BODY, TIMESTAMP + 301, id="too late"),
        pytest.param(HEADERS, BODY, TIMESTAMP - 301, id="too early"),
    ],
)
def test_anything_else_is_refused(headers: dict[str, str], body: bytes, now: float) -> None:
    with pytest.raises(SignatureRefused):
        verify_request(KEY, headers, body, now)
