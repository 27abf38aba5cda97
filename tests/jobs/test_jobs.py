"""Jobs of people: who sees them, what changes their next slot, what they may cost, and proposals of the agent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from palaver import GatewayConfig, SessionSource, TurnUsage
from palaver.accounts import merge_table as person_merge
from palaver.agent.base import ModelPrices
from palaver.config.agent_rules import AgentProfile, Profile, TurnRules
from palaver.config.budget_rules import BudgetKey, BudgetLimit, BudgetPeriod, BudgetScope, BudgetUnit, TokenPrice
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import (
    InvalidInput,
    JobNameTaken,
    JobNotFound,
    LimitReached,
    NotAllowed,
    NothingToDo,
    OwnerRequired,
)
from palaver.core.ids import JobId
from palaver.core.operation import BlockingRunner
from palaver.jobs import runs_table as job_runs, table as jobs
from palaver.jobs.editor import count_runs_per_day
from palaver.jobs.fields import JobEnvironment
from palaver.jobs.model import CostBasis, JobDraft, JobRunKind, JobRunState, JobState
from palaver.jobs.schedule import parse_schedule
from palaver.jobs.service import Jobs
from palaver.jobs.table import ALL_PIECES
from palaver.money import table as budget_limits
from palaver.people import table as people
from palaver.people.model import Principal, Role
from palaver.sessions import table as sessions, turns_table as turns
from palaver.sessions.deletions import delete_piece, find_hidden
from palaver.transfer import export_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.jobs.table import JobRow
    from palaver.testing import FakeClock

T = TypeVar("T")

PRICES = {
    "small": TokenPrice(input_usd=Decimal(1), output_usd=Decimal(4)),
    "free": TokenPrice(input_usd=Decimal(0), output_usd=Decimal(0)),
}


class PricedAgent:
    model = "small"
    description = "an agent whose prices are known, but for one"

    def list_models(self) -> Sequence[str]:
        return ("small", "free", "unpriced")

    def check_model(self, name: str) -> None:
        if name not in self.list_models():
            raise InvalidInput(f"model: there is no {name!r}")

    async def get_price(self, name: str) -> TokenPrice | None:
        return PRICES.get(name)

    def list_tool_servers(self) -> Sequence[str]:
        return ("files",)


def chat(user: str, platform: str = "telegram") -> SessionSource:
    return SessionSource(platform, user, user_id=user, user_name=user.title())


@dataclass
class Desk:
    """Jobs on a store, and the people who have them."""

    store: SessionStore
    clock: FakeClock
    jobs: Jobs[BlockingRunner] = field(init=False)
    environment: JobEnvironment = field(init=False)

    def __post_init__(self) -> None:
        agent = PricedAgent()
        profile = AgentProfile(profiles={"cheap": Profile(model="free"), "dear": Profile(model="unpriced")})
        rules = TurnRules(models_by_role={Role.MEMBER: ("small", "free", "unpriced")})
        self.environment = JobEnvironment(
            config=self.store.config, rules=rules, agent=agent, profile=profile, prices=ModelPrices(agent)
        )
        self.environment.prices._prices.update(PRICES)
        self.jobs = self.open()

    def open(self, only_chat: SessionSource | None = None) -> Jobs[BlockingRunner]:
        return Jobs(BlockingRunner(self.store.engine), self.environment, self.clock, only_chat=only_chat)

    def read(self, run: Callable[[Transaction], T]) -> T:
        return self.store.engine.run(Read(run))

    def write(self, run: Callable[[Transaction], T]) -> T:
        return self.store.engine.run(Write(run))

    @property
    def now(self) -> int:
        return to_micros(self.clock.now())

    def add_person(self, user: str, role: Role = Role.MEMBER) -> Principal:
        def add(tx: Transaction) -> Principal:
            row = people.find_or_add_by_source(tx, chat(user), self.now)
            assert row is not None
            people.set_role(tx, row.person.id, role)
            people.remember_dm_source(tx, chat(user), None)
            return Principal(row.person.id, role)

        return self.write(add)

    def add(self, principal: Principal, user: str = "ada", **fields: Any) -> Any:
        draft = JobDraft(**{"prompt": "Water the plants.", "schedule": "every 2h", **fields})
        return self.jobs.add(principal, draft, chat(user))

    def load(self, job_id: str) -> JobRow:
        return self.read(lambda tx: jobs.get_any(tx, job_id))


@pytest.fixture
def desk(store: SessionStore, clock: FakeClock) -> Desk:
    return Desk(store, clock)


@pytest.fixture
def quick_desk(sqlite_store: SessionStore, clock: FakeClock) -> Desk:
    """A desk on SQLite only, for what does not depend on the engine."""
    return Desk(sqlite_store, clock)


# ---- whose jobs ------------------------------------------------------------------------------------------------


def test_the_job_of_another_person_looks_like_a_missing_one(desk: Desk) -> None:
    ada, bob, owner = desk.add_person("ada"), desk.add_person("bob"), desk.add_person("olga", Role.OWNER)
    job = desk.add(ada, name="Plants").job
    calls: list[Callable[[Principal, str], object]] = [
        desk.jobs.get,
        desk.jobs.pause,
        desk.jobs.resume,
        desk.jobs.run_now,
        desk.jobs.remove,
        desk.jobs.confirm,
        desk.jobs.reject,
        desk.jobs.list_runs,
        lambda who, name: desk.jobs.edit(who, name, JobDraft(prompt="mine now")),
        lambda who, name: desk.jobs.propose_change(who, name, JobDraft(prompt="mine now")),
        lambda who, name: desk.jobs.preview(who, JobDraft(prompt="mine now"), chat("bob"), job=name),
    ]
    for call in calls:
        for name in (job.id, "Plants"):
            with pytest.raises(JobNotFound) as hidden:
                call(bob, name)
            with pytest.raises(JobNotFound) as missing:
                call(bob, "j_00000000")
            assert str(hidden.value) == str(missing.value).replace("j_00000000", name)
        with pytest.raises(JobNotFound):
            call(owner, job.id)
    assert list(desk.jobs.list(bob)) == []
    with pytest.raises(OwnerRequired):
        desk.jobs.list(bob, everything=True)
    with pytest.raises(OwnerRequired):
        desk.jobs.get(bob, job.id, everything=True)
    assert [each.person_name for each in desk.jobs.list(owner, everything=True)] == ["Ada"]
    assert desk.jobs.pause(owner, job.id, everything=True).job.state is JobState.PAUSED
    assert desk.load(job.id).job.prompt == "Water the plants."


def test_in_a_chat_with_readers_only_the_jobs_made_there_exist(quick_desk: Desk) -> None:
    ada = quick_desk.add_person("ada", Role.OWNER)
    group = SessionSource("discord", "club", chat_type="group", user_id="ada")
    private = quick_desk.add(ada, name="Private").job
    quick_desk.write(lambda tx: people.add_identity(tx, ("discord", "ada"), ada.person_id, quick_desk.now))
    quick_desk.store.record_user_message(group, "hello")
    here = quick_desk.open(only_chat=group)
    added = here.add(ada, JobDraft(name="Club", prompt="x", schedule="every 2h"), group)
    assert added.preview.targets[0].words == "Discord club"
    assert [each.job.name for each in here.list(ada)] == ["Club"]
    assert len(quick_desk.jobs.list(ada)) == 2
    with pytest.raises(JobNotFound):
        here.remove(ada, private.id)
    with pytest.raises(NotAllowed, match="Other people read this chat"):
        here.list(ada, everything=True)


def test_a_job_itself_and_a_guest_make_no_jobs(quick_desk: Desk) -> None:
    ada, guest = quick_desk.add_person("ada"), quick_desk.add_person("gus", Role.GUEST)
    job = quick_desk.add(ada).job
    as_job = replace(ada, job_id=JobId(job.id))
    for principal in (as_job, guest):
        with pytest.raises(NotAllowed):
            quick_desk.add(principal, name="other")
    for call in (quick_desk.jobs.pause, quick_desk.jobs.run_now, quick_desk.jobs.remove, quick_desk.jobs.reject):
        with pytest.raises(NotAllowed):
            call(as_job, job.id)


@pytest.mark.both_engines
def test_a_name_is_taken_once_and_the_number_of_jobs_is_limited(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = desk.add_person("ada")
    job = desk.add(ada, name="Plants").job
    with pytest.raises(JobNameTaken, match="jobs edit"):
        desk.add(ada, name=" plants ")
    other = desk.add(ada, name="Other").job
    with pytest.raises(JobNameTaken):
        desk.jobs.edit(ada, other.id, JobDraft(name="PLANTS"))
    assert desk.jobs.edit(ada, job.id, JobDraft(name="PLANTS")).job.name == "PLANTS"
    monkeypatch.setattr(jobs, "MAX_JOBS_PER_PERSON", 2)
    with pytest.raises(LimitReached):
        desk.add(ada, name="third")


@pytest.mark.both_engines
def test_linked_accounts_keep_both_peoples_jobs(desk: Desk) -> None:
    ada, bob = desk.add_person("ada"), desk.add_person("bob")
    mine, theirs = desk.add(ada, name="Plants").job, desk.add(bob, "bob", name="plants").job
    name = "n" * 60
    desk.add(ada, name=name)
    desk.add(bob, "bob", name=name)

    def merge(tx: Transaction) -> None:
        survivor, other = people.find_by_id(tx, ada.person_id), people.find_by_id(tx, bob.person_id)
        assert survivor is not None
        assert other is not None
        people.set_timezone(tx, bob.person_id, "Europe/Berlin")
        person_merge.merge_people(tx, survivor, other, desk.now)

    desk.write(merge)
    names = {each.job.id: each.job.name for each in desk.jobs.list(ada)}
    assert (names[mine.id], names[theirs.id], len(names)) == ("Plants", "plants 2", 4)
    assert max(map(len, names.values())) == 60
    row = desk.read(lambda tx: people.find_by_id(tx, ada.person_id))
    assert row is not None
    assert row.person.timezone == "Europe/Berlin"


# ---- slots -----------------------------------------------------------------------------------------------------


@pytest.mark.both_engines
def test_a_slot_is_passed_once_and_only_by_its_guarded_update(desk: Desk) -> None:
    ada = desk.add_person("ada")
    row = desk.load(desk.add(ada, repeat=2).job.id)
    later = row.job.anchor + timedelta(hours=4)
    assert desk.read(lambda tx: jobs.find_next_slot(tx, desk.now)) == row.job.next_slot
    assert desk.read(lambda tx: jobs.list_due(tx, desk.now, 10)) == []
    assert desk.write(lambda tx: jobs.advance(tx, row, later, desk.now, runs_left=1))
    assert not desk.write(lambda tx: jobs.advance(tx, row, later, desk.now, runs_left=0))
    again = desk.load(row.job.id)
    assert (again.job.next_slot, again.job.runs_left) == (later, 1)
    assert desk.write(lambda tx: jobs.advance(tx, again, None, desk.now, runs_left=0))
    ended = desk.load(row.job.id).job
    assert (ended.state, ended.next_slot, ended.runs_left) == (JobState.ENDED, None, 0)
    with pytest.raises(InvalidInput, match="no runs left"):
        desk.jobs.resume(ada, row.job.id)
    edited = desk.jobs.edit(ada, row.job.id, JobDraft(prompt="New")).job
    assert (edited.state, edited.runs_left, edited.prompt) == (JobState.ENDED, 0, "New")
    with pytest.raises(InvalidInput, match="no runs left"):
        desk.jobs.edit(ada, row.job.id, JobDraft(schedule="every 5h"))
    revived = desk.jobs.edit(ada, row.job.id, JobDraft(repeat=3)).job
    assert (revived.state, revived.runs_left) == (JobState.ACTIVE, 3)


def test_a_job_that_was_paused_meanwhile_is_not_advanced(desk: Desk) -> None:
    ada = desk.add_person("ada")
    row = desk.load(desk.add(ada).job.id)
    desk.jobs.pause(ada, row.job.id)
    assert not desk.write(lambda tx: jobs.advance(tx, row, row.job.next_slot, desk.now, runs_left=None))
    with pytest.raises(NothingToDo):
        desk.jobs.pause(ada, row.job.id)
    desk.clock.advance(hours=5)
    resumed = desk.jobs.resume(ada, row.job.id).job
    assert resumed.next_slot == row.job.anchor + timedelta(hours=6)


def test_editing_moves_the_next_slot_only_if_the_times_change(quick_desk: Desk) -> None:
    ada = quick_desk.add_person("ada")
    job = quick_desk.add(ada, schedule="0 7 * * *", timezone="Europe/Berlin").job
    quick_desk.clock.advance(minutes=30)
    same = quick_desk.jobs.edit(ada, job.id, JobDraft(prompt="New", schedule="0 7 * * *", targets=("origin",))).job
    assert (same.next_slot, same.anchor, same.prompt) == (job.next_slot, job.anchor, "New")
    moved = quick_desk.jobs.edit(ada, job.id, JobDraft(timezone="America/New_York")).job
    assert moved.next_slot is not None
    assert moved.next_slot.hour in {11, 12}
    every = quick_desk.jobs.edit(ada, job.id, JobDraft(schedule="every 90m")).job
    assert every.next_slot == quick_desk.clock.now() + timedelta(minutes=90)


def test_a_job_that_runs_once_cannot_be_resumed_after_its_time(quick_desk: Desk) -> None:
    ada = quick_desk.add_person("ada")
    job = quick_desk.add(ada, schedule="30m").job
    quick_desk.jobs.pause(ada, job.id)
    quick_desk.clock.advance(hours=1)
    with pytest.raises(InvalidInput, match="its time has passed"):
        quick_desk.jobs.resume(ada, job.id)
    assert quick_desk.jobs.get(ada, job.id).preview.next_slots == ()


# ---- what people confirm ---------------------------------------------------------------------------------------


def test_defaults_of_a_job(open_store: OpenStore, clock: FakeClock) -> None:
    desk = Desk(open_store(GatewayConfig(timezone="Asia/Tokyo")), clock)
    ada = desk.add_person("ada")
    details = desk.add(ada, prompt="  Look for new papers about solar sails, and tell me.  ")
    assert details.job.name == "Look for new papers about solar"
    assert (details.job.timezone, details.job.targets) == ("Asia/Tokyo", ("origin",))
    assert details.job.toolsets == ("history", "memory")
    assert details.preview.targets[0].words == "Telegram “Ada”"
    assert "mcp:files" in [each.name for each in desk.jobs.get_options(ada).toolsets]
    assert desk.add(ada, name="b", toolsets=("mcp:files",)).job.toolsets == ("mcp:files",)


@pytest.mark.both_engines
def test_a_job_for_a_group_has_no_private_tools_unless_they_are_named(desk: Desk) -> None:
    """What its runs know of the person, the group would read."""
    ada = desk.add_person("ada")
    club = SessionSource("telegram", "club", chat_type="group", user_id="ada", user_name="Ada")
    desk.store.record_user_message(club, "hello")
    draft = JobDraft(prompt="Say something nice.", schedule="every 2h")
    assert desk.jobs.add(ada, draft, club).job.toolsets == ()
    assert desk.add(ada, name="both", targets=("origin", "telegram:club")).job.toolsets == ()
    named = desk.add(ada, name="named", targets=("telegram:club",), toolsets=("memory",)).job
    assert desk.jobs.edit(ada, named.id, JobDraft(targets=("telegram:club", "origin"))).job.toolsets == ("memory",)
    private = desk.add(ada, name="private", toolsets=("memory", "mcp:files")).job
    assert desk.jobs.edit(ada, private.id, JobDraft(targets=("telegram:club",))).job.toolsets == ("mcp:files",)


@pytest.mark.both_engines
def test_an_unknown_price_is_unknown_and_never_free(desk: Desk) -> None:
    ada = desk.add_person("ada")
    estimated = desk.add(ada, name="a").preview
    assert estimated.cost_basis is CostBasis.ESTIMATE
    assert estimated.cost_per_day == estimated.cost_per_run * 12
    assert Decimal("0.001") < estimated.cost_per_run < Decimal("0.1")
    unknown = desk.add(ada, name="b", model="unpriced").preview
    assert (unknown.cost_basis, unknown.cost_per_day) == (CostBasis.UNKNOWN, None)
    assert desk.add(ada, name="c", profile="dear").preview.cost_per_run is None
    free = desk.add(ada, name="d", profile="cheap").preview
    assert (free.used_model, free.cost_per_day) == ("free", 0)
    with pytest.raises(InvalidInput, match="there is no 'rocket'"):
        desk.add(ada, name="e", model="rocket")
    reset = desk.jobs.edit(ada, "b", JobDraft(model="default")).job
    assert reset.model is None


def test_after_its_first_runs_a_job_costs_what_they_did(desk: Desk) -> None:
    ada = desk.add_person("ada")
    job = desk.add(ada, model="unpriced").job
    for cost in (Decimal("0.10"), Decimal("0.30")):
        add_finished_run(desk, job.id, cost)
    preview = desk.jobs.get(ada, job.id).preview
    assert (preview.cost_basis, preview.cost_per_run) == (CostBasis.RUNS, Decimal("0.2"))
    assert preview.cost_per_day == Decimal("2.4")
    add_finished_run(desk, job.id, None)
    assert desk.jobs.get(ada, job.id).preview.cost_per_day is None


def add_finished_run(desk: Desk, job_id: str, cost: Decimal | None) -> None:
    """Add a run with a conversation and a turn of its own, which has cost this much."""
    recorded = desk.store.record_user_message(chat("ada"), "go")
    desk.clock.advance(minutes=10)

    def add(tx: Transaction) -> str:
        job_row = jobs.get_any(tx, job_id)
        run = job_runs.enqueue(tx, job_row, desk.clock.now(), JobRunKind.MANUAL, desk.now)
        session_no = sessions.get(tx, recorded.session_id).no
        turn_id = turns.enqueue(tx, turns.TurnRequest(session_no=session_no, input_seq=recorded.seq), desk.now)
        run_row = job_runs.find_run(tx, run.id)
        assert run_row is not None
        job_runs.mark_started(tx, run_row.no, session_no, turn_id, desk.now)
        job_runs.end_run(tx, run_row.no, JobRunState.DONE, desk.now)
        turns.cancel_queued(tx, session_no, desk.now, "done")
        return str(turn_id)

    turn_id = desk.write(add)
    usage = TurnUsage(turn_id=turn_id, model="unpriced", input_tokens=10, output_tokens=5, cost=cost)
    desk.store.update_session(recorded.session_id, usage)


@pytest.mark.parametrize(
    ("schedule", "runs"),
    [
        ("every 30m", 48),
        ("0 7 * * *", 1),
        ("0 7 * * MON-FRI", 5 / 7),
        ("*/10 9-16 * * MON-FRI", 48 * 5 / 7),
        ("0 12 1 * *", 12 / 365),
        ("0 12 29 2 *", 1 / 1461),
        ("2h", None),
    ],
)
def test_runs_per_day(schedule: str, runs: float | None) -> None:
    now = datetime(2026, 11, 16, 12, tzinfo=UTC)
    parsed = parse_schedule(schedule, timezone="Europe/Berlin", now=now)
    assert count_runs_per_day(parsed, "Europe/Berlin", now) == (None if runs is None else pytest.approx(runs, rel=0.05))


# ---- removing and proposals ------------------------------------------------------------------------------------


def test_removing_a_job_stops_its_run(desk: Desk) -> None:
    ada = desk.add_person("ada")
    job = desk.add(ada).job
    desk.jobs.run_now(ada, job.id)
    recorded = desk.store.record_user_message(chat("ada"), "go")

    def start(tx: Transaction) -> None:
        run_row = job_runs.find_open(tx, jobs.get_any(tx, job.id).no)
        assert run_row is not None
        session_no = sessions.get(tx, recorded.session_id).no
        turn_id = turns.enqueue(tx, turns.TurnRequest(session_no=session_no, input_seq=recorded.seq), desk.now)
        job_runs.mark_started(tx, run_row.no, session_no, turn_id, desk.now)

    desk.write(start)
    assert desk.jobs.remove(ada, job.id).name == job.name
    session_no = desk.read(lambda tx: sessions.get(tx, recorded.session_id).no)
    assert desk.read(lambda tx: turns.list_open(tx, session_no)) == []
    with pytest.raises(JobNotFound):
        desk.jobs.get(ada, job.id)


def test_removing_a_job_removes_its_limits(quick_desk: Desk) -> None:
    ada = quick_desk.add_person("ada")
    job = quick_desk.add(ada).job
    limits = [
        BudgetLimit(key=BudgetKey(BudgetScope.JOB, subject, BudgetPeriod.DAY), unit=BudgetUnit.TOKENS, amount=5)
        for subject in ("", job.id)
    ]
    for limit in limits:
        quick_desk.write(partial(budget_limits.set_limit, limit=limit, person_id=ada.person_id, now=0))
    quick_desk.jobs.remove(ada, job.id)
    assert quick_desk.read(budget_limits.list_all) == limits[:1]


@pytest.mark.both_engines
def test_a_job_with_many_runs_disappears_at_once_and_its_runs_go_in_pieces(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "RUNS_PER_PIECE", 3)
    monkeypatch.setattr(jobs, "MAX_JOBS_PER_PERSON", 1)
    ada = desk.add_person("ada")
    job = desk.add(ada, name="Plants").job
    for _ in range(7):
        add_finished_run(desk, job.id, None)
    open_run = desk.jobs.run_now(ada, job.id)
    row = desk.load(job.id)
    desk.clock.advance(minutes=1)
    desk.write(lambda tx: job_runs.record_missed(tx, row, desk.clock.now(), 2, "was off", desk.now, is_untold=True))
    last_run = desk.jobs.list_runs(ada, job.id)[-1]

    desk.jobs.remove(ada, "plants")
    assert count_runs(desk, row.no) == 7  # the open run, and what its person was to be told, are gone
    for text in (job.id, "plants", f"deleted-{row.no}", f"deleted  {row.no}"):
        with pytest.raises(JobNotFound):
            desk.jobs.get(ada, text)
    assert not desk.jobs.list(ada)
    assert desk.read(lambda tx: [job_runs.find_run(tx, run.id) for run in (last_run, open_run)]) == [None, None]
    assert not desk.read(job_runs.has_untold)
    assert not desk.read(lambda tx: jobs.has_old(tx, 2**62))  # would delete conversations of runs
    assert desk.read(lambda tx: export_rows.list_rows(tx, jobs.EXPORT, "1 = 1", [])) == []
    assert desk.add(ada, name="Plants").job.id != job.id

    left = []
    while (hidden := desk.read(find_hidden(ALL_PIECES).run)) is not None:
        desk.write(delete_piece(hidden, ALL_PIECES).run)
        left.append(count_runs(desk, row.no))
    assert left == [4, 1, 0]
    assert [each.job.name for each in desk.jobs.list(ada)] == ["Plants"]
    assert len(desk.store.list_sessions()) == 1


def test_removing_a_job_completely_returns_when_its_last_run_is_gone(
    quick_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "RUNS_PER_PIECE", 1)
    ada, bob = quick_desk.add_person("ada"), quick_desk.add_person("bob")
    job = quick_desk.add(ada).job
    for _ in range(3):
        add_finished_run(quick_desk, job.id, None)
    row = quick_desk.load(job.id)
    with pytest.raises(JobNotFound):
        quick_desk.jobs.remove_completely(bob, job.id)
    assert quick_desk.jobs.remove_completely(ada, job.id).name == job.name
    assert count_runs(quick_desk, row.no) == 0
    assert quick_desk.read(lambda tx: tx.fetch_all("SELECT 1 FROM job")) == []


def count_runs(desk: Desk, job_no: int) -> int:
    return len(desk.read(lambda tx: tx.fetch_all("SELECT 1 FROM job_run WHERE job_no = $1", job_no)))


def test_a_proposed_job_does_nothing_until_it_is_confirmed(desk: Desk) -> None:
    ada = desk.add_person("ada")
    draft = JobDraft(name="Plants", prompt="Water them.", schedule="every 2h")
    proposal = desk.jobs.propose(ada, draft, chat("ada"))
    assert (proposal.is_new, len(proposal.preview.next_slots)) == (True, 3)
    row = desk.load(proposal.job_id)
    assert (row.job.state, row.job.next_slot) == (JobState.PROPOSED, None)
    for call in (desk.jobs.run_now, desk.jobs.resume, desk.jobs.pause):
        with pytest.raises(InvalidInput, match="waits for your confirmation"):
            call(ada, "plants")
    assert not desk.jobs.propose(ada, draft, chat("ada")).is_new
    changed = desk.jobs.propose(ada, replace(draft, schedule="every 3h"), chat("ada"))
    assert (changed.job_id, changed.is_new) == (proposal.job_id, True)
    desk.clock.advance(hours=1)
    confirmed = desk.jobs.confirm(ada, "plants").job
    assert (confirmed.state, confirmed.schedule) == (JobState.ACTIVE, "every 3h")
    assert confirmed.next_slot == desk.clock.now() + timedelta(hours=3)
    with pytest.raises(NothingToDo):
        desk.jobs.confirm(ada, "plants")
    with pytest.raises(JobNameTaken):
        desk.jobs.propose(ada, draft, chat("ada"))


@pytest.mark.both_engines
def test_a_proposed_change_is_made_when_it_is_confirmed(desk: Desk) -> None:
    ada = desk.add_person("ada")
    job = desk.add(ada, name="Plants").job
    proposal = desk.jobs.propose_change(ada, "plants", JobDraft(schedule="30m", toolsets=()))
    assert (proposal.is_change, proposal.fields.toolsets) == (True, ())
    details = desk.jobs.get(ada, job.id)
    assert (details.job.schedule, details.job.next_slot) == ("every 2h", job.next_slot)
    assert details.proposed_change is not None
    assert details.proposed_change.words.startswith("once, on ")
    desk.clock.advance(minutes=10)
    confirmed = desk.jobs.confirm(ada, job.id).job
    assert confirmed.next_slot == job.anchor + timedelta(minutes=30)  # as it was shown, not half an hour from now
    assert (confirmed.toolsets, confirmed.proposed_change) == ((), None)
    desk.jobs.propose_change(ada, job.id, JobDraft(prompt="Other"))
    assert desk.jobs.reject(ada, job.id).name == "Plants"
    assert desk.load(job.id).job.prompt == "Water the plants."
    with pytest.raises(NothingToDo):
        desk.jobs.propose_change(ada, job.id, JobDraft(prompt="Water the plants."))


def test_a_rejected_job_is_gone(quick_desk: Desk) -> None:
    ada = quick_desk.add_person("ada")
    draft = JobDraft(name="Plants", prompt="x", schedule="every 2h")
    quick_desk.jobs.propose(ada, draft, chat("ada"))
    quick_desk.jobs.reject(ada, "plants")
    assert list(quick_desk.jobs.list(ada)) == []
