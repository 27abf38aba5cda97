"""The manifest on the page about Slack is one that Slack knows, and gives the app what it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from palaver.platforms.slack.directory import NEEDED_SCOPES

from .slack_types import list_manifest_problems

PAGE = Path(__file__).parents[3] / "docs" / "platforms" / "slack.md"


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    text = PAGE.read_text(encoding="utf-8")
    start = text.index("   ```yaml\n") + len("   ```yaml\n")
    read: dict[str, Any] = yaml.safe_load(text[start : text.index("   ```\n", start)])
    return read


def test_slack_knows_every_field_of_the_manifest(manifest: dict[str, Any]) -> None:
    assert list_manifest_problems(manifest) == []
    assert list_manifest_problems({**manifest, "settings": {"socket_mode": True}})


def test_the_manifest_asks_for_the_scopes_that_are_checked_at_the_start(manifest: dict[str, Any]) -> None:
    scopes = manifest["oauth_config"]["scopes"]["bot"]
    assert set(scopes) == {*NEEDED_SCOPES, "commands"}


def test_the_manifest_subscribes_to_what_the_adapter_reads(manifest: dict[str, Any]) -> None:
    events = set(manifest["settings"]["event_subscriptions"]["bot_events"])
    messages = {f"message.{kind}" for kind in ("channels", "groups", "im", "mpim")}
    others = {"app_mention", "reaction_added", "reaction_removed", "member_joined_channel", "member_left_channel"}
    assert messages | others | {"channel_left", "group_left", "tokens_revoked", "app_uninstalled"} == events
    assert manifest["settings"]["interactivity"]["is_enabled"]
    assert manifest["settings"]["socket_mode_enabled"]
