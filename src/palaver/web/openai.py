"""The door for programs that speak as OpenAI's clients do: `/v1/models` and `/v1/chat/completions`.

Here calls are read and answers written in OpenAI's shapes, errors included; what a call means is decided in
`services/completions.py`. Parameters that would change how the agent works (temperature and the like) are read over: it
is the operator's agent, with its own settings and its own tools.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import secrets
import time
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from palaver.domain.errors import InvalidInput, NotFound, PalaverError
from palaver.domain.inbound import Outcome
from palaver.domain.text import storable
from palaver.domain.turn import TurnState
from palaver.domain.usage import TurnUsage
from palaver.services.completions import Answered, Call, Completions, Image, is_answered, message_of
from palaver.web.auth import SignedIn, needs
from palaver.web.errors import STATUSES, Refused
from palaver.web.openai_schemas import (
    DEFAULT,
    ChatCall,
    ChatCompletion,
    Choice,
    CompletionUsage,
    ModelList,
    ModelOut,
    OpenAIError,
    Said,
)
from palaver.web.sse import EventStream
from palaver.web.state import State

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping

    from palaver.domain.account import Signed
    from palaver.services.completions import Accepted
    from palaver.web.state import WebState

HEADER: Final = "X-Palaver-Session"
_DATA_URL: Final = "data:image/"
_TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES: Final = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class NoSuchModel(NotFound):
    """There is no such model here."""


class AnswerFailed(PalaverError):
    """The agent could not answer."""


# ---- errors ----------------------------------------------------------------------------------------------


class _Route(APIRoute):
    """A route whose errors leave in OpenAI's shape."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(step) for step in first["loc"][1:])
                return _error(400, f"{where}: {first['msg']}", param=where or None)
            except HTTPException as error:
                return _error(error.status_code, str(error.detail))
            except PalaverError as error:
                return _told(error)

        return handled


def _told(error: PalaverError) -> JSONResponse:
    status = _status(error)
    headers = {}
    if isinstance(error, AnswerFailed):
        headers["x-should-retry"] = "false"  # the message is kept, and a second one would be asked twice
    wait = getattr(error, "retry_after", None)
    if wait is not None:
        headers["Retry-After"] = str(int(wait) + 1)
    return _error(status, str(error), code=_CODES.get(status) or error.code, headers=headers)


def _status(error: PalaverError) -> int:
    if isinstance(error, AnswerFailed):
        return 502
    if isinstance(error, Refused):
        return 429
    status = next(number for kind, number in STATUSES if isinstance(error, kind))
    return 400 if status == 422 else status


