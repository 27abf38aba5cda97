"""A home with conversations in it, and a terminal to look at them with."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from palaver import SessionSource, SessionStore, TurnUsage
from palaver.cli import program
from palaver.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass
class Home:
    """A home folder, what people say in it, and the `palaver` command on it."""

    ada = SessionSource("telegram", "100", user_id="100", user_name="Ada")
    bob = SessionSource("signal", "200", user_id="200", user_name="Bob")
    owner = SessionSource.local_cli()

    path: Path
    clock: FakeClock = field(default_factory=lambda: FakeClock(datetime.now(UTC)))

    @contextmanager
    def store(self) -> Iterator[SessionStore]:
        with SessionStore.open(self.path / "palaver.db", clock=self.clock) as store:
            yield store

    def said(
        self,
        *lines: str | Mapping[str, Any],
        source: SessionSource = ada,
        title: str | None = None,
        ago: timedelta = timedelta(),
        usage: TurnUsage | None = None,
    ) -> str:
        """A conversation of these messages, a person's and the agent's by turns; its id."""
        with self.store() as store:
            self.clock.set(datetime.now(UTC) - ago)
            session_id: str = store.get_or_create_session(source, force_new=True).session_id
            for number, line in enumerate(lines):
                if number % 2 == 0 and isinstance(line, str):
                    store.record_user_message(source, line)
                else:
                    store.append_to_transcript(session_id, line, usage=usage)
            if title is not None:
                store.rename_session(session_id, title)
        return session_id

    def __call__(self, *args: str | Path, code: int = 0, env: Mapping[str, str] | None = None) -> Result:
        """Run `palaver` with these arguments; it must leave with this exit code."""
        result = CliRunner(env=env).invoke(program, ["--home", str(self.path), *map(str, args)])
        assert not isinstance(result.exception, Exception), result.exception
        assert result.exit_code == code, result.output
        return result

    def text(self, *args: str | Path, **how: Any) -> str:
        """What `palaver` prints."""
        return self(*args, **how).stdout

    def json(self, *args: str | Path) -> Any:
        """What `palaver … --json` prints, as data."""
        return json.loads(self.text(*args, "--json"))

    def error(self, *args: str | Path, code: int) -> str:
        """What `palaver` complains about; nothing is printed besides."""
        result = self(*args, code=code)
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        return result.stderr

    def json_error(self, *args: str | Path, code: int) -> Any:
        """The same for programs."""
        result = self(*args, "--json", code=code)
        assert result.stdout == ""
        return json.loads(result.stderr)["error"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    for name in ("PALAVER_HOME", "PALAVER_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return Home(tmp_path / "home")
