"""The OpenAPI document is correct: every request gets a documented response, and never an internal error."""

from __future__ import annotations

import asyncio
import threading
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
import requests
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.strategies import one_of
from requests.adapters import HTTPAdapter

from support.web import WebServer, build_api_document, run_web_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hypothesis.strategies import SearchStrategy

DOCUMENT = build_api_document()
OPERATIONS = [
    (method.upper(), path, operation)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
]
STREAMS = {"open_live_stream"}  # tested in `test_live.py`
EXAMPLES_PER_OPERATION = settings().max_examples // 4
# For an operation without a query and a body, only the ids in its path differ: a random one, then an existing one.
EXAMPLES_PER_PATH = max(settings().max_examples // 12, 2)


class _SourceAddressAdapter(HTTPAdapter):
    """Connects from one of this machine's many loopback addresses."""

    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs, source_address=(self._address, 0))


class ServerThread:
    """A server in its own thread, for synchronous tools."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready = threading.Event()
        self._addresses = iter(range(1, 255))
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        async with run_web_server(f"sqlite:///{self._folder}/palaver.db", self._folder) as self.web:
            owner = await self.web.sign_in()
            self.existing_ids = {"session_id": await self.web.create_conversation(owner, "hello", "and again")}
            project = await owner.post("/api/projects", json={"name": "Lisbon"})
            self.existing_ids["project_id"] = project.json()["id"]
            self._ready.set()
            await self._stopped.wait()

    def sign_in(self) -> requests.Session:
        """Sign the owner in again, from a new address, because sign-ins are limited per address."""
        web: WebServer = self.web
        link = asyncio.run_coroutine_threadsafe(web.state.accounts.create_owner_link(), self._loop).result(20)
        session = requests.Session()
        session.mount("http://", _SourceAddressAdapter(f"127.0.1.{next(self._addresses)}"))
        session.headers["Origin"] = web.url
        assert session.post(f"{web.url}/api/sign-in/link", json={"token": link}, timeout=20).ok
        return session

    def __enter__(self) -> ServerThread:
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(20)


class Checker:
    """Makes requests of the document and checks responses, with schemathesis, which is slow to import."""

    def __init__(self, url: str) -> None:
        import schemathesis
        from schemathesis.checks import not_a_server_error
        from schemathesis.specs.openapi import checks

        self._schema = schemathesis.openapi.from_dict(deepcopy(DOCUMENT))
        self._schema.config.update(base_url=url)
        self._checks = [
            not_a_server_error,
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_schema_conformance,
        ]

    def generate_cases(self, method: str, path: str) -> SearchStrategy[Any]:
        """Generate valid requests, and invalid ones if there is something that can be invalid."""
        from schemathesis.generation import GenerationMode

        operation = self._schema[path][method]
        valid = operation.as_strategy()
        if operation.query or operation.body:
            return one_of(valid, operation.as_strategy(GenerationMode.NEGATIVE))
        return valid

    def check(self, case: Any, response: requests.Response) -> None:
        case.validate_response(response, checks=self._checks)


@pytest.fixture(scope="module")
def checker(server: ServerThread) -> Checker:
    return Checker(server.web.url)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    with ServerThread(tmp_path_factory.mktemp("openapi")) as thread:
        yield thread


def has_input(operation: dict[str, Any]) -> bool:
    parameters = operation.get("parameters", ())
    return "requestBody" in operation or any(each["in"] == "query" for each in parameters)


@pytest.mark.parametrize(
    ("method", "path", "examples"),
    [
        (method, path, EXAMPLES_PER_OPERATION if has_input(operation) else EXAMPLES_PER_PATH)
        for method, path, operation in OPERATIONS
        if operation["operationId"] not in STREAMS
    ],
)
def test_every_request_gets_a_documented_response(
    server: ServerThread, checker: Checker, method: str, path: str, examples: int
) -> None:
    client = server.sign_in()
    counter = iter(range(10_000))
    parameters = DOCUMENT["paths"][path][method.lower()].get("parameters", ())
    headers = {each["name"].lower() for each in parameters if each["in"] == "header"}

    @given(case=checker.generate_cases(method, path))
    @settings(
        max_examples=examples,
        deadline=None,
        verbosity=Verbosity.quiet,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any) -> None:
        if next(counter) % 2 and case.path_parameters:  # half of the cases use existing resources
            case.path_parameters |= {
                name: server.existing_ids[name] for name in case.path_parameters if name in server.existing_ids
            }
        # Other headers can make it invalid HTTP, which the server refuses before it is a request of the API.
        case.headers = {name: value for name, value in case.headers.items() if name.lower() in headers}
        response = case.call(session=client, timeout=60)  # one operation starts a process
        checker.check(case, response)

    check()
    client.close()


def test_every_operation_has_a_unique_id_and_a_summary() -> None:
    names = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert sorted(names) == sorted(set(names))
    assert [name for name, (_, _, operation) in zip(names, OPERATIONS, strict=True) if "summary" not in operation] == []


def test_every_documented_error_has_the_common_shape() -> None:
    for _, path, operation in OPERATIONS:
        if path.startswith("/v1/"):
            continue  # their errors have OpenAI's format
        for status, response in operation["responses"].items():
            if status.startswith(("4", "5")):
                assert response["content"]["application/json"]["schema"]["$ref"].endswith("/ErrorOut"), (path, status)


# The text of messages has its limit in the inbox, where it is the same for every platform.
TEXTS_WITH_A_LIMIT_ELSEWHERE = {"MessageIn.content", "EditIn.content", "ChatMessage.content"}


def list_unlimited_texts(schema: dict[str, Any], name: str, inside: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the names of all texts in the schema of a request that may have any length."""
    if "$ref" in schema:
        model = schema["$ref"].rpartition("/")[2]
        if model not in inside:
            yield from list_unlimited_texts(DOCUMENT["components"]["schemas"][model], model, inside | {model})
        return
    if schema.get("type") == "string" and not {"maxLength", "enum", "const", "format"} & schema.keys():
        yield name
    parts = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *([schema["items"]] if "items" in schema else ())]
    for part in parts:
        yield from list_unlimited_texts(part, name, inside)
    for key, value in schema.get("properties", {}).items():
        yield from list_unlimited_texts(value, f"{name}.{key}", inside)


def test_every_text_in_a_request_has_a_limit() -> None:
    schemas = [
        content["schema"]
        for _, _, operation in OPERATIONS
        for content in operation.get("requestBody", {}).get("content", {}).values()
    ]
    assert {name for schema in schemas for name in list_unlimited_texts(schema, "")} == TEXTS_WITH_A_LIMIT_ELSEWHERE
