"""Every version of the schema of `state.db`, from v6 to v22."""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMAS = sorted((Path(__file__).parent / "fixtures" / "schemas").glob("v*.sql"))


def test_all_versions_are_there() -> None:
    assert [path.stem for path in SCHEMAS] == [f"v{number:02}" for number in range(6, 23)]


@pytest.mark.parametrize("script", SCHEMAS, ids=lambda path: path.stem)
def test_a_database_of_each_version_is_read(script: Path, tmp_path: Path, read_folder: Callable[[Path], Any]) -> None:
    with closing(apsw.Connection(str(tmp_path / "state.db"))) as db:
        db.execute(script.read_text(encoding="utf-8"))
    home = read_folder(tmp_path)
    assert home.texts("20260304_060000_aaaaaa") == [
        ["user", "Turn on the light"],
        ["tool", "ok"],
        ["assistant", "Done."],
        ["user", "And the other"],
        ["assistant", "Done."],
        ["user", "All off"],
        ["assistant", "They are off."],
    ]
    assert home.compactions("20260304_060000_aaaaaa") == [("Two lights are on.", 2)]
    lights = home.conversation("20260304_060000_aaaaaa")
    assert (lights.title, lights.source.platform, lights.source.user_id) == ("Lights", "telegram", "111")
    (usage,) = lights.usage
    assert (usage.model, usage.provider, usage.input_tokens, usage.cost) == ("gpt-5", "openai", 150, Decimal("0.75"))
    assert home.texts("20260304_080000_cccccc") == [["user", "Hello"], ["assistant", "Hi."]]
    assert home.problems == []
