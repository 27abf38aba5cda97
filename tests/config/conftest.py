"""Fixtures that load settings from the text of a config.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from palaver.config import Settings, load_settings, settings
from palaver.config.environment import find_machine_timezone
from palaver.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

FULL_CONFIG = """\
database_url: talk.db
timezone: Europe/Berlin
session_reset: {mode: both, idle_minutes: 60, at_hour: 5, notify: false}
reset_by_platform:
  telegram: {mode: idle, timezone: Asia/Tokyo}
reset_by_type:
  group:
    mode: daily
sessions:
  group_per_user: false
  thread_per_user: yes
  dm_scope: person
privacy:
  redact_pii: true
agent: helper
model: openai:gpt-5
fallback_models: [ollama:llama3:8b, local, local:models/small.gguf]
models_by_role:
  member: [openai:gpt-5-mini, "ollama:*", local:models/small.gguf]
  guest: []
context_windows:
  ollama:llama3:8b: 8192
prices:
  workshop:qwen3: {input: 0.10, output: 1}
instructions: Be brief.
providers:
  openai: {api_key: 007, base_url: https://eu.example.org/v1}
  google: {api_key: from-the-file}
  workshop:
mcp_servers:
  files:
    command: npx
    args: [-y, 8080]
    env: {DEBUG: yes, EMPTY: ""}
  Calendar:
    url: http://127.0.0.1:9000/mcp?room=1
    headers: {X-Room: 0x1F}
  old: {command: gone, enabled: false}
turns:
  {max_running: 256, max_running_per_person: 1, max_queued: 1000,
   busy_policy: steer, merge_window_seconds: 1.5, timeout_minutes: 1440}
toolsets:
  memory: {platforms: [telegram, irc], roles: [owner, guest]}
  history: {enabled: false}
people:
  messages_per_minute: {owner: 600, member: null}
  guest_commands: [help, new]
platforms:
  telegram:
    enabled: true
    busy_policy: interrupt
    access: everyone
    allowed_users: [007, 123]
    home_channel: {chat_id: -100123, name: 2026, thread_id: 007}
    settings:
      bot_token: "123:abc"
      nested: {deep: [1, two]}
  slack:
    enabled: false
    home_channel:
      chat_id: C1
      thread_id: 1712345678.123400
  irc:
"""


class LoadSettings(Protocol):
    """Loads the settings from the text of a config.yaml."""

    def __call__(self, text: str | bytes, **environ: str) -> Settings: ...


class FindProblems(Protocol):
    """Returns the problems that are reported for an invalid config.yaml."""

    def __call__(self, text: str | bytes, **environ: str) -> list[str]: ...


@pytest.fixture(autouse=True)
def ignore_time_zone_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(settings, "find_machine_timezone", lambda environ: find_machine_timezone(environ, tmp_path))


@pytest.fixture
def full_config() -> str:
    """A config.yaml with every section."""
    return FULL_CONFIG


@pytest.fixture
def load(tmp_path: Path) -> LoadSettings:
    def load_text(text: str | bytes, **environ: str) -> Settings:
        (tmp_path / "config.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_settings(environ, tmp_path)

    return load_text


@pytest.fixture
def find_problems(tmp_path: Path, load: LoadSettings) -> FindProblems:
    def find(text: str | bytes, **environ: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load(text, **environ)
        assert caught.value.facts["file"] == str(tmp_path / "config.yaml")
        return str(caught.value).split("\n")

    return find
