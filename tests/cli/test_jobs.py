"""Tests of `palaver jobs` and of time zones in `palaver people`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.cli import options
from palaver.core.engines.base import Write
from palaver.people import table as people
from palaver.people.model import Role
from support.job_runs import insert_job

if TYPE_CHECKING:
    import pytest

    from cli.conftest import Home

ADD = ("jobs", "add", "0 7 * * MON-FRI", "Water the plants", "--timezone", "Europe/Vienna")


def test_a_job_is_shown_in_words_before_it_is_made(home: Home) -> None:
    assert "jobs add" in home.get_text("jobs", "list")
    result = home(*ADD, code=2)
    assert "--yes" in result.stderr
    assert "every weekday at 07:00 (Europe/Vienna)" in result.stdout
    assert "Estimated cost: free" in result.stdout
    assert result.stdout.count(" 07:00") == 4
    assert home.get_json("jobs", "list") == {"jobs": []}
    added = home(*ADD, "--yes")
    assert "Made the job 'Water the plants'" in added.stdout
    assert "serve" in added.stderr
    assert "jobs edit" in home(*ADD, "--yes", code=1).stderr


def test_the_answer_to_the_question_decides(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "is_interactive", lambda: True)
    monkeypatch.setattr("click.confirm", lambda *_args, **_options: False)
    assert "Nothing was changed" in home(*ADD, code=1).stderr
    assert home.get_json("jobs", "list") == {"jobs": []}
    monkeypatch.setattr("click.confirm", lambda *_args, **_options: True)
    assert "Made the job" in home.get_text(*ADD)


def test_every_command_in_turn(home: Home) -> None:
    job = home.get_json(*ADD, "--yes", "--tools", "none", "--to", "local", "--name", "Plants")["job"]
    assert (job["toolsets"], job["targets"], job["state"]) == ([], ["local"], "active")
    assert "Say what to change" in home("jobs", "edit", "plants", code=2).stderr
    edited = home.get_json("jobs", "edit", "plants", "--schedule", "every 6h", "--repeat", "3", "--yes")["job"]
    assert (edited["schedule"], edited["runs_left"]) == ("every 6h", 3)
    assert home.get_json("jobs", "pause", "plants")["job"]["state"] == "paused"
    assert "every 6 hours" in home.get_text("jobs", "resume", "plants")
    assert "Queued the run r_" in home.get_text("jobs", "run", "plants")
    assert "already running" in home.get_error("jobs", "run", "plants", code=1)
    assert "queued, started manually" in home.get_text("jobs", "history", "plants")
    [run] = home.get_json("jobs", "history", "plants")["runs"]
    assert (run["kind"], run["state"]) == ("manual", "queued")
    assert "a file on this machine" in home.get_text("jobs", "show", job["id"])
    nothing_to_confirm = home("jobs", "confirm", "plants", code=6)  # says so before it asks
    assert "The agent has proposed nothing" in nothing_to_confirm.stderr
    assert nothing_to_confirm.stdout == ""
    assert "The agent has proposed nothing" in home.get_error("jobs", "reject", "plants", code=6)
    assert "--yes" in home.get_error("jobs", "remove", "plants", code=2)
    assert home.get_json("jobs", "remove", "plants", "--yes")["deleted"]["id"] == job["id"]
    assert "not found" in home.get_error("jobs", "show", job["id"], code=3)


def test_jobs_of_others_need_all_and_an_id(home: Home) -> None:
    with home.open_store() as store:
        job = insert_job(store, home.ada, "every 2h", name="Secret", timezone="UTC").job
    assert home.get_json("jobs", "list") == {"jobs": []}
    for verb in (["show"], ["pause"], ["resume"], ["run"], ["remove", "--yes"], ["history"], ["confirm", "--yes"]):
        for name in (job.id, "Secret"):
            hidden = home("jobs", *verb, name, code=3).stderr
            assert hidden == home("jobs", *verb, "j_00000000", code=3).stderr.replace("j_00000000", name)
    [listed] = home.get_json("jobs", "list", "--all")["jobs"]
    assert (listed["id"], listed["person_name"]) == (job.id, "Ada")
    assert "Ada" in home.get_text("jobs", "list", "--all")
    assert home.get_json("jobs", "pause", job.id, "--all")["job"]["state"] == "paused"


def test_the_time_zone_of_a_person(home: Home) -> None:
    home.add_conversation("hello")
    with home.open_store() as store:
        person = store.get_or_create_person(home.ada)
        store.engine.run(Write(lambda tx: people.set_role(tx, person.id, Role.MEMBER)))
    assert "Europe/Berlin" in home.get_error("people", "timezone", "Ada", "Berlin", code=1)
    changed = home.get_json("people", "timezone", "Ada", "Europe/Berlin")["person"]
    assert changed["timezone"] == "Europe/Berlin"
    assert "the gateway's" in home.get_text("people", "timezone", "Ada", "default")
    home("people", "timezone", "owner", "Europe/Vienna")
    assert "Europe/Vienna" in home.get_text("people", "list")
    assert home.get_json("jobs", "add", "every 2h", "x", "--yes")["job"]["timezone"] == "Europe/Vienna"
