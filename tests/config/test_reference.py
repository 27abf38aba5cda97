"""The settings page of the reference says what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from palaver.config import VARIABLES, known_keys
from palaver.domain.gateway_config import HomeChannel
from palaver.domain.person import Role
from palaver.domain.source import ChatType, Platform

if TYPE_CHECKING:
    from config.conftest import Load

REFERENCE = Path(__file__).parents[2] / "docs/reference/settings.md"


def test_every_key_and_variable_is_documented() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    names = [*known_keys(), "PALAVER_HOME", *(variable.name for variable in VARIABLES)]
    assert [name for name in names if f"\n| `{name}` |" not in text] == []


def test_nothing_is_documented_that_does_not_exist() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    names = {*known_keys(), "PALAVER_HOME", *(variable.name for variable in VARIABLES)}
    assert [row for row in rows if row not in names] == []


def test_the_documented_key_of_a_variable_is_the_one_it_wins_over() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert [one.name for one in VARIABLES if f"| `{one.name}` | `{one.key}`" not in text] == []


def test_the_documented_example_is_a_valid_file(load: Load) -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", REFERENCE.read_text(encoding="utf-8"), re.DOTALL)
    settings = load(example)
    config = settings.gateway
    assert config.reset_by_type[ChatType.GROUP].at_hour == 5
    assert config.home_for("telegram") == HomeChannel(Platform.TELEGRAM, "-1001234567890", "Family")
    assert set(settings.agent.mcp_servers) == {"files", "calendar"}
    assert settings.turns.toolsets["memory"].roles == {Role.OWNER}
