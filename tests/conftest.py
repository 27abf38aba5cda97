"""Fixtures that many tests use: stores and gateways on each database engine, a PostgreSQL server, a fake clock."""

from __future__ import annotations

import gc
import os
import tempfile
from contextlib import AsyncExitStack, ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from hypothesis import HealthCheck, settings

from palaver import GatewayConfig, Platform, SessionSource, SessionStore
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.clock import SystemClock
from palaver.core.engines import postgres_connection
from palaver.gateway.gateway import Gateway
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter
from palaver.testing import FakeClock, ScriptedAgent
from support.engine_coverage import EngineCoverage
from support.postgres_server import run_server
from support.warm_connections import keep_connections, keep_no_connections
from support.warm_process import WarmLauncher

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from palaver.agent.base import Agent
    from palaver.sessions.context import Redactor
    from scenarios.gateway_harness import GatewayLauncher
    from support.gateway import StartGateway

# `make test` tries the same examples every time, so that the same code has the same result. `make soak` tries many
# more, and others each time: HYPOTHESIS_PROFILE=thorough.
settings.register_profile(
    "palaver",
    max_examples=16,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.register_profile(
    "thorough", settings.get_profile("palaver"), max_examples=400, derandomize=False, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "palaver"))

BROWSER_TESTS = Path(__file__).parent / "browser"

# Every HTTP client reads all certificate authorities of the machine, which takes as long as a whole test. Tests talk
# only to this machine, without TLS, so one certificate is enough. Processes that tests start inherit this.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "support" / "certificate.pem")


ENGINE_FIXTURES = ("store_url", "store_maker")  # each is an empty database of one engine, or makes some


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(EngineCoverage())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--soak", action="store_true", help="run everything: tests marked soak, and all tests on both engines"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that needs a database on SQLite; with the mark `both_engines`, or in a soak run, on PostgreSQL too."""
    is_marked = metafunc.definition.get_closest_marker("both_engines") is not None
    is_soak = metafunc.config.getoption("--soak") and not metafunc.definition.path.is_relative_to(BROWSER_TESTS)
    engines = ["sqlite", "postgres"] if is_marked or is_soak else ["sqlite"]
    chosen = {name for mark in metafunc.definition.iter_markers("parametrize") for name in _list_names(mark.args[0])}
    for fixture in ENGINE_FIXTURES:
        if fixture in metafunc.fixturenames and fixture not in chosen:
            metafunc.parametrize(fixture, engines, indirect=True)


def _list_names(names: str | Sequence[str]) -> list[str]:
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def pytest_collection() -> None:
    gc.disable()  # thousands of tests are collected, and none of them becomes garbage


def pytest_collection_finish() -> None:
    """Leave everything that exists by now out of garbage collection, so that it takes no time during the tests."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need PostgreSQL or a browser, for `-m`; leave out those of a soak run, unless this is one."""
    if not config.getoption("--soak"):
        left_out = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
    for item in items:
        callspec = getattr(item, "callspec", None)
        parameters = callspec.params.values() if callspec else ()
        is_on_postgres = any(isinstance(value, str) and value in {"postgres", "postgres_url"} for value in parameters)
        if is_on_postgres or "postgres" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.postgres)
        if item.path.is_relative_to(BROWSER_TESTS):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def launcher() -> Iterator[WarmLauncher]:
    """Starts `palaver` as a process without the time that Python and its imports take."""
    with WarmLauncher() as launcher:
        yield launcher


@pytest.fixture(scope="session")
def started_gateway_launcher() -> Iterator[GatewayLauncher]:
    """Starts the gateways of `scenarios/`."""
    from scenarios.gateway_harness import GatewayLauncher

    with GatewayLauncher() as started:
        yield started


