"""Jobs over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.jobs import runs_table as job_runs, table as jobs
from palaver.jobs.model import JobRunState
from support.gateway import wait_until

if TYPE_CHECKING:
    import httpx2

    from support.web import WebServer


async def add_job(client: httpx2.AsyncClient, **fields: Any) -> dict[str, Any]:
    response = await client.post("/api/jobs", json={"prompt": "Water the plants", "schedule": "every 2h", **fields})
    assert response.status_code == 201, response.text
    job: dict[str, Any] = response.json()
    return job


@pytest.mark.both_engines
async def test_a_job_is_made_read_changed_and_deleted(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    job = await add_job(ada, schedule="0 7 * * MON-FRI", timezone="Europe/Vienna", repeat=3)
    assert (job["name"], job["state"], job["runs_left"]) == ("Water the plants", "active", 3)
    assert job["words"] == "every weekday at 07:00 (Europe/Vienna)"
    preview = job["preview"]
    slots = [datetime.fromisoformat(slot) for slot in preview["next_slots"]]
    assert len(slots) == 3
    assert slots == sorted(slots)
    assert job["next_slot"] == preview["next_slots"][0]
    assert preview["targets"] == [{"name": "origin", "words": "only the conversation of the run"}]
    assert [each["name"] for each in preview["toolsets"]] == ["history", "memory"]
    assert preview["runs_per_day"] == pytest.approx(5 / 7)
    url = f"/api/jobs/{job['id']}"
    changed = (await ada.patch(url, json={"schedule": "every 6h", "repeat": None, "name": "Garden"})).json()
    assert (changed["name"], changed["schedule"], changed["runs_left"]) == ("Garden", "every 6h", None)
    assert changed["next_slot"] != job["next_slot"]
    [listed] = (await ada.get("/api/jobs")).json()["jobs"]
    assert (listed["id"], listed["last_run"]) == (job["id"], None)
    assert (await ada.get(url)).json()["preview"]["runs_per_day"] == 4
    assert (await ada.delete(url)).status_code == 204
    assert (await ada.get(url)).status_code == 404


async def test_a_preview_stores_nothing_and_reading_moves_no_slot(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    body = {"prompt": "Water the plants", "schedule": "every 2h"}
    preview = await ada.post("/api/jobs/preview", json=body)
    assert preview.status_code == 200, preview.text
    assert (await ada.get("/api/jobs")).json()["jobs"] == []
    job = await add_job(ada)
    for path in ("", f"/{job['id']}", f"/{job['id']}/runs", "/options"):
        assert (await ada.get(f"/api/jobs{path}")).status_code == 200
    change = {"job_id": job["id"], "schedule": "every 12h"}
    assert (await ada.post("/api/jobs/preview", json=change)).json()["runs_per_day"] == 2
    again = (await ada.get(f"/api/jobs/{job['id']}")).json()
    assert (again["next_slot"], again["schedule"]) == (job["next_slot"], "every 2h")


async def test_a_second_job_of_the_same_name_is_refused(web: WebServer) -> None:
    ada, bob = await web.sign_in("ada"), await web.sign_in("bob")
    await add_job(ada, name="Plants")
    response = await ada.post("/api/jobs", json={"prompt": "x", "schedule": "every 2h", "name": "pLANTS"})
    assert response.status_code == 422
    assert "jobs edit" in response.text
    await add_job(bob, name="Plants")


INVALID_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"schedule": "sometimes"}, "every 2h"),
    ({"schedule": "* * * * *"}, "5 minutes"),
    ({"timezone": "Europe/Berlni"}, "Europe/Berlin"),
    ({"timezone": "Vienna"}, "Europe/Vienna"),
    ({"targets": ["telegram:-100"]}, "Valid targets: origin"),
    ({"targets": []}, "origin"),
    ({"toolsets": ["schedule"]}, "a job can't use schedule"),
    ({"toolsets": ["rockets"]}, "history, memory"),
    ({"profile": "unknown"}, "profile"),
    ({"prompt": "  "}, "prompt"),
    ({"name": "x" * 61}, "name"),
    ({"schedule": "2099-12-24 18:00"}, "ten years"),
    ({"schedule": "1h", "repeat": 2}, "one time only"),
]


async def test_an_invalid_field_is_refused_with_what_is_valid(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    for fields, expected in INVALID_FIELDS:
        body = {"prompt": "Water the plants", "schedule": "every 2h", **fields}
        for path in ("/api/jobs", "/api/jobs/preview"):
            response = await ada.post(path, json=body)
            assert (response.status_code, expected in response.text) == (422, True), response.text
    assert (await ada.get("/api/jobs")).json()["jobs"] == []


async def test_pausing_resuming_running_and_the_list_of_runs(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    job = await add_job(ada)
    url = f"/api/jobs/{job['id']}"
    paused = (await ada.post(f"{url}/pause")).json()
    assert (paused["state"], paused["next_slot"]) == ("paused", None)
    edited = (await ada.patch(url, json={"schedule": "every 3h"})).json()
    assert (edited["state"], edited["next_slot"]) == ("paused", None)
    resumed = (await ada.post(f"{url}/resume")).json()
    assert (resumed["state"], resumed["next_slot"] is None) == ("active", False)
    run = await ada.post(f"{url}/run")
    assert (run.status_code, run.json()["kind"]) == (202, "manual")
    [listed] = (await ada.get(f"{url}/runs")).json()["runs"]
    assert listed["id"] == run.json()["id"]
    assert (await ada.get(f"{url}/runs", params={"before": listed["slot"]})).json()["runs"] == []
    [summary] = (await ada.get("/api/jobs")).json()["jobs"]
    assert summary["last_run"]["id"] == listed["id"]
    assert summary["next_slot"] == resumed["next_slot"]


@pytest.mark.both_engines
async def test_a_run_shows_its_result_and_each_delivery_apart(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    job = await add_job(ada)
    await ada.post(f"/api/jobs/{job['id']}/run")
    engine = web.gateway.store.engine

    def end(tx: Any) -> None:
        job_row = jobs.get_any(tx, job["id"])
        run_row = job_runs.find_open(tx, job_row.no)
        assert run_row is not None
        job_runs.end_run(tx, run_row.no, JobRunState.FAILED, to_micros(datetime.now(UTC)), reason="It rained.")
        job_runs.set_target_errors(tx, run_row.no, {"local": "the disk is full"})

    await engine.arun(Write(end))
    [run] = (await ada.get(f"/api/jobs/{job['id']}/runs")).json()["runs"]
    assert (run["state"], run["reason"], run["result"]) == ("failed", "It rained.", None)
    assert run["target_errors"] == [{"target": "local", "error": "the disk is full"}]


async def test_a_run_answers_in_the_conversation_where_its_job_was_made(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    session_id = await web.create_conversation(ada, "hello")
    job = await add_job(ada, session_id=session_id)
    url = f"/api/jobs/{job['id']}"
    await ada.post(f"{url}/run")
    await web.gateway.scheduler.poll()

    engine = web.gateway.store.engine
    job_no = (await engine.arun(Read(lambda tx: jobs.get_any(tx, job["id"])))).no
    await wait_until(lambda: engine.run(Read(lambda tx: job_runs.find_open(tx, job_no))) is None)
    [run] = (await ada.get(f"{url}/runs")).json()["runs"]
    assert (run["state"], run["result"], run["target_errors"]) == ("done", "answer", [])
    events = (await ada.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    assert [event["message"]["content"] for event in events if event["message"]][2:] == ["Done."]
    own = (await ada.get(f"/api/sessions/{run['session_id']}/messages")).json()["events"]
    assert [event["message"]["content"] for event in own if event["message"]] == ["Water the plants", "Done."]
    assert (await ada.get(url)).json()["preview"]["next_slots"][0] == job["next_slot"]


async def test_an_owner_manages_other_peoples_jobs_only_with_all(web: WebServer) -> None:
    ada, owner = await web.sign_in("ada"), await web.sign_in()
    job = await add_job(ada)
    url = f"/api/jobs/{job['id']}"
    assert (await owner.get("/api/jobs")).json()["jobs"] == []
    assert (await owner.post(f"{url}/pause")).status_code == 404
    [listed] = (await owner.get("/api/jobs", params={"all": "true"})).json()["jobs"]
    assert (listed["id"], listed["person_name"]) == (job["id"], "ada")
    assert (await owner.post(f"{url}/pause", params={"all": "true"})).json()["state"] == "paused"
    assert (await owner.delete(url, params={"all": "true"})).status_code == 204
    assert (await ada.get(url)).status_code == 404


async def test_the_conversation_of_another_person_is_no_origin(web: WebServer) -> None:
    ada, bob = await web.sign_in("ada"), await web.sign_in("bob")
    session_id = await web.create_conversation(ada, "hello")
    body = {"prompt": "x", "schedule": "every 2h", "session_id": session_id}
    assert (await bob.post("/api/jobs", json=body)).status_code == 404
    job = await add_job(ada, session_id=session_id)
    assert job["origin_session_id"] == session_id
    assert job["preview"]["targets"][0]["words"] == "the conversation where the job was made"


async def test_a_token_without_the_chat_scope_makes_no_jobs(web: WebServer) -> None:
    reader = await web.open_token_client("read", "write")
    assert (await reader.get("/api/jobs")).status_code == 200
    response = await reader.post("/api/jobs", json={"prompt": "x", "schedule": "every 2h"})
    assert (response.status_code, "scope chat" in response.text) == (403, True)


async def test_new_jobs_use_the_time_zone_of_their_person(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    assert (await ada.get("/api/me")).json()["server_timezone"] == "UTC"
    wrong = await ada.patch("/api/me", json={"timezone": "Europe/Wien"})
    assert (wrong.status_code, "is not a time zone" in wrong.text) == (422, True)
    changed = await ada.patch("/api/me", json={"timezone": "europe/vienna"})
    assert (changed.json()["timezone"], changed.json()["name"]) == ("Europe/Vienna", "ada")
    assert (await ada.get("/api/jobs/options")).json()["timezone"] == "Europe/Vienna"
    assert (await add_job(ada))["timezone"] == "Europe/Vienna"
    assert (await ada.patch("/api/me", json={"timezone": None})).json()["timezone"] is None
    assert (await add_job(ada, name="other"))["timezone"] == "UTC"


async def test_a_person_without_access_has_no_active_jobs(web: WebServer) -> None:
    ada, owner = await web.sign_in("ada"), await web.sign_in()
    job = await add_job(ada)
    person_id = (await ada.get("/api/me")).json()["person"]["id"]
    assert (await owner.delete(f"/api/people/{person_id}")).is_success
    row = await web.gateway.store.engine.arun(Read(lambda tx: jobs.get_any(tx, job["id"])))
    assert (row.job.state, row.job.next_slot) == ("paused", None)
    response = await owner.post(f"/api/jobs/{job['id']}/resume", params={"all": "true"})
    assert response.status_code == 403
