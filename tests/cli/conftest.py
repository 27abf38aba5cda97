"""A home folder with conversations, and the `palaver` command on it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from palaver import SessionSource, SessionStore, TurnUsage
from palaver.cli.program import program
from palaver.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass
class Home:
    """A home folder with conversations of several people, and the `palaver` command on it."""

    ada = SessionSource("telegram", "100", user_id="100", user_name="Ada")
    bob = SessionSource("signal", "200", user_id="200", user_name="Bob")
    owner = SessionSource.local_cli()

    path: Path
    clock: FakeClock = field(default_factory=lambda: FakeClock(datetime.now(UTC)))

    @contextmanager
    def open_store(self) -> Iterator[SessionStore]:
        with SessionStore.open(self.path / "palaver.db", clock=self.clock) as store:
            yield store

    def add_conversation(
        self,
        *lines: str | Mapping[str, Any],
        source: SessionSource = ada,
        title: str | None = None,
        ago: timedelta = timedelta(),
        usage: TurnUsage | None = None,
    ) -> str:
        """Add a conversation with alternating messages of a person and the agent, and return its id."""
        with self.open_store() as store:
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
        """Run `palaver` with these arguments and check its exit code."""
        result = CliRunner(env=env).invoke(program, ["--home", str(self.path), *map(str, args)])
        assert not isinstance(result.exception, Exception), result.exception
        assert result.exit_code == code, result.output
        return result

    def get_text(self, *args: str | Path, **options: Any) -> str:
        """Run `palaver` and return what it prints."""
        return self(*args, **options).stdout

    def get_json(self, *args: str | Path) -> Any:
        """Run `palaver … --json` and return the document that it prints."""
        return json.loads(self.get_text(*args, "--json"))

    def get_error(self, *args: str | Path, code: int) -> str:
        """Run `palaver`, check that it prints only an error, and return it."""
        result = self(*args, code=code)
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        return result.stderr

    def get_json_error(self, *args: str | Path, code: int) -> Any:
        """Run `palaver … --json`, check that it prints only an error document, and return it."""
        result = self(*args, "--json", code=code)
        assert result.stdout == ""
        return json.loads(result.stderr)["error"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    for name in ("PALAVER_HOME", "PALAVER_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return Home(tmp_path / "home")
