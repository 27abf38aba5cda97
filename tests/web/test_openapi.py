"""The OpenAPI document is true: whatever is sent, every answer is one it tells of, and never a mistake of ours."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.strategies import one_of
from requests.adapters import HTTPAdapter
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from support.web import Web, api_document, serving_web

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOCUMENT = api_document()
OPERATIONS = [
    (method.upper(), path, operation)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
]
NEVER_ENDS = {"follow_live"}  # it is a stream: its own tests read it
EXAMPLES = 12  # for each operation
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


class _From(HTTPAdapter):
    """Connects from one of the many addresses that this machine has for itself."""

    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs, source_address=(self._address, 0))


class Served:
    """A server on a thread of its own, for tools that know no event loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready = threading.Event()
        self._addresses = iter(range(1, 255))
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        async with serving_web(f"sqlite:///{self._folder}/palaver.db", self._folder) as self.web:
            owner = await self.web.client()
            self.known = {"session_id": await self.web.talk(owner, "hello", "and again")}
            made = await owner.post("/api/projects", json={"name": "Lisbon"})
            self.known["project_id"] = made.json()["id"]
            self._ready.set()
            await self._over.wait()

    def signed_in(self) -> requests.Session:
        """The owner, signed in afresh, from an address of their own: each may try only so often."""
        web: Web = self.web
        link = asyncio.run_coroutine_threadsafe(web.state.accounts.owner_link(), self._loop).result(20)
        session = requests.Session()
        session.mount("http://", _From(f"127.0.1.{next(self._addresses)}"))
        session.headers["Origin"] = web.url
        assert session.post(f"{web.url}/api/sign-in/link", json={"token": link}, timeout=20).ok
        return session

    def __enter__(self) -> Served:
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(20)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("openapi")) as server:
        yield server


@pytest.mark.parametrize(
    ("method", "path"),
    [(method, path) for method, path, operation in OPERATIONS if operation["operationId"] not in NEVER_ENDS],
)
def test_whatever_is_sent_gets_an_answer_that_is_documented(served: Served, method: str, path: str) -> None:
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.config.update(base_url=served.web.url)
    client = served.signed_in()
    number = iter(range(10_000))

    operation = schema[path][method]
    cases = [operation.as_strategy()]
    if operation.query or operation.body:  # there is something that can be wrong
        cases.append(operation.as_strategy(GenerationMode.NEGATIVE))

    @given(case=one_of(cases))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        verbosity=Verbosity.quiet,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any) -> None:
        if next(number) % 2 and case.path_parameters:  # what exists is more interesting than what does not
            case.path_parameters |= {name: served.known[name] for name in case.path_parameters if name in served.known}
        response = case.call(session=client, timeout=20)
        case.validate_response(response, checks=CHECKS)

    check()
    client.close()


def test_every_operation_has_a_name_of_its_own_and_a_summary() -> None:
    names = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert sorted(names) == sorted(set(names))
    assert [name for name, (_, _, operation) in zip(names, OPERATIONS, strict=True) if "summary" not in operation] == []


def test_every_error_that_is_documented_has_the_one_shape() -> None:
    for _, path, operation in OPERATIONS:
        if path.startswith("/v1/"):
            continue  # there errors have the shape that OpenAI's clients know
        for status, response in operation["responses"].items():
            if status.startswith(("4", "5")):
                assert response["content"]["application/json"]["schema"]["$ref"].endswith("/ErrorOut"), (path, status)