def _error(
    status: int,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    return JSONResponse(_error_body(status, message, code=code, param=param), status, dict(headers or {}))


def _error_body(status: int, message: str, *, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    kind = _TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": storable(message), "type": kind, "param": param, "code": code}}


_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": OpenAIError} for status in (400, 401, 403, 404, 413, 429, 500, 502, 503)
}
router = APIRouter(prefix="/v1", tags=["openai"], route_class=_Route, responses=_ERRORS)


# ---- models ----------------------------------------------------------------------------------------------


@router.get("/models", dependencies=[needs("chat")])
async def openai_models(state: State, _signed: SignedIn) -> ModelList:
    """The models. `palaver` is whatever a conversation uses: the one chosen for it, or the default."""
    return ModelList(data=[ModelOut(id=name) for name in _models(state)])


@router.get("/models/{model:path}", dependencies=[needs("chat")])
async def openai_model(model: str, state: State, _signed: SignedIn) -> ModelOut:
    """One of them."""
    if model not in _models(state):
        raise NoSuchModel(f"there is no model {model}")
    return ModelOut(id=model)


def _models(state: WebState) -> list[str]:
    return list(dict.fromkeys([DEFAULT, *state.gateway.agent.models()]))


# ---- calls -----------------------------------------------------------------------------------------------


@router.post(
    "/chat/completions",
    dependencies=[needs("chat")],
    response_model=ChatCompletion,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def openai_chat_completions(
    call: ChatCall,
    state: State,
    signed: SignedIn,
    x_palaver_session: Annotated[str | None, Header(description="The id of a conversation to go on with.")] = None,
    idempotency_key: Annotated[
        str | None, Header(max_length=128, description="The same call twice with the same key is one message.")
    ] = None,
) -> Response:
    """Answer the last message of a call.

    Without a conversation to go on with, a new one begins with the messages before the last one, unless they are word
    for word what was said in a conversation that began through this door: then that one goes on. Whoever hangs up does
    not stop the answer; it is kept in its conversation.
    """
    door = Completions(state.gateway, state.files)
    accepted = await door.ask(signed.person, _call(call, x_palaver_session, idempotency_key))
    if accepted.receipt.outcome is Outcome.REFUSED:
        raise Refused(accepted.receipt.reply or "this message was not taken")
    answer = _Answer(call.model, accepted.session_id)
    headers = {HEADER: accepted.session_id}
    spoken = _spoken(door, signed, accepted)
    if call.stream:
        with_usage = call.stream_options is not None and call.stream_options.include_usage
        stream = EventStream(_chunks(answer, spoken, with_usage=with_usage))
        stream.headers.update(headers)
        return stream
    async with contextlib.aclosing(spoken):
        async for each in spoken:
            if isinstance(each, Answered):
                _check_answered(each)
                return JSONResponse(answer.whole(each), headers=headers)
    raise AnswerFailed


def _call(call: ChatCall, header: str | None, key: str | None) -> Call:
    *earlier, last = call.messages
    if last.role != "user":
        raise InvalidInput("messages: the last one must be the user's, for that is what is answered")
    text, images = _content(last.content)
    named = (call.metadata or {}).get("session_id")
    before = [message_of(each.role, each.content) for each in earlier]
    return Call(
        before=[message for message in before if message is not None],
        content=text,
        images=images,
        model=None if call.model == DEFAULT else call.model,
        session_id=header or (str(named) if named is not None else None),
        name=call.user,
        key=key,
    )


def _content(content: str | list[dict[str, Any]] | None) -> tuple[str, list[Image]]:
    texts, images = [], []
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or []:
        match part:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "image_url", "image_url": {"url": str(url)}}:
                images.append(_image(url))
            case _:
                raise InvalidInput("messages: text and images are taken here, and no other parts")
    text = storable("\n\n".join(texts))
    if not text.strip() and not images:
        raise InvalidInput("messages: there is nothing in the last one")
    return text, images


def _image(url: str) -> Image:
    """An image in the call itself. Addresses are not opened: whoever may speak here could reach our network by them."""
    head, _, data = url.partition(",")
    if not head.startswith(_DATA_URL) or not head.endswith(";base64"):
        raise InvalidInput("messages: send an image within the call, as a data: URL in base64")
    try:
        return Image(data=base64.b64decode(data, validate=True))
    except binascii.Error:
        raise InvalidInput("messages: an image is not in base64") from None


# ---- answers ---------------------------------------------------------------------------------------------


async def _spoken(door: Completions, signed: Signed, accepted: Accepted) -> AsyncGenerator[str | Answered, None]:
    """The answer of the agent, or of the gateway itself to a command."""
    if not is_answered(accepted.receipt):
        yield accepted.receipt.reply or ""
        yield Answered(text=accepted.receipt.reply or "", turn=None, usage=TurnUsage())
        return
    async with contextlib.aclosing(door.listen(signed.person, accepted)) as said:
        async for each in said:
            yield each


def _check_answered(answered: Answered) -> None:
    if answered.turn is not None and answered.turn.state is TurnState.FAILED:
        raise AnswerFailed(answered.turn.error or "")


async def _chunks(
    answer: _Answer, spoken: AsyncGenerator[str | Answered, None], *, with_usage: bool
) -> AsyncGenerator[bytes, None]:
    yield answer.chunk({"role": "assistant", "content": ""})
    async with contextlib.aclosing(spoken):
        try:
            async for each in spoken:
                if isinstance(each, str):
                    yield answer.chunk({"content": storable(each)})
                    continue
                _check_answered(each)
                yield answer.chunk({}, finish_reason=_reason(each))
                if with_usage:
                    yield answer.usage_chunk(each.usage)
        except PalaverError as error:
            yield _data(_error_body(_status(error), str(error), code=error.code))
    yield b"data: [DONE]\n\n"


class _Answer:
    """An answer on its way out."""

    def __init__(self, model: str, session_id: str) -> None:
        self._common: dict[str, Any] = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
            "metadata": {"session_id": session_id},
        }

    def chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _data({**self._common, "object": "chat.completion.chunk", "choices": [choice]})

    def usage_chunk(self, used: TurnUsage) -> bytes:
        common = {**self._common, "object": "chat.completion.chunk", "choices": []}
        return _data({**common, "usage": _usage(used).model_dump()})

    def whole(self, answered: Answered) -> dict[str, Any]:
        choice = Choice(message=Said(content=storable(answered.text)), finish_reason=_reason(answered))
        return ChatCompletion(**self._common, choices=[choice], usage=_usage(answered.usage)).model_dump()


def _reason(answered: Answered) -> Literal["stop", "length"]:
    return "stop" if answered.turn is None or answered.turn.state is TurnState.DONE else "length"


def _usage(used: TurnUsage) -> CompletionUsage:
    return CompletionUsage(
        prompt_tokens=used.input_tokens,
        completion_tokens=used.output_tokens,
        total_tokens=used.input_tokens + used.output_tokens,
        prompt_tokens_details={"cached_tokens": used.cache_read_tokens},
        completion_tokens_details={"reasoning_tokens": used.reasoning_tokens},
    )


def _data(body: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(body, separators=(',', ':'))}\n\n".encode()