@pytest.fixture
def gateway_launcher(started_gateway_launcher: GatewayLauncher) -> Iterator[GatewayLauncher]:
    """Starts gateways in processes, and kills them after the test."""
    yield started_gateway_launcher
    started_gateway_launcher.kill_all()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server that runs during the test session."""
    with run_server() as (server, _):
        with postgres_connection.connect(server.get_uri()) as connection:
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):  # tests kill clients, never the machine
                connection.execute(f"ALTER SYSTEM SET {setting} = off")
            # Plans must not depend on which tests ran before the server last looked at the tables.
            connection.execute("ALTER SYSTEM SET autovacuum_analyze_threshold = 2000000000")
            connection.execute("SELECT pg_reload_conf()")
        yield server.get_uri()


@pytest.fixture(scope="session")
def postgres_database(postgres: str) -> Iterator[str]:
    """The URL of a database with the current schema; `store_url` empties it before each test."""
    SessionStore.open(postgres).close()
    with keep_connections(postgres):
        yield postgres


@pytest.fixture
def new_connections() -> Iterator[None]:
    """Let every store of a test open and close all its connections, for tests that count or break them."""
    with keep_no_connections():
        yield


# Deleting the few rows of a test is ten times as fast as TRUNCATE, which makes new files for all tables and indexes.
# As a replica, PostgreSQL runs no triggers and checks no foreign keys.
EMPTY_ALL_TABLES = """
DO $$
DECLARE
    found RECORD;
    deleted BIGINT;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR found IN
        SELECT oid, relname, relkind FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S') AND relname <> 'migration'
    LOOP
        IF found.relkind = 'S' THEN
            PERFORM setval(found.oid, 1, false);
        ELSE
            EXECUTE format('DELETE FROM %I', found.relname);
            GET DIAGNOSTICS deleted = ROW_COUNT;
            IF deleted > 1000 THEN
                EXECUTE format('TRUNCATE %I CASCADE', found.relname);
            END IF;
        END IF;
    END LOOP;
END $$
"""


def empty_database(url: str) -> str:
    with postgres_connection.connect(url) as connection:
        connection.execute(EMPTY_ALL_TABLES)
    return url


@cache
def read_empty_database() -> bytes:
    """Return an SQLite file with the current schema."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "palaver.db"
        SessionStore.open(path).close()
        return path.read_bytes()


def create_sqlite_database(folder: Path) -> str:
    """Create an empty database and return its URL. Creating its tables one by one takes ten times as long."""
    path = folder / "palaver.db"
    path.write_bytes(read_empty_database())
    return f"sqlite:///{path}"


@pytest.fixture
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database: SQLite, and with `@pytest.mark.both_engines` PostgreSQL as well."""
    if request.param == "sqlite":
        return create_sqlite_database(tmp_path)
    return empty_database(request.getfixturevalue("postgres_database"))


class OpenStore(Protocol):
    def __call__(self, config: GatewayConfig | None = None, **options: Any) -> SessionStore: ...


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def open_store(store_url: str, clock: FakeClock) -> Iterator[OpenStore]:
    """Opens stores on the test's database and closes them after the test."""
    with ExitStack() as stack:

        def open_store(config: GatewayConfig | None = None, **options: Any) -> SessionStore:
            options.setdefault("clock", clock)
            return stack.enter_context(SessionStore.open(store_url, config=config, **options))

        yield open_store


@pytest.fixture
def store(open_store: OpenStore) -> SessionStore:
    return open_store()


@pytest.fixture
def sqlite_store(tmp_path: Path, clock: FakeClock) -> Iterator[SessionStore]:
    with SessionStore.open(create_sqlite_database(tmp_path), clock=clock) as opened:
        yield opened


@pytest.fixture
def dm() -> Callable[..., SessionSource]:
    """Makes the source of a person's direct messages on Telegram."""

    def make(user: str = "ada", **fields: Any) -> SessionSource:
        return SessionSource("telegram", user, user_id=user, user_name=user.title(), **fields)

    return make


@pytest.fixture
def group() -> Callable[..., SessionSource]:
    """Makes the source of a person's messages in a group on Discord."""

    def make(user: str = "ada", chat: str = "club", **fields: Any) -> SessionSource:
        return SessionSource(
            "discord", chat, chat_name=chat.title(), chat_type="group", user_id=user, user_name=user.title(), **fields
        )

    return make


OPEN_PLATFORMS = frozenset({LOOPBACK, Platform.TELEGRAM, Platform.DISCORD})


@pytest.fixture
async def start_gateway(store_url: str) -> AsyncIterator[StartGateway]:
    """Starts gateways on the test's database, each with its own store, and stops them after the test."""
    async with AsyncExitStack() as stack:

        async def start(
            agent: Agent | None = None,
            *,
            loopback: LoopbackAdapter | None = None,
            config: Any = None,
            clock: Any = None,
            profile: AgentProfile | None = None,
            redactor: Redactor | None = None,
            is_server: bool = False,
            **rules: Any,
        ) -> Gateway:
            store = stack.enter_context(SessionStore.open(store_url, config=config, clock=clock or SystemClock()))
            rules.setdefault("open_platforms", OPEN_PLATFORMS)
            gateway = Gateway(
                store,
                agent or ScriptedAgent(),
                profile=profile or AgentProfile(),
                rules=TurnRules(**rules),
                adapters=[loopback] if loopback else [],
                redactor=redactor,
                is_server=is_server,
            )
            await stack.enter_async_context(gateway.run(grace_seconds=5))
            return gateway

        yield start
