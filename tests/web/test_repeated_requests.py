"""A request that is repeated with its key: done once, and tried again if it was refused."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import TextDelta
from palaver.core import errors as domain_errors
from palaver.core.engines.base import Read
from palaver.core.errors import PalaverError, TooManyAttempts
from palaver.people.model import Role
from palaver.testing import ScriptedAgent
from palaver.web import openai as openai_errors
from palaver.web.errors import RequestRejected, build_retry_headers, get_error_status
from support.gateway import wait_until
from support.platform_gateway import SkippingClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWebServer, WebServer


class HeldAgent:
    """An agent whose answers wait until `go_on` is set."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.agent = ScriptedAgent(self._answer)

    async def _answer(self, _request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Well, ")
        await self.go_on.wait()
        yield TextDelta("yes.")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("undo", {}),
        ("retry", {}),
        ("edit", {"seq": 0, "content": "good day"}),
        ("compact", {}),
    ],
)
async def test_an_action_that_was_in_conflict_is_carried_out_when_it_is_repeated(
    start_web: StartWebServer, path: str, body: dict[str, Any]
) -> None:
    held = HeldAgent()
    web = await start_web(held.agent)
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner)
    url = f"/api/sessions/{session_id}"
    for number in range(4 if path == "compact" else 1):
        await owner.post(f"{url}/messages", json={"content": f"hello {number}", "key": f"m{number}"})
    events = (await owner.get(f"{url}/messages")).json()["events"]
    first_seq = next(event["seq"] for event in events if event["kind"] == "message")
    request = body | {"key": "once"} | ({"seq": first_seq} if "seq" in body else {})
    statuses = [(await owner.post(f"{url}/{path}", json=request)).status_code for _ in range(2)]
    assert statuses == [409, 409]
    held.go_on.set()
    await wait_until(lambda: not _has_open_turns(web))
    done = await owner.post(f"{url}/{path}", json=request)
    again = await owner.post(f"{url}/{path}", json=request)
    assert (done.is_success, again.status_code) == (True, done.status_code)
    receipts = [(each.json().get("receipt") or each.json()) for each in (done, again)]
    assert [receipt["outcome"] for receipt in receipts] == ["command", "duplicate"]
    assert receipts[1] | {"outcome": "", "facts": {}} == receipts[0] | {"outcome": "", "facts": {}, "turns_ahead": 0}


def _has_open_turns(web: WebServer) -> bool:
    count = "SELECT COUNT(*) FROM turn WHERE state IN ('queued', 'running')"
    return bool(web.gateway.store.engine.run(Read(lambda tx: tx.fetch_one(count)))[0])  # type: ignore[index]


async def test_a_message_refused_while_the_agent_is_busy_is_stored_when_it_is_repeated(
    start_web: StartWebServer,
) -> None:
    held = HeldAgent()
    web = await start_web(held.agent)
    owner = await web.sign_in()
    url = f"/api/sessions/{await web.create_conversation(owner)}/messages"
    await owner.post(url, json={"content": "one", "key": "one"})
    message = {"content": "two", "key": "k", "busy_policy": "reject"}
    outcomes = [(await owner.post(url, json=message)).json()["outcome"] for _ in range(2)]
    held.go_on.set()
    await wait_until(lambda: not _has_open_turns(web))
    outcomes += [(await owner.post(url, json=message)).json()["outcome"] for _ in range(2)]
    assert outcomes == ["rejected", "rejected", "accepted", "duplicate"]
    events = (await owner.get(url)).json()["events"]
    assert [event["message"]["content"] for event in events if event["kind"] == "message"].count("two") == 1


