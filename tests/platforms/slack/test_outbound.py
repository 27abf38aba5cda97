"""What an answer becomes on Slack, and what Slack's refusals mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.platforms.slack.directory import NEEDED_SCOPES, describe_missing_scopes
from palaver.platforms.slack.failures import (
    ApiRefusal,
    SlackUnreachable,
    make_delivery_error,
    make_platform_error,
)
from palaver.platforms.slack.outbound import (
    build_blocks,
    build_fallback_text,
    build_metadata,
    find_emoji_name,
    read_emoji,
    read_key,
)
from palaver.sessions.delivery import Button

from .slack_server import SCOPES
from .slack_types import list_request_problems

if TYPE_CHECKING:
    from palaver.platforms.common.failures import RequestError


def test_an_answer_is_a_markdown_block_with_buttons_below() -> None:
    blocks = build_blocks(
        "# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |", [Button("Stop", "stop:t_1"), Button("Retry", "r")]
    )
    message = {"channel": "C1", "text": "x", "blocks": blocks, "metadata": build_metadata("d_1.1")}
    assert list_request_problems("chat.postMessage", message) == []
    assert [block["type"] for block in blocks] == ["markdown", "actions"]
    assert [each["value"] for each in blocks[1]["elements"]] == ["stop:t_1", "r"]
    assert len({each["action_id"] for each in blocks[1]["elements"]}) == 2


@pytest.mark.parametrize("mention", ["<!channel>", "<!here>", "<!EVERYONE|x>", "<!subteam^S1>"])
def test_an_answer_never_notifies_a_whole_channel(mention: str) -> None:
    [block] = build_blocks(f"hello {mention}")
    assert mention not in block["text"]
    assert mention[1:] in block["text"]
    assert "<" not in build_fallback_text(f"hello {mention}")


def test_comments_and_tags_stay_as_they_are() -> None:
    [block] = build_blocks("<!-- note --> <!DOCTYPE html>")
    assert block["text"] == "<!-- note --> <!DOCTYPE html>"


@pytest.mark.parametrize(
    ("markdown", "text"),
    [("**Good** [page](https://example.org)", "Good page"), ("a < b & c", "a &lt; b &amp; c"), ("---", "---")],
)
def test_notifications_show_plain_text(markdown: str, text: str) -> None:
    assert build_fallback_text(markdown) == text


def test_the_key_of_a_message_is_read_back() -> None:
    assert read_key({"metadata": build_metadata("d_1.2")}) == "d_1.2"
    assert read_key({"metadata": {"event_type": "other", "event_payload": {"key": "d_1.2"}}}) is None
    assert read_key({}) is None


def test_emoji_have_names_in_both_directions() -> None:
    assert (find_emoji_name("👀"), find_emoji_name("❤"), find_emoji_name("❤️")) == ("eyes", "heart", "heart")
    assert (find_emoji_name(":party_parrot:"), find_emoji_name("🦜")) == ("party_parrot", None)
    assert read_emoji(find_emoji_name("✅") or "") == "✅"


# ---- failures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ApiRefusal("ratelimited", 429, retry_after=7), SendRetryable, "7 seconds"),
        (ApiRefusal("channel_not_found"), TargetUnreachable, "/invite"),
        (ApiRefusal("not_in_channel"), TargetUnreachable, "/invite"),
        (ApiRefusal("is_archived"), TargetUnreachable, "archived"),
        (ApiRefusal("messages_tab_disabled"), TargetUnreachable, "Messages Tab"),
        (ApiRefusal("token_revoked"), SendRetryable, "OAuth & Permissions"),
        (ApiRefusal("missing_scope", needed="files:write"), SendRejected, "files:write"),
        (ApiRefusal("invalid_blocks"), SendRejected, "invalid_blocks"),
        (ApiRefusal("fatal_error"), SendUncertain, "fatal_error"),
        (ApiRefusal("HTTP status 503", 503), SendUncertain, "503"),
        (ApiRefusal("", 200), SendUncertain, "HTTP status 200"),  # not an answer of Slack's
        (ApiRefusal("", 403), SendRejected, "HTTP status 403"),
        (SlackUnreachable("the connection broke", may_have_arrived=True), SendUncertain, "broke"),
        (
            SlackUnreachable("no connection", may_have_arrived=False),
            SendRetryable,
            "network connection of this machine (no connection)",
        ),
    ],
)
def test_a_failed_message_says_what_happened(error: RequestError, kind: type[Exception], words: str) -> None:
    made = make_delivery_error(error)
    assert type(made) is kind
    assert words in str(made)


def test_what_can_be_repeated_is_never_uncertain() -> None:
    assert isinstance(make_delivery_error(ApiRefusal("fatal_error"), is_repeatable=True), SendRetryable)
    assert isinstance(
        make_delivery_error(SlackUnreachable("broke", may_have_arrived=True), is_repeatable=True), SendRetryable
    )


@pytest.mark.parametrize("code", ["invalid_auth", "token_revoked", "account_inactive"])
def test_a_token_that_slack_refuses_stops_the_whole_account(code: str) -> None:
    assert isinstance(make_platform_error(ApiRefusal(code)), AccountRefused)
    error = make_delivery_error(ApiRefusal(code))
    assert isinstance(error, SendRetryable)
    assert error.whole_account


def test_other_failures_to_connect_are_tried_again() -> None:
    assert isinstance(make_platform_error(ApiRefusal("ratelimited", 429)), ConnectionLost)
    assert isinstance(make_platform_error(SlackUnreachable("no connection", may_have_arrived=False)), ConnectionLost)


# ---- scopes --------------------------------------------------------------------------------------------------


def test_missing_scopes_are_named_with_their_use_and_the_clicks_to_add_them() -> None:
    assert describe_missing_scopes(frozenset(SCOPES.split(","))) is None
    assert describe_missing_scopes(None) is None
    warning = describe_missing_scopes(frozenset(NEEDED_SCOPES) - {"files:read", "reactions:write"})
    assert warning is not None
    assert "scopes files:read (to open files that people send), reactions:write (to react" in warning
    assert "Reinstall to Workspace" in warning
