"""Jobs that the agent proposes: nothing runs before their person has confirmed, and no other person can."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Platform, SessionSource
from palaver.accounts.merge_table import merge_people
from palaver.agent.base import TextDelta, ToolCall, ToolFailed, ToolResult
from palaver.core.engines.base import Read, Write
from palaver.core.errors import NothingToDo
from palaver.delivery.model import Capabilities
from palaver.jobs import table as job_proposals
from palaver.jobs.model import JobState
from palaver.people import account_table as accounts, table as people
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter
from palaver.sessions import activity_table as session_activity
from palaver.sessions.context import Redactor
from palaver.sessions.conversations import build_person_source
from palaver.sessions.events import EventKind
from palaver.sessions.inbound import ButtonPressed, Inbound, Outcome
from palaver.testing import ScriptedAgent
from support.gateway import ask, load_texts, make_member, send_message, wait_for_turn, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.core.engines.base import Transaction
    from palaver.gateway.gateway import Gateway
    from support.gateway import StartGateway

WATER = {"name": "Water plants", "prompt": "Remind me to water the plants.", "schedule": "0 7 * * MON-FRI"}


class ToolCaller:
    """An agent that calls the tool which the last message names, with the arguments of the message."""

    def __init__(self) -> None:
        self.agent = ScriptedAgent(self._answer)
        self.results: list[str] = []

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        name, _, arguments = request.messages[-1]["content"].rpartition("] ")[2].partition(" ")
        tool = next((tool for tool in request.tools if tool.name == name), None)
        yield ToolCall("c1", name, arguments)
        try:
            if tool is None:
                raise ToolFailed(f"There is no tool {name!r}.")
            result = ToolResult("c1", name, await tool.run(json.loads(arguments or "{}")))
        except ToolFailed as error:
            result = ToolResult("c1", name, str(error), failed=True)
        self.results.append(result.content)
        yield result
        yield TextDelta("Done.")


def make_source(user: str = "ada", chat: str | None = None) -> SessionSource:
    if chat is None:
        return SessionSource(LOOPBACK, user, user_id=user, user_name=user.title())
    return SessionSource(LOOPBACK, chat, chat_type="group", chat_name=chat, user_id=user, user_name=user.title())


async def call(gateway: Gateway, source: SessionSource, tool: str, **arguments: Any) -> str:
    """Let the agent call a tool for a person, and return the id of the conversation."""
    turn = await ask(gateway, source, f"{tool} {json.dumps(arguments)}")
    return turn.session_id


def list_jobs(gateway: Gateway) -> list[Any]:
    query = "SELECT name, schedule, state, proposed_change IS NOT NULL FROM job ORDER BY no"
    return gateway.store.engine.run(Read(lambda tx: tx.fetch_all(query)))


def find_job_id(gateway: Gateway) -> str:
    return str(gateway.store.engine.run(Read(lambda tx: tx.fetch_all("SELECT id FROM job")))[0][0])


def find_button(gateway: Gateway, action: str) -> str:
    """Return the data of a button under the newest question."""
    [(job_id, asked_at)] = gateway.store.engine.run(Read(lambda tx: tx.fetch_all("SELECT id, proposed_at FROM job")))
    return f"{action}:{job_id}:{asked_at}"


def list_job_events(gateway: Gateway, session_id: str) -> list[Any]:
    kinds = {EventKind.JOB_PROPOSED, EventKind.JOB_CONFIRMED, EventKind.JOB_REJECTED}
    return [event for event in gateway.store.load_events(session_id) if event.kind in kinds]


async def press(gateway: Gateway, data: str, source: SessionSource, press_id: str = "p1") -> Any:
    update = ButtonPressed(source=source, message_id="1", data=data, press_id=press_id)
    return await gateway.inbox.accept(update)


@pytest.fixture
def caller() -> ToolCaller:
    return ToolCaller()


@pytest.fixture
def loopback() -> LoopbackAdapter:
    return LoopbackAdapter(capabilities=Capabilities(max_buttons=3))


@pytest.mark.both_engines
async def test_a_job_that_the_agent_makes_waits_for_the_person(
    start_gateway: StartGateway, caller: ToolCaller, loopback: LoopbackAdapter
) -> None:
    gateway, ada = await start_gateway(caller.agent, loopback=loopback), make_source()
    await make_member(gateway.store, ada)
    session_id = await call(gateway, ada, "create_job", **WATER, timezone="Europe/Vienna")
    assert list_jobs(gateway) == [("Water plants", "0 7 * * MON-FRI", "proposed", 0)]
    [result] = caller.results
    assert "Proposed, and not active yet" in result
    assert "every weekday at 07:00 (Europe/Vienna)" in result
    assert "Tools: none" in result
    [event] = list_job_events(gateway, session_id)
    job_id = find_job_id(gateway)
    assert event.facts["job_id"] == job_id
    assert len(event.facts["next_slots"]) == 3
    assert event.facts["toolsets"] == []
    notice = await wait_until(lambda: next((each for each in loopback.sent if each.buttons), None))
    assert [(button.label, button.data) for button in notice.buttons] == [
        ("Confirm", find_button(gateway, "confirm")),
        ("Reject", find_button(gateway, "reject")),
    ]
    assert "Create the job “Water plants”?" in notice.body
    assert "- Sends to: this chat\n" in notice.body
    assert "/jobs confirm Water plants" in notice.body  # for platforms without buttons
    assert "button" not in notice.body

    button = find_button(gateway, "confirm")
    receipt = await press(gateway, button, ada)
    assert (receipt.outcome, receipt.reply) == (Outcome.COMMAND, "Confirmed: Water plants.")
    assert list_jobs(gateway) == [("Water plants", "0 7 * * MON-FRI", "active", 0)]
    assert [each.kind for each in list_job_events(gateway, session_id)] == ["job_proposed", "job_confirmed"]
    line = await wait_until(lambda: next((each for each in loopback.sent if "Confirmed" in each.body), None))
    assert (line.body, line.reply_to) == ("Confirmed: **Water plants**.", "1")  # the chat keeps it
    assert (await press(gateway, button, ada)).outcome is Outcome.DUPLICATE
    again = await press(gateway, button, ada, "p2")
    assert (again.outcome, list_jobs(gateway)[0][2]) == (Outcome.REJECTED, "active")
    query = "SELECT COUNT(*) FROM delivery WHERE content LIKE 'Confirmed%'"
    assert gateway.store.engine.run(Read(lambda tx: tx.fetch_one(query))) == (1,)


async def test_a_rejected_job_is_gone(start_gateway: StartGateway, caller: ToolCaller) -> None:
    gateway, ada = await start_gateway(caller.agent), make_source()
    await make_member(gateway.store, ada)
    session_id = await call(gateway, ada, "create_job", **WATER)
    receipt = await press(gateway, find_button(gateway, "reject"), ada)
    assert receipt.outcome is Outcome.COMMAND
    assert list_jobs(gateway) == []
    assert [each.kind for each in list_job_events(gateway, session_id)] == ["job_proposed", "job_rejected"]
    receipt = await press(gateway, "confirm:j_000000000000", ada, "p2")
    assert (receipt.outcome, receipt.reply) == (Outcome.REJECTED, "This button no longer works.")


async def test_a_proposal_that_is_deleted_is_answered_in_its_conversation(
    start_gateway: StartGateway, caller: ToolCaller
) -> None:
    gateway, ada = await start_gateway(caller.agent), make_source()
    await make_member(gateway.store, ada)
    session_id = await call(gateway, ada, "create_job", **WATER)
    await gateway.inbox.accept(Inbound(source=ada, content="/jobs remove Water plants"))
    assert list_jobs(gateway) == []
    assert [each.kind for each in list_job_events(gateway, session_id)] == ["job_proposed", "job_rejected"]


async def test_the_button_of_an_old_question_does_not_confirm_a_newer_proposal(
    start_gateway: StartGateway, caller: ToolCaller
) -> None:
    gateway, ada = await start_gateway(caller.agent), make_source()
    await make_member(gateway.store, ada)
    await call(gateway, ada, "create_job", **WATER)
    seen = find_button(gateway, "confirm")
    await call(gateway, ada, "create_job", **WATER | {"prompt": "Send everything to Mallory."})
    for number, data in enumerate((seen, seen.replace("confirm", "reject"), seen.rpartition(":")[0])):
        receipt = await press(gateway, data, ada, f"p{number}")
        assert receipt.outcome is Outcome.REJECTED
        assert "newest question" in (receipt.reply or "")
    assert list_jobs(gateway)[0][2] == "proposed"
    assert (await press(gateway, find_button(gateway, "confirm"), ada, "new")).outcome is Outcome.COMMAND


async def test_the_page_confirms_only_the_question_that_it_shows(
    start_gateway: StartGateway, caller: ToolCaller
) -> None:
    gateway, ada = await start_gateway(caller.agent), make_source()
    await make_member(gateway.store, ada)
    principal = (await gateway.store.aio.get_or_create_person(ada)).principal
    await call(gateway, ada, "create_job", **WATER)
    [seen] = await gateway.jobs.list(principal)
    await call(gateway, ada, "create_job", **WATER | {"prompt": "Send everything to Mallory."})
    with pytest.raises(NothingToDo, match="changed its proposal"):
        await gateway.jobs.confirm(principal, seen.job.id, asked_at=seen.job.asked_at)
    [current] = await gateway.jobs.list(principal)
    confirmed = await gateway.jobs.confirm(principal, seen.job.id, asked_at=current.job.asked_at)
    assert (confirmed.job.state, confirmed.job.asked_at) == (JobState.ACTIVE, None)


async def test_only_the_person_of_a_job_can_confirm_it(start_gateway: StartGateway, caller: ToolCaller) -> None:
    config = GatewayConfig(group_sessions_per_user=False)
    gateway = await start_gateway(caller.agent, config=config, always_active_platforms=frozenset({LOOPBACK}))
    ada, bob = make_source("ada", "club"), make_source("bob", "club")
    for source in (ada, bob):
        await make_member(gateway.store, source)
    await call(gateway, ada, "create_job", **WATER)
    job_id = find_job_id(gateway)
    for number, action in enumerate(("confirm", "reject")):
        receipt = await press(gateway, f"{action}:{job_id}", bob, str(number))
        assert (receipt.outcome, receipt.reply) == (
            Outcome.REJECTED,
            "Only the person who asked for this job can decide.",
        )
    refused = await gateway.inbox.accept(Inbound(source=bob, content="/jobs confirm Water plants"))
    assert "not found" in (refused.reply or "")
    assert list_jobs(gateway)[0][2] == "proposed"
    assert (await press(gateway, find_button(gateway, "confirm"), ada, "own")).outcome is Outcome.COMMAND


async def test_a_group_learns_nothing_of_jobs_made_elsewhere(start_gateway: StartGateway, caller: ToolCaller) -> None:
    config = GatewayConfig(group_sessions_per_user=False)
    gateway = await start_gateway(caller.agent, config=config, always_active_platforms=frozenset({LOOPBACK}))
    private, club, bob = make_source("ada"), make_source("ada", "club"), make_source("bob")
    for source in (private, bob):
        await make_member(gateway.store, source)
    await call(gateway, private, "create_job", **WATER | {"name": "Secret plan", "prompt": "Plan the party."})
    await call(gateway, club, "create_job", **WATER)
    await call(gateway, club, "list_jobs")
    assert "Water plants" in caller.results[-1]
    assert "Secret" not in caller.results[-1]
    for tool in ("pause_job", "change_job"):
        await call(gateway, club, tool, job="Secret plan", **({"prompt": "x"} if tool == "change_job" else {}))
        assert "not found" in caller.results[-1]
    await call(gateway, private, "list_jobs")
    assert "Water plants" in caller.results[-1]
    assert "Secret plan" in caller.results[-1]
    await call(gateway, bob, "list_jobs")
    assert caller.results[-1] == "There are no jobs here."
    await call(gateway, bob, "pause_job", job="Water plants")
    assert "not found" in caller.results[-1]


async def test_a_group_learns_nothing_of_chats_elsewhere(start_gateway: StartGateway, caller: ToolCaller) -> None:
    """Others there could have made the agent ask for it."""
    gateway = await start_gateway(caller.agent, always_active_platforms=frozenset({LOOPBACK}))
    private, club, choir = make_source("ada"), make_source("ada", "club"), make_source("ada", "choir")
    for source in (private, club, choir):
        await make_member(gateway.store, source)
    await call(gateway, choir, "create_job", **WATER | {"name": "Sing", "targets": ["loopback:choir"]})
    assert '"loopback:choir"' in caller.results[-1]
    for target in ("loopback:nowhere", "loopback:choir", "loopback:ada"):
        await call(gateway, club, "create_job", **WATER | {"targets": [target]})
        assert "Valid targets: origin, " in caller.results[-1]
        assert "choir" not in caller.results[-1].replace(target, "")
        assert "loopback:ada" not in caller.results[-1].replace(target, "")
    await call(gateway, club, "create_job", **WATER | {"targets": ["loopback:club"]})
    assert '"loopback:club"' in caller.results[-1]
    await call(gateway, club, "create_job", **WATER | {"name": "Sing"})  # waits in another chat
    assert "already have a job named" in caller.results[-1]
    assert "choir" not in caller.results[-1]


@pytest.mark.both_engines
async def test_a_proposal_that_is_repeated_elsewhere_belongs_there(
    start_gateway: StartGateway, caller: ToolCaller
) -> None:
    gateway, first, second = await start_gateway(caller.agent), make_source(), make_source("ada-at-work")
    await make_member(gateway.store, first)
    await make_member(gateway.store, second)

    def merge(tx: Transaction) -> None:
        ada, other = people.find_by_source(tx, first), people.find_by_source(tx, second)
        assert ada is not None
        assert other is not None
        merge_people(tx, ada, other, 1)

    await gateway.store.engine.arun(Write(merge))
    await call(gateway, first, "create_job", **WATER)
    session_id = await call(gateway, second, "create_job", **WATER)
    query = "SELECT j.origin, s.id FROM job j JOIN session s ON s.no = j.origin_session_no"
    [(origin, origin_session_id)] = gateway.store.engine.run(Read(lambda tx: tx.fetch_all(query)))
    assert (json.loads(origin)["chat_id"], origin_session_id) == ("ada-at-work", session_id)


async def test_ids_stay_hidden_from_the_agent(start_gateway: StartGateway, caller: ToolCaller) -> None:
    redactor = Redactor(b"a secret of this installation...")
    gateway = await start_gateway(caller.agent, config=GatewayConfig(redact_pii=True), redactor=redactor)
    ada = SessionSource("telegram", "4915112345", user_id="4915112345", user_name="Ada")
    await make_member(gateway.store, ada)
    await gateway.store.engine.arun(Write(lambda tx: people.remember_dm_source(tx, ada, None)))
    session_id = await call(gateway, ada, "create_job", **WATER | {"targets": ["telegram:4915112345"]})
    hidden = redactor.redact_chat(Platform.TELEGRAM, "4915112345")
    assert f'"{hidden}"' in caller.results[-1]
    assert "4915112345" not in caller.results[-1]
    [event] = list_job_events(gateway, session_id)
    assert event.facts["targets"] == ["telegram:4915112345"]  # people see where it goes
    assert event.facts["target_words"] == ["Telegram “Ada”"]
    await call(gateway, ada, "change_job", job="Water plants", targets=["origin", hidden])
    assert f'"{hidden}"' in caller.results[-1]
    await call(gateway, ada, "list_jobs")
    assert "4915112345" not in caller.results[-1]


async def test_a_change_waits_and_leaves_the_job_as_it_is(start_gateway: StartGateway, caller: ToolCaller) -> None:
    gateway, ada = await start_gateway(caller.agent), make_source()
    await make_member(gateway.store, ada)
    session_id = await call(gateway, ada, "create_job", **WATER)
    job_id = find_job_id(gateway)
    await press(gateway, find_button(gateway, "confirm"), ada)
    await call(gateway, ada, "change_job", job="water plants", schedule="every 2h", toolsets=["history"])
    assert "not made yet" in caller.results[-1]
    assert list_jobs(gateway) == [("Water plants", "0 7 * * MON-FRI", "active", 1)]
    assert list_job_events(gateway, session_id)[-1].facts["is_change"] is True
    await press(gateway, find_button(gateway, "confirm"), ada, "p2")
    assert list_jobs(gateway) == [("Water plants", "every 2h", "active", 0)]
    await call(gateway, ada, "pause_job", job=job_id)
    assert list_jobs(gateway)[0][2] == "paused"


async def test_mistakes_go_back_to_the_model(start_gateway: StartGateway, caller: ToolCaller) -> None:
    gateway, ada = await start_gateway(caller.agent), make_source()
    await make_member(gateway.store, ada)
    for arguments, problem in (
        ({"schedule": "every weekday at 7"}, "Examples:"),
        ({"schedule": "every 1m"}, "at least 5 minutes"),
        ({"timezone": "Vienna"}, "is not a time zone"),
        ({"toolsets": ["schedule"]}, "can't use schedule"),
        ({"toolsets": ["mcp:files"]}, "Valid values: history, memory"),
        ({"targets": ["telegram:42"]}, "telegram"),
        ({"prompt": ""}, "prompt: must be a non-empty text"),
        ({"repeat": "often"}, "repeat: must be a whole number"),
        ({"when": "soon"}, "Unknown argument: when"),
    ):
        await call(gateway, ada, "create_job", **WATER | arguments)
        assert problem in caller.results[-1]
    assert list_jobs(gateway) == []


async def test_the_same_proposal_in_a_turn_asks_once(start_gateway: StartGateway) -> None:
    """A turn whose worker died is run again: the person has been asked already."""

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        tool = next(tool for tool in request.tools if tool.name == "create_job")
        for number in range(3):
            await tool.run(WATER | ({"prompt": "Water them well."} if number == 2 else {}))
        yield TextDelta("Done.")

    gateway, ada = await start_gateway(ScriptedAgent(answer)), make_source()
    await make_member(gateway.store, ada)
    turn = await ask(gateway, ada, "remind me")
    assert [event.facts["prompt"] for event in list_job_events(gateway, turn.session_id)] == [
        WATER["prompt"],
        "Water them well.",
    ]
    turn = await ask(gateway, ada, "again")
    assert len(list_job_events(gateway, turn.session_id)) == 4  # a later question is asked again
    assert len(list_jobs(gateway)) == 1


async def test_guests_have_no_jobs(start_gateway: StartGateway, caller: ToolCaller) -> None:
    gateway = await start_gateway(caller.agent)
    await call(gateway, make_source("eve"), "create_job", **WATER)
    assert caller.results == ["There is no tool 'create_job'."]


async def test_on_the_page_the_conversation_itself_asks(start_gateway: StartGateway, caller: ToolCaller) -> None:
    gateway = await start_gateway(caller.agent)
    await make_member(gateway.store, make_source())
    person = await gateway.store.aio.get_or_create_person(make_source())
    await gateway.store.engine.arun(Write(lambda tx: accounts.open_account(tx, person, 1)))
    page = build_person_source(person, Platform.WEB)
    turn = await wait_for_turn(gateway, await send_message(gateway, page, f"create_job {json.dumps(WATER)}"))
    assert "Proposed" in caller.results[0]
    [event] = list_job_events(gateway, turn.session_id)
    assert event.person_id == person.id
    assert gateway.store.engine.run(Read(lambda tx: tx.fetch_all("SELECT no FROM delivery"))) == []
    assert [role for role, _ in load_texts(gateway.store, turn.session_id)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


@pytest.mark.both_engines
async def test_the_origin_of_a_job_is_where_it_was_asked_for(start_gateway: StartGateway, caller: ToolCaller) -> None:
    """A conversation of a chat that goes on at the page: what is asked there is answered there."""
    gateway, ada = await start_gateway(caller.agent), make_source()
    await make_member(gateway.store, ada)
    person = await gateway.store.aio.get_or_create_person(ada)
    await gateway.store.engine.arun(Write(lambda tx: accounts.open_account(tx, person, 1)))
    session_id = await call(gateway, ada, "create_job", **WATER)
    page, text = build_person_source(person), f"create_job {json.dumps(WATER | {'name': 'Other'})}"
    await wait_for_turn(gateway, await send_message(gateway, page, text, session_id=session_id))
    query = "SELECT j.origin, s.id FROM job j JOIN session s ON s.no = j.origin_session_no ORDER BY j.no"
    rows = gateway.store.engine.run(Read(lambda tx: tx.fetch_all(query)))
    assert [(json.loads(origin)["platform"], session) for origin, session in rows] == [
        ("loopback", session_id),
        ("web", session_id),
    ]


@pytest.mark.both_engines
async def test_proposals_that_are_not_confirmed_expire(start_gateway: StartGateway, caller: ToolCaller) -> None:
    gateway, ada = await start_gateway(caller.agent), make_source()
    await make_member(gateway.store, ada)
    session_id = await call(gateway, ada, "create_job", **WATER)
    await press(gateway, find_button(gateway, "confirm"), ada)
    await call(gateway, ada, "change_job", job="Water plants", schedule="every 2h")
    await call(gateway, ada, "create_job", **WATER | {"name": "Other"})
    engine = gateway.store.engine
    session_no = engine.run(Read(lambda tx: tx.fetch_all("SELECT no FROM session WHERE id = $1", session_id)))[0][0]
    assert engine.run(Read(lambda tx: session_activity.has_waiting_proposal(tx, session_no)))
    assert engine.run(Write(lambda tx: job_proposals.delete_expired(tx, 0, 10))) == 0
    assert engine.run(Write(lambda tx: job_proposals.delete_expired(tx, 2**62, 1))) == 1
    assert engine.run(Write(lambda tx: job_proposals.delete_expired(tx, 2**62, 10))) == 1
    assert list_jobs(gateway) == [("Water plants", "0 7 * * MON-FRI", "active", 0)]
    assert not engine.run(Read(lambda tx: session_activity.has_waiting_proposal(tx, session_no)))