async def test_too_many_requests_get_429_with_the_time_to_wait_and_leave_no_receipt(start_web: StartWebServer) -> None:
    web = await start_web(rules={"messages_per_minute": {Role.MEMBER: 2}})
    ada = await web.sign_in("ada")
    session_id = (await ada.post("/api/sessions", json={})).json()["id"]
    for number in range(2):
        await ada.post(f"/api/sessions/{session_id}/messages", json={"content": "hello", "key": str(number)})
    for path in ("undo", "redo", "retry", "restore", "compact"):
        refused = await ada.post(f"/api/sessions/{session_id}/{path}", json={"key": "k"})
        assert (refused.status_code, refused.json()["error"]["facts"]["error"]) == (429, "too_many_messages")
        assert 0 < int(refused.headers["retry-after"]) <= 31
    assert _count_receipts(web, "k") == 0


def _count_receipts(web: WebServer, key: str) -> int:
    count = "SELECT COUNT(*) FROM inbound_message WHERE message_id = $1"
    return int(web.gateway.store.engine.run(Read(lambda tx: tx.fetch_one(count, key)))[0])  # type: ignore[index]


@pytest.mark.both_engines
async def test_a_job_is_run_once_for_each_key(web: WebServer) -> None:
    ada, bob = await web.sign_in("ada"), await web.sign_in("bob")
    fields = {"prompt": "Water the plants", "schedule": "every 3h"}
    jobs = [(await each.post("/api/jobs", json=fields)).json()["id"] for each in (ada, bob)]
    urls = [f"/api/jobs/{job}/run" for job in jobs]
    responses = await asyncio.gather(*(ada.post(urls[0], json={"key": "k"}) for _ in range(6)))
    assert {response.status_code for response in responses} == {202}
    assert len({response.json()["id"] for response in responses}) == 1
    conflict = await ada.post(urls[0], json={"key": "another"})
    assert (conflict.status_code, conflict.json()["error"]["code"]) == (422, "job_running")
    assert _count_receipts(web, "another") == 0
    assert (await bob.post(urls[0], json={"key": "k"})).status_code == 404
    assert (await bob.post(urls[1], json={"key": "k"})).json()["id"] != responses[0].json()["id"]
    assert len((await ada.get(f"/api/jobs/{jobs[0]}/runs")).json()["runs"]) == 1


def _list_errors(base: type[PalaverError] = PalaverError) -> list[type[PalaverError]]:
    return [each for child in base.__subclasses__() for each in (child, *_list_errors(child))]


def test_every_429_says_when_to_try_again() -> None:
    errors: list[PalaverError] = [RequestRejected("Slow down.", retry_after=3)]
    # Those of adapters never reach a route, and other tests may have loaded some of them.
    found = [each for each in _list_errors() if each.__module__.startswith(("palaver.core.", "palaver.web."))]
    errors += [each() for each in found if each is not domain_errors.ChatMovedAway]
    limited = [each for each in errors if 429 in (get_error_status(each), openai_errors.get_error_status(each))]
    assert {type(each) for each in limited} >= {RequestRejected, TooManyAttempts}
    assert all(int(build_retry_headers(each)["Retry-After"]) >= 1 for each in limited)


async def test_an_edit_in_a_branch_that_is_refused_for_its_rate_is_sent_once_in_one_branch(
    start_web: StartWebServer,
) -> None:
    clock = SkippingClock()
    web = await start_web(rules={"messages_per_minute": {Role.MEMBER: 1}}, clock=clock)
    ada = await web.sign_in("ada")
    session_id = await web.create_conversation(ada, "hello")
    events = (await ada.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    seq = next(event["seq"] for event in events if event["kind"] == "message")
    edit = {"seq": seq, "content": "good day", "key": "k", "branch": True}
    answers = [(await ada.post(f"/api/sessions/{session_id}/edit", json=edit)).json() for _ in range(2)]
    clock.skip(seconds=90)
    answers += [(await ada.post(f"/api/sessions/{session_id}/edit", json=edit)).json() for _ in range(2)]
    assert [each["receipt"]["outcome"] for each in answers] == ["rejected", "rejected", "accepted", "duplicate"]
    assert len({each["session"]["id"] for each in answers}) == 1
    branch = (await ada.get(f"/api/sessions/{answers[0]['session']['id']}/messages")).json()["events"]
    texts = [event["message"]["content"] for event in branch if event["kind"] == "message"]
    assert texts.count("good day") == 1
