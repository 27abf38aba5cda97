"""The services that every route can use, and the common types of the API's JSON. `palaver.app` builds the services.

The JSON of a noun is in the `wire.py` of its room; that of conversations and their logs, as a caller may see them, in
`web/wire.py`. A schema used by one route module is defined there. Classes named `…In` are request bodies,
`…Json` responses.

Always true: field names are in snake_case, times in ISO 8601 and UTC, ids are strings, amounts of money are decimal
strings. A field without a value is null, never missing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, create_model

from palaver.core.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from palaver.accounts.accounts import Accounts
    from palaver.gateway.completions import Completions
    from palaver.gateway.gateway import Gateway
    from palaver.live.clients import LiveClients
    from palaver.media.attachments import Attachments
    from palaver.operation.erasure import Erasures
    from palaver.operation.health_check import HealthCheck
    from palaver.operation.metrics import MetricsReader
    from palaver.operation.retention import Retention
    from palaver.push.notifier import PushNotifier
    from palaver.sessions.conversations import Conversations
    from palaver.sessions.shares import Shares
    from palaver.settings.live_settings import LiveSettings
    from palaver.settings.model_providers import ModelCatalog
    from palaver.transfer.archive import PersonExports
    from palaver.transfer.documents import Documents
    from palaver.transfer.personal_imports import PersonalImports
    from palaver.turns.commands.status import Policies

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebState:
    """The services of one server."""

    gateway: Gateway
    accounts: Accounts
    attachments: Attachments
    completions: Completions
    conversations: Conversations
    documents: Documents
    erasures: Erasures
    health: HealthCheck
    imports: PersonalImports
    live: LiveClients
    metrics: MetricsReader
    model_catalog: ModelCatalog
    person_exports: PersonExports
    policies: Policies
    push: PushNotifier
    retention: Retention
    settings: LiveSettings
    shares: Shares
    base_path: str = ""  # the path below which a reverse proxy serves us, without a slash at the end
    public_host: str | None = None
    public_url: str | None = None  # the configured one, without a slash at the end
    network_url: str | None = None  # for other machines in the network, if the server listens beyond this machine
    trusted_proxies: tuple[str, ...] = ()

    async def close_streams(self) -> None:
        """End the streams that would keep connections open when the server stops."""
        await self.live.stop()
        await self.gateway.temporary_chats.stop()
        await self.imports.stop()


async def _get_state(request: Request) -> WebState:
    state: WebState = request.app.state.palaver
    return state


State = Annotated[WebState, Depends(_get_state)]


MAX_KEY_CHARS = 128
MAX_SEQ = 2**53  # the largest integer that JavaScript clients can represent exactly

IdempotencyKey = Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY_CHARS, pattern=r"^[!-~]+$")]
# A moment in a query; without a time zone it is in UTC, and a date is its first moment.
Moment = Annotated[
    datetime, AfterValidator(lambda moment: moment if moment.utcoffset() is not None else moment.replace(tzinfo=UTC))
]
Name = Annotated[str, Field(min_length=1, max_length=200)]
ShortText = Annotated[str, StringConstraints(max_length=1000)]  # its exact limit, if any, is checked further down
Seq = Annotated[int, Field(ge=0, le=MAX_SEQ)]
Cursor = Annotated[str | None, Query(description="The cursor of an earlier page.")]


class RequestModel(BaseModel):
    """Base class of request bodies; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ActionIn(RequestModel):
    """An action without parameters."""

    key: IdempotencyKey | None = Field(
        None, description="Your own id for this request. Repeating it with the same key has no effect."
    )


def with_fields(fields: Mapping[str, tuple[Any, Any]]) -> Callable[[type[M]], type[M]]:
    """Add fields to a request body: for each name its type and its default, `...` if it is required."""

    def decorate(body: type[M]) -> type[M]:
        extended: type[M] = create_model(  # type: ignore[call-overload]
            body.__name__,
            __base__=body,
            __doc__=body.__doc__,
            __module__=body.__module__,
            **fields,
        )
        return extended

    return decorate
