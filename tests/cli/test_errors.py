"""What goes wrong at the terminal: what is said, and the exit code."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from palaver.cli import options
from palaver.cli.errors import exit_code_of
from palaver.domain import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Home


def raising(error: BaseException) -> Callable[[], object]:
    def run() -> object:
        raise error

    return run


CODES = [
    (errors.PalaverError, 1),
    (errors.InvalidInput, 1),
    (errors.InvalidTitle, 1),
    (errors.TitleTaken, 1),
    (errors.Ambiguous, 1),
    (errors.NotFound, 3),
    (errors.NoSuchSession, 3),
    (errors.NoSuchProject, 3),
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


@pytest.mark.parametrize(("kind", "code"), CODES)
def test_each_error_has_its_exit_code_and_says_its_message(
    kind: type[errors.PalaverError], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(raising(kind("the cat\nis out", where="garden")), as_json=False) == code
    assert capsys.readouterr().err == "error: the cat\n  is out\n"


def test_every_error_of_the_tree_has_a_code_of_its_own_class_or_above() -> None:
    tree = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.PalaverError)]
    assert all(exit_code_of(raising(kind("x")), as_json=True) in range(1, 8) for kind in tree)


def test_an_error_in_json_carries_code_message_and_facts(capsys: pytest.CaptureFixture[str]) -> None:
    error = errors.NoSuchSession("not here", text="x", path=Path("/x"))
    assert exit_code_of(raising(error), as_json=True) == 3
    assert json.loads(capsys.readouterr().err) == {
        "error": {"code": "no_such_session", "message": "not here", "facts": {"text": "x", "path": "/x"}}
    }


def test_control_characters_in_an_error_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    exit_code_of(raising(errors.InvalidInput("bad \x1b[31mname\x07")), as_json=False)
    assert capsys.readouterr().err == "error: bad name\n"


def test_a_mistake_of_ours_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        exit_code_of(raising(ZeroDivisionError()), as_json=False)


def test_an_interrupt_leaves_with_130(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "settings_of", lambda _: raising(KeyboardInterrupt())())
    assert "Traceback" not in home("sessions", "list", code=130).stderr
    assert home.json_error("sessions", "list", code=130)["code"] == "interrupted"


# -- from outside --------------------------------------------------------------------------------------------


def test_an_unknown_session_is_looked_for_nearby(home: Home) -> None:
    session_id = home.said("hi", title="Trip to Lisbon")
    home.said("hi", title="Garden")
    for slip in ("trip to lisbn", "lisbon", session_id[-8:]):
        assert f"no session matches '{slip}'; did you mean 'Trip to Lisbon' ({session_id})?" in home.error(
            "sessions", "show", slip, code=3
        )
    error = home.json_error("sessions", "show", "lisbon", code=3)
    assert error["facts"]["suggestions"] == [{"id": session_id, "title": "Trip to Lisbon"}]
    assert "sessions list" in home.error("sessions", "show", "zzz", code=3)


@pytest.mark.parametrize("text", ["", " ", "\x07", "x" * 300, "#1", "%", "'"])
def test_any_text_at_all_is_a_name_that_is_not_there(home: Home, text: str) -> None:
    home.said("hi", title="talk")
    assert "no session matches" in home.error("sessions", "show", text, code=3)


def test_without_conversations_an_unknown_session_says_so(home: Home) -> None:
    assert "no conversations yet" in home.error("sessions", "show", "abc", code=3)


def test_only_what_is_visible_is_suggested(home: Home) -> None:
    home.said("hi", title="Secret plans")
    assert "Secret" not in home.error("sessions", "show", "secret plan", "--mine", code=3)


def test_several_matches_are_listed(home: Home) -> None:
    ids = [home.said("hi", title=f"talk {number}") for number in range(2)]
    error = home.error("sessions", "show", ids[0][:6], code=1)
    for number, session_id in enumerate(ids):
        assert f"{session_id}  'talk {number}'" in error
    assert set(home.json_error("sessions", "show", ids[0][:6], code=1)["facts"]["matches"]) == set(ids)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["sesions"], "'sessions'"),
        (["sessions", "lst"], "'list'"),
        (["projects", "color"], "'colour'"),
        (["sessions", "list", "--limt", "3"], "'--limit'"),
        (["sessions", "list", "--limit", "0"], "1<=x<=1000"),
        (["sessions", "list", "--archived", "--pinned"], "choose one"),
        (["sessions", "show"], "SESSION"),
        (["sessions", "show", "x", "--all", "--limit", "3"], "choose one"),
        (["sessions", "show", "x", "--limit", "9" * 30], "--limit"),
        (["sessions", "search", "x", "--before", "9" * 30], "--before"),
        (["sessions", "undo", "x", "0"], "1<=x"),
        (["sessions", "undo", "x", "9" * 30], "TURNS"),
    ],
)
def test_a_slip_on_the_command_line_is_answered_with_help(home: Home, args: list[str], said: str) -> None:
    error = home.error(*args, code=2)
    assert said in error
    assert "--help" in error


def test_a_slip_on_the_command_line_is_json_for_programs(home: Home) -> None:
    assert home.json_error("sessions", "list", "--limt", "3", code=2)["code"] == "usage"


def test_a_noun_alone_shows_what_can_be_done_with_it(home: Home) -> None:
    result = home("sessions", code=2)
    assert result.stdout == ""
    assert "rename" in result.stderr


def test_a_damaged_database_is_named(home: Home) -> None:
    home.path.mkdir()
    (home.path / "palaver.db").write_text("this is not a database, whatever it says" * 100)
    assert "damaged" in home.error("sessions", "list", code=5)
    error = home.json_error("sessions", "list", code=5)
    assert (error["code"], error["facts"]["path"]) == ("store_damaged", str(home.path / "palaver.db"))


def test_a_place_where_no_database_can_be_is_named(home: Home, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    env = {"PALAVER_DATABASE_URL": str(tmp_path / "file" / "palaver.db")}
    assert str(tmp_path / "file") in home("sessions", "list", code=5, env=env).stderr


def test_a_mistake_in_the_settings_is_named_with_its_line(home: Home) -> None:
    home.path.mkdir()
    (home.path / "config.yaml").write_text("agent: main\nagnt: x\nsession_reset:\n  at_hour: 24\n")
    error = home.error("sessions", "list", code=7)
    assert "config.yaml:2: agnt" in error
    assert "config.yaml:4: session_reset.at_hour" in error
    assert len(home.json_error("projects", "list", code=7)["facts"]["mistakes"]) == 2


def test_a_newer_database_is_refused(home: Home) -> None:
    home.said("hi")
    import apsw

    db = apsw.Connection(str(home.path / "palaver.db"))
    db.execute("INSERT INTO migration (name, applied_at) VALUES ('9999_future', 0)")
    db.close()
    assert "upgrade" in home.error("sessions", "list", code=5)


def test_yes_means_that_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click, "confirm", raising(AssertionError("asked")))
    options.ask_first("Really?", yes=True)


def test_an_interrupt_at_a_question_deletes_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> bool:
        raise click.Abort

    session_id = home.said("hi", title="talk")
    monkeypatch.setattr(options, "can_ask", lambda: True)
    monkeypatch.setattr(click, "confirm", interrupted)
    assert home("sessions", "delete", "talk", code=130).stdout == ""
    assert home.json("sessions", "show", "talk")["session"]["id"] == session_id
