"""Two months with three people, and a year with a hundred, in the life of a gateway, by a clock that the test sets.

They write in direct messages, in a group and on the page; jobs run daily, hourly, once, silently and without success;
conversations end by their policies, are restored and compacted; budgets run out; a server cleans up every day. What
always holds is checked, and how large everything becomes: only the tables in `GROWING_TABLES` grow with what people
keep. With `-s` the rows and bytes of every table are printed, and for the year each month.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, SessionStore
from palaver.agent.base import TextDelta, UsageReport
from palaver.config.agent_rules import AgentProfile, JobRules, MemoryRules, TurnRules
from palaver.core.clock import from_micros, to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.ids import SessionId
from palaver.core.source import ChatType
from palaver.gateway.gateway import Gateway
from palaver.jobs import table as jobs
from palaver.jobs.model import SILENT_ANSWER
from palaver.jobs.schedule import list_next_slots, read_schedule
from palaver.media.attachments import Attachments
from palaver.operation import cleanup
from palaver.operation.cleanup import Cleanup
from palaver.people import account_table as accounts
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter
from palaver.sessions.conversations import Conversations, build_person_source
from palaver.sessions.inbound import Inbound
from palaver.sessions.policy import ResetMode, ResetPolicy
from palaver.testing import FakeClock, ScriptedAgent
from scenarios.store_harness import find_inconsistencies
from support.gateway import make_member, wait_until
from support.inbox import list_rows
from support.job_runs import insert_job
from support.metered_work import NANO_PER_TOKEN, make_call, make_rules, make_usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.people.model import Person
    from palaver.sessions.inbound import Receipt

pytestmark = pytest.mark.slow

SEED = 20261115
START = datetime(2026, 3, 1, 6, tzinfo=UTC)
DAYS = 61
CLOCK_CHANGE = datetime(2026, 3, 29, 1, tzinfo=UTC)
HOURS_PER_STEP = 4
KEEP_DAYS = 14  # of runs of jobs
PEOPLE = ("ada", "bob", "cem")
CROWD = (*PEOPLE, *(f"person{number}" for number in range(97)))
CROWD_PACE = 0.08  # each of them does so much of what one of the three does
CHECK_DAYS = 5  # between two checks of the whole database
DAYS_OF_YEAR = 365
DAYS_OF_MONTH = 30
MAX_WAL_BYTES = 80 * 2**20  # above 64 MiB, SQLite shortens it again
MAX_NEW_OBJECTS = 1000  # in the caches, from the third month to the twelfth, in which 20,000 messages are written
GROUP = "club"
DAY_TOKENS = 600  # that a person may use
CONFIG = GatewayConfig(
    default_reset_policy=ResetPolicy(mode=ResetMode.BOTH, idle_minutes=600, at_hour=4, timezone="Europe/Berlin"),
    reset_by_type={ChatType.GROUP: ResetPolicy(mode=ResetMode.IDLE, idle_minutes=36 * 60)},
    group_sessions_per_user=False,
)
RULES = TurnRules(
    open_platforms=frozenset({LOOPBACK}),
    budgets=make_rules(person_day_tokens=DAY_TOKENS, all_month_usd=10**9, job_day_tokens=3000),
    memory=MemoryRules(learn=True),
    jobs=JobRules(keep_days=KEEP_DAYS),
    max_queued=50,
)

# One or a few rows for each message, conversation or person that is kept. Every other table has a bound.
GROWING_TABLES = frozenset(
    {
        *("session", "event", "turn", "delivery", "delivery_part", "usage", "read_mark", "lane_move"),
        *("memory_block", "memory_turn", "project", "lane"),
    }
)
LATE_TABLES = frozenset({"budget_window", "deleted_session"})  # they reach their bound only after more than a year
INTERNAL_TABLES = ("search", "sqlite_")  # of the database itself; the rows of the search index are events

_OPEN_WORK = """SELECT (SELECT COUNT(*) FROM turn WHERE state IN ('queued', 'running'))
    + (SELECT COUNT(*) FROM delivery WHERE state IN ('pending', 'sending'))
    + (SELECT COUNT(*) FROM job_run WHERE state = 'running') + (SELECT COUNT(*) FROM model_call)
    + (SELECT COUNT(*) FROM memory_turn WHERE ended_at IS NULL)"""


def _has_running_tasks() -> bool:
    """Whether an answer or a title is being made: a title is asked for only after the turn has ended."""
    return any(task.get_name().startswith(("palaver-turn-", "palaver-title-")) for task in asyncio.all_tasks())


async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
    """Call a metered model once, and answer as the last message asks for it."""
    held = await request.meter.hold(make_call(20, 100))
    question = str(request.messages[-1]["content"])
    await held.settle(make_usage(20, 10))
    if "nothing" not in question:  # an empty answer is a failure
        yield TextDelta(SILENT_ANSWER if "silent" in question else f"Answer to: {question[-40:]}")
    yield UsageReport(make_usage(20, 10), held.is_recorded)


@dataclass(frozen=True)
class Month:
    """What there is at the end of a month: rows of every table, and sizes."""

    rows: dict[str, int]
    database_bytes: int
    wal_bytes: int
    memory_mib: float
    objects: int  # of Palaver's own classes


@dataclass
class Simulation:
    """The gateway, its people, and everything that was accepted."""

    gateway: Gateway
    clock: FakeClock
    loopback: LoopbackAdapter
    url: str
    people: dict[str, Person]
    days: int
    pace: float = 1.0
    pages: dict[str, list[str]] = field(default_factory=dict)  # conversations on the page
    accepted: list[Receipt] = field(default_factory=list)  # since the last check
    accepted_count: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    group_message_times: list[datetime] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(SEED))
    number: int = 0
    months: list[Month] = field(default_factory=list)

    @property
    def store(self) -> SessionStore:
        return self.gateway.store

    # -- what people do ------------------------------------------------------------------------------------

    async def say(self, user: str, text: str, chat: str | None = None, **fields: Any) -> None:
        self.number += 1
        receipt = await self.loopback.say(text, user=user, chat=chat, message_id=f"m{self.number}", **fields)
        self.outcomes[receipt.outcome.value] += 1
        if receipt.turn_id is not None:
            self.accepted.append(receipt)
            self.accepted_count += 1

    async def say_on_page(self, user: str) -> None:
        person, pages = self.people[user], self.pages.setdefault(user, [])
        if not pages or self.chance.random() < 0.2:
            pages.append((await Conversations(self.store).start(person, {})).session.id)
        self.number += 1
        inbound = Inbound(
            source=build_person_source(person),
            content=f"page question {self.number}",
            session_id=SessionId(self.chance.choice(pages)),
            message_id=f"p{self.number}",
        )
        self.accepted.append(await self.gateway.inbox.accept(inbound))
        self.accepted_count += 1

    async def act(self) -> None:
        """Let each person do what comes to their mind in these hours."""
        actions = [
            (0.2, self.say_question),
            (0.1, self.say_in_group),
            (0.1, self.talk_in_group),
            (0.05, self.say_on_page),
            (0.06, self.run_command),
            (0.004, self.say_too_much),
            (0.01, self.compact),
        ]
        for user in self.people:
            for probability, action in actions:
                if self.chance.random() < probability * self.pace:
                    await action(user)

    async def say_question(self, user: str) -> None:
        await self.say(user, f"question {self.number} of {user}")

    async def say_in_group(self, user: str) -> None:
        await self.say(user, f"group question {self.number}", GROUP)

    async def talk_in_group(self, user: str) -> None:
        await self.say(user, "just talking", GROUP, is_addressed=False)
        self.group_message_times.append(self.clock.now())

    async def run_command(self, user: str) -> None:
        await self.say(user, self.chance.choice(["/restore", "/new", "/why", "/status", "/retry", "/undo"]))

    async def say_too_much(self, user: str) -> None:
        """Write more than the budget allows."""
        for _ in range(DAY_TOKENS // 25):
            await self.say(user, "and another thing")

    async def compact(self, user: str) -> None:
        for _ in range(3):
            await self.say(user, "tell me more")
        await self.settle()
        await self.say(user, "/compress")

    async def settle(self) -> None:
        """Wait until everything is answered, sent, learned and has its title."""
        self.gateway.memory_runner.wake()
        await wait_until(lambda: list_rows(self.store, _OPEN_WORK)[0][0] == 0 and not _has_running_tasks())

    async def pass_hours(self) -> None:
        for _ in range(HOURS_PER_STEP):
            self.clock.advance(hours=1)
            await self.gateway.scheduler.poll()
            await self.settle()  # a clock that jumps during a turn looks like a process that was paused
        await self.gateway.expiry_watcher.run_once()
        await self.settle()

    # -- what always holds ---------------------------------------------------------------------------------

    def check_step(self) -> None:
        self._check_answers()
        self._check_budgets()
        held = list_rows(self.store, "SELECT COUNT(*) FROM budget_window WHERE held_nanos <> 0 OR held_tokens <> 0")
        assert held == [(0,)]
        assert list_rows(self.store, "SELECT COUNT(*) FROM draft") == [(0,)]

    def _check_answers(self) -> None:
        """Every accepted message was answered once, or its failure is visible."""
        for receipt in self.accepted:
            [(state, seq, kind, no)] = list_rows(
                self.store, "SELECT state, input_seq, kind, session_no FROM turn WHERE id = $1", receipt.turn_id
            )
            self.outcomes[f"turn {state}"] += 1
            events = list_rows(
                self.store, "SELECT kind, role, body FROM event WHERE session_no = $1 AND seq >= $2", no, seq
            )
            answers = [role for _, role, body in events if role == "assistant" and _get_answered(body) == seq]
            failures = [each for each, _, body in events if each == "turn_failed" and receipt.turn_id in (body or "")]
            if kind == "answer":
                assert (len(answers), len(failures)) == ((1, 0) if state == "done" else (0, 1)), (receipt, events)
        self.accepted.clear()

    def _check_budgets(self) -> None:
        yesterday = to_micros(self.clock.now() - timedelta(days=2))
        windows = "SELECT scope, used_tokens, used_nanos FROM budget_window WHERE period = 'day' AND starts_at >= $1"
        for scope, used, nanos in list_rows(self.store, windows, yesterday):
            limit = {"person": DAY_TOKENS, "job": 3000}.get(scope)
            assert limit is None or used <= limit
            assert nanos == used  # each token costs one

    def check_day(self) -> None:
        assert find_inconsistencies(self.url) == []
        self._check_slots()
        self._check_privacy()
        untitled = (
            "SELECT id FROM session s WHERE auto_title IS NULL AND title IS NULL AND EXISTS"
            " (SELECT 1 FROM event e WHERE e.session_no = s.no AND e.kind = 'message' AND e.role = 'user')"
        )
        assert list_rows(self.store, untitled) == []

    def _check_slots(self) -> None:
        """Every slot of a job, up to its next one, is covered by exactly one run."""
        kept_since = self.clock.now() - timedelta(days=KEEP_DAYS)
        for no, slot, count in list_rows(self.store, "SELECT job_no, MIN(slot), COUNT(*) FROM job_run GROUP BY job_no"):
            job_row = self.store.engine.run(Read(partial(jobs.find_by_no, job_no=no)))
            assert job_row is not None
            if job_row.job.next_slot is None:
                continue
            first = max(from_micros(slot), kept_since)
            expected = _list_slots(job_row, first)
            covered = [
                (from_micros(at), slots)
                for at, slots in list_rows(
                    self.store,
                    "SELECT slot, slot_count FROM job_run WHERE job_no = $1 AND slot >= $2 ORDER BY slot",
                    no,
                    to_micros(first),
                )
            ]
            assert sum(slots for _, slots in covered) == len(expected), (job_row.job.name, covered, expected, count)
            assert {at for at, _ in covered} <= set(expected)

    def _check_privacy(self) -> None:
        """A conversation is listed to its own person only, unless several people share it."""
        listed: dict[str, set[str]] = {}
        for user, person in self.people.items():
            page = self.store.seen_by(person.principal).list(limit=1000)
            listed[user] = {session.id for session in page if not session.shared}
        for user, ids in listed.items():
            others: set[str] = set().union(*(each for other, each in listed.items() if other != user))
            assert not ids & others


def _get_answered(body: str | None) -> int | None:
    found = json.loads(body or "{}")
    answered = found.get("answers", found.get("extra", {}).get("answers"))
    return None if answered is None else int(answered)


def _list_slots(job_row: Any, first: datetime) -> list[datetime]:
    """List the slots of a job from `first` to the one before its next."""
    job = job_row.job
    schedule, slots = read_schedule(job.schedule), []
    after = first - timedelta(microseconds=1)
    while (found := list_next_slots(schedule, job.timezone, job.anchor, after, 1)) and found[0] < job.next_slot:
        slots.append(found[0])
        after = found[0]
    return slots


# ---- the tables --------------------------------------------------------------------------------------------


def measure_tables(store: SessionStore) -> dict[str, tuple[int, int]]:
    """Return the rows and the bytes, with indexes, of every table."""
    names = [name for (name,) in list_rows(store, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    owners = dict(list_rows(store, "SELECT name, tbl_name FROM sqlite_master WHERE type IN ('table', 'index')"))
    sizes: Counter[str] = Counter()
    for name, size in list_rows(store, "SELECT name, SUM(pgsize) FROM dbstat GROUP BY name"):
        sizes[owners.get(name, name)] += size
    return {name: (list_rows(store, f"SELECT COUNT(*) FROM {name}")[0][0], sizes[name]) for name in names}


def measure_month(store: SessionStore, file: Path) -> Month:
    gc.collect()
    memory = int(Path("/proc/self/status").read_text(encoding="ascii").partition("VmRSS:")[2].split()[0]) / 1024
    rows = {name: rows for name, (rows, _) in measure_tables(store).items()}
    wal = file.with_name(f"{file.name}-wal").stat().st_size
    objects = sum(type(each).__module__.startswith("palaver.") for each in gc.get_objects())
    return Month(rows, file.stat().st_size, wal, memory, objects)


def compute_bounds(simulation: Simulation, rows: dict[str, int]) -> dict[str, int]:
    """Return the most rows that each table may have, by the rules of docs/reference/retention.md."""
    store, people = simulation.store, len(simulation.people)
    month_ago = to_micros(simulation.clock.now() - timedelta(days=31))
    recent = list_rows(store, "SELECT COUNT(*) FROM inbound_message WHERE received_at >= $1", month_ago)[0][0]
    week_ago = simulation.clock.now() - timedelta(days=8)
    runs_per_day = 24 + 6  # of all jobs
    runs = runs_per_day * (KEEP_DAYS + 1) + rows["job"]
    messages = simulation.accepted_count + rows["job_run"]
    fixed = dict.fromkeys(("audience", "person", "identity", "account", "lane", "project"), 10 * people + 10)
    written = simulation.number + runs  # messages and commands
    return fixed | {
        "audience_member": 20 * people,
        "session": written,
        "event": 12 * written,
        "turn": 2 * messages + simulation.number,
        "delivery": 3 * written,
        "delivery_part": 3 * written,
        "usage": 3 * messages + rows["session"] + rows["memory_turn"] + runs_per_day * simulation.days,
        "read_mark": people * rows["session"],
        "lane_move": written,
        "memory_block": rows["session"],
        "memory_turn": rows["session"] + simulation.days,
        "inbound_message": recent,
        "group_message": sum(at > week_ago for at in simulation.group_message_times) + runs,
        "job": 6,
        "job_run": runs,
        "budget_window": (2 + people + 6 + 1) * (simulation.days + 4),
        "deleted_session": 1000,
        "memory": RULES.memory.max_memories * people,
        "named_lease": 5,
        "platform_account": 2,
        "message_rate": people,
        "access_change": 1,
        "migration": 100,  # one for each change of the schema
    }


def report_tables(tables: dict[str, tuple[int, int]], bounds: dict[str, int]) -> None:
    lines = [f"{'table':<24}{'rows':>8}{'at most':>9}{'bytes':>10}"]
    for name, (rows, size) in sorted(tables.items(), key=lambda item: -item[1][1]):
        lines.append(f"{name:<24}{rows:>8}{bounds.get(name, 0):>9}{size:>10}")
    lines.append(f"{'all':<41}{sum(size for _, size in tables.values()):>10}")
    sys.stdout.write("\n".join(["", *lines, ""]))


# ---- the test ----------------------------------------------------------------------------------------------


async def add_people(store: SessionStore, loopback: LoopbackAdapter, names: Sequence[str]) -> dict[str, Person]:
    people = {}
    for user in names:
        source = loopback.get_source(user)
        await make_member(store, source)
        person = await store.aio.get_or_create_person(source)
        await store.engine.arun(Write(partial(accounts.open_account, person=person, now=0)))
        people[user] = await store.aio.get_or_create_person(source)
    return people


def add_jobs(store: SessionStore, loopback: LoopbackAdapter) -> None:
    ada, bob, cem = (loopback.get_source(user) for user in PEOPLE)
    insert_job(store, ada, "0 7 * * *", name="News", prompt="What is new?")
    insert_job(store, bob, "every 1h", name="Watch", prompt="Be silent.", runs_left=14)
    insert_job(store, bob, "30 9 * * *", name="Broken", prompt="Say nothing.")
    insert_job(store, cem, "2026-03-29 18:00", name="Once", prompt="Remind me.")
    insert_job(store, cem, "0 8 * * 1,4", name="Report", prompt="Report.")


@pytest.mark.soak
async def test_two_months(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    simulation, tables = await simulate(START, DAYS, tmp_path, monkeypatch, caplog)
    check_tables(simulation, tables)
    check_variety(simulation)


@pytest.mark.soak
async def test_a_year_with_a_hundred_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    simulation, tables = await simulate(
        START, DAYS_OF_YEAR, tmp_path, monkeypatch, caplog, names=CROWD, pace=CROWD_PACE, check_days=DAYS_OF_MONTH
    )
    report_months(simulation.months)
    check_tables(simulation, tables)
    check_growth(simulation.months)
    check_variety(simulation)


async def test_the_days_around_a_change_of_the_clocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    simulation, tables = await simulate(CLOCK_CHANGE - timedelta(days=4), 6, tmp_path, monkeypatch, caplog)
    check_tables(simulation, tables)


async def simulate(
    start: datetime,
    days: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    names: Sequence[str] = PEOPLE,
    pace: float = 1.0,
    check_days: int = CHECK_DAYS,
) -> tuple[Simulation, dict[str, tuple[int, int]]]:
    """Let the days pass, with checks of what always holds; return the tables at the end."""
    monkeypatch.setattr(cleanup, "BATCH_PAUSE_SECONDS", 0)
    clock, loopback = FakeClock(start), LoopbackAdapter()
    url = f"sqlite:///{tmp_path}/palaver.db"
    with SessionStore.open(url, config=CONFIG, clock=clock) as store:
        agent = ScriptedAgent(answer, price=NANO_PER_TOKEN, can_write_titles=True)
        gateway = Gateway(store, agent, profile=AgentProfile(), rules=RULES, adapters=[loopback])
        clean_up = Cleanup(store, Attachments(store, tmp_path / "attachments"), lambda: RULES)
        async with gateway.run():
            await gateway.memory_runner.start()
            people = await add_people(store, loopback, names)
            add_jobs(store, loopback)
            simulation = Simulation(gateway, clock, loopback, url, people, days, pace)
            for step in range(days * 24 // HOURS_PER_STEP):
                await simulation.pass_hours()
                await simulation.act()
                await simulation.settle()
                simulation.check_step()
                if step % (24 // HOURS_PER_STEP) == 0:
                    await clean_up.run_once()
                if step % (check_days * 24 // HOURS_PER_STEP) == 0:
                    simulation.check_day()
                if (step + 1) % (DAYS_OF_MONTH * 24 // HOURS_PER_STEP) == 0:
                    await clean_up.run_once()
                    agent.requests.clear()  # what the stand-ins remember is not the gateway's
                    loopback.sent.clear()
                    loopback.messages.clear()
                    loopback.typing.clear()
                    loopback.drafts.clear()
                    caplog.clear()
                    simulation.months.append(measure_month(store, Path(url.removeprefix("sqlite:///"))))
            await clean_up.run_once()
            simulation.check_day()
            return simulation, measure_tables(store)


def check_tables(simulation: Simulation, tables: dict[str, tuple[int, int]]) -> None:
    """Check that no table is larger than its bound."""
    with SessionStore.open(simulation.url, config=CONFIG, clock=simulation.clock) as store:
        simulation.gateway.store = store
        bounds = compute_bounds(simulation, {name: rows for name, (rows, _) in tables.items()})
    report_tables(tables, bounds)
    too_large = {name: (rows, bounds.get(name, 0)) for name, (rows, _) in tables.items() if rows > bounds.get(name, 0)}
    assert {name: each for name, each in too_large.items() if not name.startswith(INTERNAL_TABLES)} == {}
    assert sum(size for _, size in tables.values()) < 2500 * tables["event"][0] + 2_000_000


def check_growth(months: list[Month]) -> None:
    """Check that nothing grows but what people keep: the second half of the year has no more of it than the first."""
    first_half, second_half = months[1:6], months[6:]
    grown = {}
    for name in months[-1].rows.keys() - GROWING_TABLES - LATE_TABLES:
        before, after = (max(month.rows.get(name, 0) for month in half) for half in (first_half, second_half))
        if after > 1.25 * before + 10 and not name.startswith(INTERNAL_TABLES):
            grown[name] = (before, after)
    assert grown == {}
    assert max(month.wal_bytes for month in months) <= MAX_WAL_BYTES
    assert months[-1].objects - months[2].objects <= MAX_NEW_OBJECTS


def report_months(months: list[Month]) -> None:
    names = sorted(months[-1].rows, key=lambda name: -months[-1].rows[name])
    lines = [f"{'rows':<24}" + "".join(f"{number:>8}" for number in range(1, len(months) + 1))]
    lines += [
        f"{name:<24}" + "".join(f"{month.rows.get(name, 0):>8}" for month in months)
        for name in names
        if months[-1].rows[name] and not name.startswith(INTERNAL_TABLES)
    ]
    for name, scale in (("database_bytes", 1024), ("wal_bytes", 1024), ("memory_mib", 1), ("objects", 1)):
        label = name.replace("bytes", "KiB")
        lines.append(f"{label:<24}" + "".join(f"{getattr(month, name) / scale:>8.0f}" for month in months))
    sys.stdout.write("\n".join(["", *lines, ""]))


def check_variety(simulation: Simulation) -> None:
    """Check that everything has happened that the simulation is about."""
    with SessionStore.open(simulation.url, config=CONFIG, clock=simulation.clock) as store:
        states = Counter(dict(list_rows(store, "SELECT state, COUNT(*) FROM job_run GROUP BY state")))
        reasons = dict(list_rows(store, "SELECT COALESCE(end_reason, ''), COUNT(*) FROM session GROUP BY end_reason"))
        kinds = dict(list_rows(store, "SELECT kind, COUNT(*) FROM event GROUP BY kind"))
        job_states = dict(list_rows(store, "SELECT name, state || COALESCE(': ' || state_reason, '') FROM job"))
        memory_turns = dict(list_rows(store, "SELECT kind, COUNT(*) FROM memory_turn GROUP BY kind"))
        before = to_micros(simulation.clock.now() - timedelta(days=31))
        old_bodies = list_rows(
            store,
            "SELECT COUNT(*) FROM delivery_part p JOIN delivery d ON d.no = p.delivery_no"
            " WHERE p.state = 'sent' AND p.body <> '' AND d.created_at < $1",
            before,
        )
    sys.stdout.write(f"{simulation.outcomes} {states} {reasons} {kinds} {job_states} {memory_turns}\n")
    assert states["done"]
    assert job_states.get("Broken", "").startswith("paused")
    assert not {"Once", "Watch"} & job_states.keys()  # they were over, and are gone
    assert min(reasons.get(reason, 0) for reason in ("idle", "daily", "manual")) > 0
    assert old_bodies == [(0,)]
    assert min(kinds.get(kind, 0) for kind in ("compacted", "turn_failed", "reopened")) > 0
    assert min(memory_turns.get(kind, 0) for kind in ("expiry", "compaction")) > 0
    assert simulation.outcomes["turn failed"] > 0  # the budget ran out
