"""What happens to the slots of a job: run, missed, or both."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from palaver import SessionSource
from palaver.core.ids import JobId, PersonId
from palaver.jobs.firing import MAX_COUNTED_SLOTS, FiringPlan, plan_firing
from palaver.jobs.model import Job, JobState

SLOT = datetime(2026, 11, 16, 7, tzinfo=UTC)


def make_job(schedule: str, **fields: Any) -> Job:
    values: dict[str, Any] = {
        "id": JobId("j_1"),
        "person_id": PersonId("p_1"),
        "name": "News",
        "prompt": "What is new?",
        "schedule": schedule,
        "timezone": "UTC",
        "anchor": SLOT - timedelta(days=7),
        "runs_left": None,
        "targets": ("origin",),
        "origin": SessionSource("telegram", "ada", user_id="ada"),
        "origin_session_id": None,
        "toolsets": (),
        "model": None,
        "profile": None,
        "state": JobState.ACTIVE,
        "state_reason": None,
        "proposed_change": None,
        "next_slot": SLOT,
        "failure_count": 0,
        "created_at": SLOT,
        "updated_at": SLOT,
    }
    return Job(**(values | fields))


def plan(schedule: str, late: timedelta, **fields: Any) -> FiringPlan:
    return plan_firing(make_job(schedule, **fields), SLOT + late)


@pytest.mark.parametrize(
    ("schedule", "late", "runs"),
    [
        # Half of the time to the next slot, from two minutes to two hours.
        ("0 7 * * *", timedelta(hours=2), True),
        ("0 7 * * *", timedelta(hours=2, seconds=1), False),
        ("every 1h", timedelta(minutes=30), True),
        ("every 1h", timedelta(minutes=30, seconds=1), False),
        ("*/5 * * * *", timedelta(minutes=2, seconds=30), True),
        ("*/5 * * * *", timedelta(minutes=2, seconds=31), False),
        ("0 7,8 * * *", timedelta(minutes=30, seconds=1), False),  # the next one is an hour later
        ("2026-11-16T07:00:00Z", timedelta(hours=2), True),
        ("2026-11-16T07:00:00Z", timedelta(hours=2, seconds=1), False),
    ],
)
def test_a_late_slot_is_run_once_or_missed(schedule: str, late: timedelta, runs: bool) -> None:
    planned = plan(schedule, late)
    assert planned.run_slot == (SLOT if runs else None)
    assert planned.missed_slot == (None if runs else SLOT)
    assert planned.missed_count == (0 if runs else 1)


def test_of_several_slots_the_newest_is_run_and_the_others_are_missed_together() -> None:
    planned = plan("every 1h", timedelta(hours=5, minutes=20))
    assert (planned.missed_slot, planned.missed_count) == (SLOT, 5)
    assert planned.run_slot == SLOT + timedelta(hours=5)
    assert planned.next_slot == SLOT + timedelta(hours=6)


def test_if_the_newest_is_too_late_as_well_all_are_missed() -> None:
    planned = plan("every 1h", timedelta(hours=5, minutes=40))
    assert (planned.missed_slot, planned.missed_count, planned.run_slot) == (SLOT, 6, None)
    assert planned.next_slot == SLOT + timedelta(hours=6)


@pytest.mark.parametrize("schedule", ["every 5m", "*/5 * * * *"])
def test_slots_are_counted_up_to_a_limit(schedule: str) -> None:
    planned = plan(schedule, timedelta(days=60, minutes=1))
    assert planned.missed_count == MAX_COUNTED_SLOTS + 1
    assert planned.run_slot == SLOT + timedelta(days=60)
    assert planned.next_slot == SLOT + timedelta(days=60, minutes=5)


def test_a_one_shot_has_no_next_slot() -> None:
    assert plan("2026-11-16T07:00:00Z", timedelta(0)).next_slot is None


def test_the_next_slot_follows_the_wall_clock_over_a_change_of_the_clocks() -> None:
    slot = datetime.fromisoformat("2026-10-24T07:00+02:00")
    planned = plan_firing(make_job("0 7 * * *", timezone="Europe/Berlin", next_slot=slot), slot)
    assert planned.next_slot == datetime.fromisoformat("2026-10-25T07:00+01:00")


@pytest.mark.parametrize("late", [timedelta(0), timedelta(days=3)])
def test_a_slot_that_new_rules_of_its_zone_have_moved_later_is_not_run_before_it(late: timedelta) -> None:
    stored = datetime.fromisoformat("2026-11-16T06:00+01:00")  # computed when 07:00 was an hour earlier
    planned = plan_firing(make_job("0 7 * * *", timezone="Europe/Berlin", next_slot=stored), stored + late)
    assert planned.run_slot is None
    assert planned.missed_count == late.days
    assert planned.next_slot == datetime.fromisoformat("2026-11-16T07:00+01:00") + late


def test_a_slot_that_new_rules_of_its_zone_have_moved_earlier_is_run_late() -> None:
    stored = datetime.fromisoformat("2026-11-16T08:00+01:00")
    planned = plan_firing(make_job("0 7 * * *", timezone="Europe/Berlin", next_slot=stored), stored)
    assert planned.run_slot == datetime.fromisoformat("2026-11-16T07:00+01:00")
    assert planned.missed_count == 0
    assert planned.next_slot == datetime.fromisoformat("2026-11-17T07:00+01:00")
