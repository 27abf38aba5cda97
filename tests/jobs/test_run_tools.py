"""Runs of jobs: which tools they have, what they are told, and what they report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from palaver import Role, SessionSource
from palaver.agent.base import TextDelta, Tool, ToolCall, ToolFailed, ToolResult
from palaver.config.agent_rules import AgentProfile, Profile, ToolsetRule
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.operation import AsyncRunner, BlockingRunner
from palaver.jobs.firing import start_next_run
from palaver.jobs.model import JobDraft
from palaver.jobs.service import Jobs
from palaver.people import table as people
from palaver.platforms.loopback import LOOPBACK
from palaver.testing import ScriptedAgent
from support.gateway import ask, make_member, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.gateway.gateway import Gateway
    from palaver.jobs.model import JobRun
    from palaver.people.model import Principal
    from support.gateway import StartGateway


async def run_nothing(_arguments: Any) -> str:
    return ""


MCP_TOOLS = [
    Tool(name=name, description="", parameters={}, run=run_nothing, toolset=toolset)
    for name, toolset in (("files_read", "mcp:files"), ("web_get", "mcp:web"), ("own", ""))
]


class RunAgent:
    """Calls tools by name, one after the other, and then answers."""

    def __init__(self, *calls: tuple[str, dict[str, Any]], answer: str = "All is well.") -> None:
        self.calls = calls
        self.answer = answer
        self.results: list[str] = []
        self.agent = ScriptedAgent(self._answer, tools=MCP_TOOLS)

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        tools = {tool.name: tool for tool in request.tools}
        for number, (name, arguments) in enumerate(self.calls):
            yield ToolCall(f"c{number}", name, json.dumps(arguments))
            try:
                content = await tools[name].run(arguments) if name in tools else f"There is no tool {name!r}."
            except ToolFailed as error:
                content = str(error)
            self.results.append(content)
            yield ToolResult(f"c{number}", name, content)
        yield TextDelta(self.answer)

    @property
    def request(self) -> AgentRequest:
        return self.agent.requests[-1]

    @property
    def tool_names(self) -> set[str]:
        return {tool.name for tool in self.request.tools}


def make_source(user: str = "ada") -> SessionSource:
    return SessionSource(LOOPBACK, user, user_id=user, user_name=user.title())


def get_jobs(gateway: Gateway) -> Jobs[AsyncRunner]:
    return Jobs(AsyncRunner(gateway.store.engine), gateway.job_environment, gateway.store.clock)


async def add_member(gateway: Gateway, user: str = "ada") -> Principal:
    await make_member(gateway.store, make_source(user))
    await gateway.store.aio.record_user_message(make_source(user), "hello")  # the job's output goes to this chat
    return (await gateway.store.aio.get_or_create_person(make_source(user))).principal


async def run_job(
    gateway: Gateway, principal: Principal, toolsets: Sequence[str] = (), user: str = "ada", **fields: Any
) -> JobRun:
    """Add a job unless there is one, run it once, and return how that ended."""
    jobs = get_jobs(gateway)
    draft = JobDraft(
        name="Report", prompt="Report.", schedule="0 7 * * *", targets=("origin",), toolsets=tuple(toolsets), **fields
    )
    if not await jobs.list(principal):
        await jobs.add(principal, draft, make_source(user))
    await jobs.run_now(principal, "Report")
    now, config = to_micros(gateway.store.clock.now()), gateway.store.config
    await gateway.store.engine.arun(Write(lambda tx: start_next_run(tx, config, 5, now, [])))
    gateway.turn_worker.wake()

    blocking_jobs = Jobs(BlockingRunner(gateway.store.engine), gateway.job_environment, gateway.store.clock)

    def find_ended() -> JobRun | None:
        run = blocking_jobs.list_runs(principal, "Report", limit=1)[0]
        return run if run.state.has_ended else None

    run: JobRun = await wait_until(find_ended)
    return run


async def test_a_run_has_the_granted_tools_and_no_others(start_gateway: StartGateway) -> None:
    agent = RunAgent()
    gateway = await start_gateway(agent.agent)
    ada = await add_member(gateway)
    run = await run_job(gateway, ada, ["history", "mcp:files"], timezone="Europe/Vienna")
    assert (run.state, run.result, run.refused_tools) == ("done", "answer", ())
    assert agent.tool_names == {
        *("search_conversations", "read_conversation", "read_tool_result"),
        *("files_read", "report_failure"),
    }


async def test_what_its_person_may_no_longer_use_is_gone(start_gateway: StartGateway) -> None:
    agent = RunAgent()
    rules = {"memory": ToolsetRule(), "history": ToolsetRule(roles=frozenset({Role.OWNER}))}
    gateway = await start_gateway(agent.agent, toolsets=rules)
    ada = await add_member(gateway)
    owner = await gateway.store.engine.arun(Write(lambda tx: _set_role(tx, ada, Role.OWNER)))
    await run_job(gateway, owner, ["history", "memory", "mcp:web"])
    assert {"search_conversations", "remember", "web_get"} <= agent.tool_names
    member = await gateway.store.engine.arun(Write(lambda tx: _set_role(tx, ada, Role.MEMBER)))
    await run_job(gateway, member)
    assert agent.tool_names == {"remember", "recall", "forget", "web_get", "report_failure"}


def _set_role(tx: Any, principal: Principal, role: Role) -> Principal:
    people.set_role(tx, principal.person_id, role)
    row = people.find_by_id(tx, principal.person_id)
    assert row is not None
    return row.person.principal


@pytest.mark.both_engines
async def test_other_tools_are_refused_at_once_and_recorded(start_gateway: StartGateway) -> None:
    agent = RunAgent(("create_job", {}), ("web_get", {}), ("web_get", {}), ("recall", {}))
    gateway = await start_gateway(agent.agent)
    run = await run_job(gateway, await add_member(gateway), ["memory"])
    assert run.refused_tools == ("create_job", "web_get")
    assert agent.results == [
        "There is no tool 'create_job'.",
        "There is no tool 'web_get'.",
        "There is no tool 'web_get'.",
        "There are no memories yet.",
    ]
    assert run.state == "done"


@pytest.mark.both_engines
async def test_the_agent_reports_that_it_has_failed(start_gateway: StartGateway) -> None:
    report = ("report_failure", {"reason": "The feed did not answer."})
    agent = RunAgent(report, report, answer="I could not do it.")
    gateway = await start_gateway(agent.agent)
    run = await run_job(gateway, await add_member(gateway))
    assert (run.state, run.reason, run.result) == ("failed", "The feed did not answer.", None)
    assert all(result.startswith("Recorded: this run counts as failed. Stop") for result in agent.results)


async def test_people_can_not_report_failures(start_gateway: StartGateway) -> None:
    agent = RunAgent()
    gateway = await start_gateway(agent.agent)
    await add_member(gateway)
    await ask(gateway, make_source(), "hello")
    assert "report_failure" not in agent.tool_names
    assert "create_job" in agent.tool_names


async def test_a_run_is_told_that_no_person_is_there(start_gateway: StartGateway) -> None:
    agent = RunAgent(answer="[SILENT]")
    gateway = await start_gateway(agent.agent)
    ada = await add_member(gateway)
    run = await run_job(gateway, ada, timezone="Europe/Vienna")
    assert (run.state, run.result) == ("done", "silent")
    instructions = agent.request.instructions
    assert '- Job: "Report", on behalf of "Ada", started by hand at ' in instructions
    assert "(Europe/Vienna)." in instructions
    assert "answer exactly [SILENT]" in instructions
    assert "- the conversation where the job was made: Loopback" in instructions
    assert "First contact" not in instructions
    assert [message["content"] for message in agent.request.messages] == ["Report."]
    await run_job(gateway, ada)
    assert len(agent.request.messages) == 1  # a run does not see the runs before it


async def test_model_and_profile_of_the_job_apply(start_gateway: StartGateway) -> None:
    agent = RunAgent()
    profile = AgentProfile(profiles={"terse": Profile(instructions="Be terse.", toolsets=("memory",))})
    gateway = await start_gateway(agent.agent, profile=profile)
    await run_job(gateway, await add_member(gateway), ["history", "memory"], model="scripted-large", profile="terse")
    assert agent.request.model == "scripted-large"
    assert agent.request.instructions.startswith("Be terse.")
    assert agent.tool_names == {"remember", "recall", "forget", "report_failure"}


async def test_a_run_sees_what_its_person_may_see_and_nothing_else(start_gateway: StartGateway) -> None:
    search = ("search_conversations", {"query": "treasure"})
    agent = RunAgent(search, ("recall", {"query": "treasure"}))
    gateway = await start_gateway(agent.agent)
    ada, bob = await add_member(gateway), await add_member(gateway, "bob")
    await gateway.store.engine.arun(Write(lambda tx: _set_role(tx, ada, Role.OWNER)))
    gateway.store.record_user_message(make_source("bob"), "Bob's treasure is under the oak")
    gateway.store.record_user_message(make_source("ada"), "Ada's treasure is in the attic")
    await run_job(gateway, ada, ["history", "memory"])
    assert "attic" in agent.results[0]
    assert "oak" not in "".join(agent.results)
    agent.results.clear()
    await run_job(gateway, bob, ["history", "memory"], user="bob")
    assert "oak" in agent.results[0]
    assert "attic" not in "".join(agent.results)


@pytest.mark.both_engines
async def test_a_run_whose_job_was_deleted_has_no_rights(start_gateway: StartGateway) -> None:
    """The turn outlives its job only if the job is deleted before it is claimed."""
    agent = RunAgent()
    gateway = await start_gateway(agent.agent)
    ada = await add_member(gateway)
    await run_job(gateway, ada)
    fields = "session_no, kind, input_seq, person_id, facts, is_steering, due_at, created_at, state, queue_round"
    await gateway.store.engine.arun(
        Write(
            lambda tx: (
                tx.execute("DELETE FROM job"),
                tx.execute(
                    f"INSERT INTO turn (id, {fields}) SELECT 't_again', session_no, kind, input_seq, person_id, facts,"
                    " 0, 0, created_at, 'queued', 0 FROM turn"
                ),
            )
        )
    )
    gateway.turn_worker.wake()
    query = "SELECT state, error FROM turn WHERE id = 't_again'"
    await wait_until(lambda: _fetch(gateway, query)[0][0] in {"failed", "done"})
    assert _fetch(gateway, query) == [("failed", "The job was deleted.")]
    assert len(agent.agent.requests) == 1


def _fetch(gateway: Gateway, query: str) -> list[Any]:
    return gateway.store.engine.run(Read(lambda tx: tx.fetch_all(query)))
