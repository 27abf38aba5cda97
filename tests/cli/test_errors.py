"""Tests of error messages and exit codes of the command line."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from palaver.cli import options
from palaver.cli.errors import run_and_get_exit_code
from palaver.core import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Home


def make_raising(error: BaseException) -> Callable[[], object]:
    def run() -> object:
        raise error

    return run


EXIT_CODES = [
    (errors.PalaverError, 1),
    (errors.InvalidInput, 1),
    (errors.InvalidTitle, 1),
    (errors.TitleTaken, 1),
    (errors.AmbiguousMatch, 1),
    (errors.NotFound, 3),
    (errors.SessionNotFound, 3),
    (errors.ProjectNotFound, 3),
    (errors.NotAllowed, 4),
    (errors.StoreError, 5),
    (errors.StoreBusy, 5),
    (errors.StoreFull, 5),
    (errors.StoreReadOnly, 5),
    (errors.StoreDamaged, 5),
    (errors.StoreUnavailable, 5),
    (errors.SchemaTooNew, 5),
    (errors.NothingToDo, 6),
    (errors.NothingToUndo, 6),
    (errors.NothingToRedo, 6),
    (errors.ConfigError, 7),
]


@pytest.mark.parametrize(("kind", "code"), EXIT_CODES)
def test_each_error_has_its_exit_code_and_prints_its_message(
    kind: type[errors.PalaverError], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_and_get_exit_code(make_raising(kind("the cat\nis out", where="garden")), as_json=False) == code
    assert capsys.readouterr().err == "error: the cat\n  is out\n"


def test_every_error_class_has_an_exit_code() -> None:
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.PalaverError)]
    required: dict[type[errors.PalaverError], dict[str, str]] = {errors.ChatMovedAway: {"new_chat_id": "x"}}
    raised = [kind("x", **required.get(kind, {})) for kind in classes]
    assert all(run_and_get_exit_code(make_raising(error), as_json=True) in range(1, 8) for error in raised)


def test_an_error_in_json_has_code_message_and_facts(capsys: pytest.CaptureFixture[str]) -> None:
    error = errors.SessionNotFound("not here", text="x", path=Path("/x"))
    assert run_and_get_exit_code(make_raising(error), as_json=True) == 3
    assert json.loads(capsys.readouterr().err) == {
        "error": {"code": "session_not_found", "message": "not here", "facts": {"text": "x", "path": "/x"}}
    }


def test_control_characters_in_an_error_are_removed(capsys: pytest.CaptureFixture[str]) -> None:
    run_and_get_exit_code(make_raising(errors.InvalidInput("bad \x1b[31mname\x07")), as_json=False)
    assert capsys.readouterr().err == "error: bad name\n"


def test_a_bug_in_palaver_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        run_and_get_exit_code(make_raising(ZeroDivisionError()), as_json=False)


def test_an_interrupt_exits_with_130(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "load_cli_settings", make_raising(KeyboardInterrupt()))
    assert "Traceback" not in home("sessions", "list", code=130).stderr
    assert home.get_json_error("sessions", "list", code=130)["code"] == "interrupted"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["sesions"], "'sessions'"),
        (["sessions", "lst"], "'list'"),
        (["projects", "colour"], "'color'"),
        (["sessions", "list", "--limt", "3"], "'--limit'"),
        (["sessions", "list", "--limit", "0"], "1<=x<=1000"),
        (["sessions", "list", "--archived", "--pinned"], "only one of --archived and --pinned"),
        (["sessions", "show"], "SESSION"),
        (["sessions", "show", "x", "--all", "--limit", "3"], "not both"),
        (["sessions", "show", "x", "--limit", "9" * 30], "--limit"),
        (["sessions", "undo", "x", "0"], "1<=x"),
        (["sessions", "undo", "x", "9" * 30], "TURNS"),
    ],
)
def test_a_usage_error_suggests_what_to_type_and_points_to_help(home: Home, args: list[str], text: str) -> None:
    error = home.get_error(*args, code=2)
    assert text in error
    assert "--help" in error


@pytest.mark.parametrize("command", [["sessions", "list"], ["sessions", "search", "x"]])
def test_an_invalid_cursor_is_named(home: Home, command: list[str]) -> None:
    assert "not a valid cursor" in home.get_error(*command, "--cursor", "9" * 30, code=1)


def test_a_usage_error_can_be_json(home: Home) -> None:
    assert home.get_json_error("sessions", "list", "--limt", "3", code=2)["code"] == "usage"


def test_a_group_without_a_command_prints_its_help(home: Home) -> None:
    result = home("sessions", code=2)
    assert result.stdout == ""
    assert "rename" in result.stderr


def test_a_damaged_database_is_named(home: Home) -> None:
    home.path.mkdir()
    (home.path / "palaver.db").write_text("this is not a database, whatever it says" * 100)
    assert "damaged" in home.get_error("sessions", "list", code=5)
    error = home.get_json_error("sessions", "list", code=5)
    assert (error["code"], error["facts"]["path"]) == ("store_damaged", str(home.path / "palaver.db"))


def test_a_path_that_cannot_hold_a_database_is_named(home: Home, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    env = {"PALAVER_DATABASE_URL": str(tmp_path / "file" / "palaver.db")}
    assert str(tmp_path / "file") in home("sessions", "list", code=5, env=env).stderr


def test_an_error_in_the_settings_is_reported_with_its_line(home: Home) -> None:
    home.path.mkdir()
    (home.path / "config.yaml").write_text("agent: main\nagnt: x\nsession_reset:\n  at_hour: 24\n")
    error = home.get_error("sessions", "list", code=7)
    assert "config.yaml:2: agnt" in error
    assert "config.yaml:4: session_reset.at_hour" in error
    assert len(home.get_json_error("projects", "list", code=7)["facts"]["problems"]) == 2


def test_a_database_of_a_newer_version_is_rejected(home: Home) -> None:
    home.add_conversation("hi")
    import apsw

    db = apsw.Connection(str(home.path / "palaver.db"))
    db.execute("INSERT INTO migration (name, applied_at) VALUES ('9999_future', 0)")
    db.close()
    assert "Upgrade Palaver" in home.get_error("sessions", "list", code=5)


def test_yes_skips_the_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click, "confirm", make_raising(AssertionError("asked")))
    options.confirm_or_exit("Really?", skip=True)


def test_an_interrupt_at_the_confirmation_deletes_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_abort(*_: object, **__: object) -> bool:
        raise click.Abort

    session_id = home.add_conversation("hi", title="talk")
    monkeypatch.setattr(options, "is_interactive", lambda: True)
    monkeypatch.setattr(click, "confirm", raise_abort)
    assert home("sessions", "delete", "talk", code=130).stdout == ""
    assert home.get_json("sessions", "show", "talk")["session"]["id"] == session_id
