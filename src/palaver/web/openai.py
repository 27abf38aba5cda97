"""The OpenAI-compatible API: `/v1/models` and `/v1/chat/completions`.

This module parses requests and encodes answers in OpenAI's format; `gateway/completions.py` decides which
conversation a request belongs to. Parameters that would change how the agent works, such as `temperature`, are
ignored: the operator configures the agent, with its own settings and tools.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import secrets
import time
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import Header, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from palaver.agent.profiles import list_allowed_models
from palaver.core.errors import InvalidInput, NotAllowed, NotFound, NotSignedIn, OwnerRequired, PalaverError
from palaver.core.text import make_storable
from palaver.core.texts import current_language, translate
from palaver.core.wire import Doc, TypedDict
from palaver.gateway.completions import (
    CompletionCall,
    CompletionResult,
    Completions,
    has_agent_answer,
    parse_message,
)
from palaver.sessions.inbound import Outcome, Receipt
from palaver.sessions.turn import TurnState
from palaver.sessions.usage import TurnUsage
from palaver.web import errors
from palaver.web.api_route import ApiRoute, make_router
from palaver.web.auth import Caller, require_scope
from palaver.web.errors import RequestRejected, describe_error
from palaver.web.routes.live import EventStream
from palaver.web.state import MAX_KEY_CHARS, State, WebState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    from palaver.people.model import SignedInPerson


SESSION_HEADER: Final = "X-Palaver-Session"
_DATA_URL_PREFIX: Final = "data:image/"

ModelPath = Annotated[str, Path(pattern=r"^[^\r\n]+$")]  # no address has a line break in it

DEFAULT_MODEL: Final = "palaver"  # the model chosen for the conversation, or else the default


class OpenAIModel(TypedDict):
    """A model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class OpenAIModelList(TypedDict):
    """The available models."""

    object: Literal["list"]
    data: list[OpenAIModel]


class _OpenAIRequest(BaseModel):
    """Base class of request bodies. Unknown fields are ignored, as OpenAI does."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ChatMessage(_OpenAIRequest):
    """One message of a request."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None


class StreamOptions(_OpenAIRequest):
    """Options of a stream."""

    include_usage: bool = False


class ChatCompletionRequest(_OpenAIRequest):
    """A request for an answer, in OpenAI's format."""

    model: str = Field(DEFAULT_MODEL, max_length=200)
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    tools: Annotated[list[Any], Field(max_length=0)] | None = Field(
        None, description="Not supported: the agent uses its own tools."
    )
    user: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="Your own name for a conversation. Requests with the same name continue it."
    )
    metadata: dict[str, Any] | None = Field(None, description="`session_id`: the id of a conversation to continue.")


class AnswerMessage(TypedDict):
    """The answer."""

    role: Literal["assistant"]
    content: str
    refusal: None


class Choice(TypedDict):
    """An answer. There is always exactly one."""

    index: Literal[0]
    message: AnswerMessage
    finish_reason: Annotated[Literal["stop", "length"], Doc("`length` if the answer was interrupted.")]
    logprobs: None


class CompletionUsage(TypedDict):
    """Tokens used, as reported by the provider."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: dict[str, int]
    completion_tokens_details: dict[str, int]


class ChatCompletion(TypedDict):
    """A complete answer."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage
    metadata: Annotated[dict[str, str], Doc("`session_id`: the id of the conversation.")]


class ErrorDetail(BaseModel):
    """An explanation of an error."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIError(BaseModel):
    """An error in OpenAI's format."""

    error: ErrorDetail


ERROR_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": OpenAIError} for status in (400, 401, 403, 404, 413, 429, 500, 502, 503)
}
_ERROR_TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_ERROR_CODES: Final = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class ModelNotFound(NotFound):
    """Model not found."""


class AnswerFailed(PalaverError):
    """The agent could not answer."""


class OpenAIRoute(ApiRoute):
    """A route that answers errors in OpenAI's format."""

    max_body_bytes = 16 * 2**20  # a request has all earlier messages, and images as base64

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_with_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                first = error.errors()[0]
                param = ".".join(str(step) for step in first["loc"][1:])
                return JSONResponse(build_error_body(400, f"{param}: {first['msg']}", param=param or None), 400)
            except HTTPException as error:
                return JSONResponse(build_error_body(error.status_code, str(error.detail)), error.status_code)
            except PalaverError as error:
                return _respond_to_error(error)

        return handle_with_errors


def get_error_status(error: PalaverError) -> int:
    """Return the HTTP status that OpenAI's clients expect; for most errors it is the same as in the rest of the API."""
    if isinstance(error, AnswerFailed):
        return 502
    status = errors.get_error_status(error)
    # Clients repeat a request by themselves after 409, and a rejected one would be rejected again.
    return 400 if status == 422 or (status == 409 and isinstance(error, RequestRejected)) else status


def build_error_body(status: int, message: str, *, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    error_type = _ERROR_TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")
    shown = make_storable(translate(message, current_language.get()))
    return {"error": {"message": shown, "type": error_type, "param": param, "code": code}}


def _respond_to_error(error: PalaverError) -> JSONResponse:
    status = get_error_status(error)
    headers = errors.build_retry_headers(error)
    if isinstance(error, AnswerFailed):
        headers["x-should-retry"] = "false"  # the message is stored; a retry would ask the same question twice
    message, _ = errors.describe_error(error)
    body = build_error_body(status, message, code=_ERROR_CODES.get(status) or error.code)
    return JSONResponse(body, status, headers)


router = make_router("openai", "/v1", route_class=OpenAIRoute, responses=ERROR_RESPONSES)


@router.get("/models", dependencies=[require_scope("chat")])
async def openai_list_models(state: State, caller: Caller) -> OpenAIModelList:
    """List the models that you can choose.

    `palaver` stands for the model chosen for the conversation, or else the default.
    """
    return {"object": "list", "data": [_build_model(name) for name in _list_model_names(state, caller)]}


@router.get("/models/{model:path}", dependencies=[require_scope("chat")])
async def openai_get_model(model: ModelPath, state: State, caller: Caller) -> OpenAIModel:
    """Get one model."""
    if model not in _list_model_names(state, caller):
        raise ModelNotFound(f'Model "{model}" not found.')
    return _build_model(model)


def _build_model(name: str) -> OpenAIModel:
    return {"id": name, "object": "model", "created": 0, "owned_by": "palaver"}


def _list_model_names(state: WebState, caller: SignedInPerson) -> list[str]:
    allowed = list_allowed_models(state.gateway.agent, state.gateway.rules, caller.person.role)
    return list(dict.fromkeys([DEFAULT_MODEL, *allowed]))


@router.post(
    "/chat/completions",
    dependencies=[require_scope("chat")],
    response_model=ChatCompletion,
    responses={200: {"content": {"text/event-stream": {}}}},  # one JSON object in each event
)
async def openai_create_chat_completion(
    body: ChatCompletionRequest,
    state: State,
    caller: Caller,
    x_palaver_session: Annotated[str | None, Header(description="The id of a conversation to continue.")] = None,
    idempotency_key: Annotated[
        str | None,
        Header(max_length=MAX_KEY_CHARS, description="Repeating a request with the same key sends one message."),
    ] = None,
) -> Response:
    """Answer the last message.

    To continue a conversation, name it in `X-Palaver-Session`, `metadata.session_id` or `user`, or send the same
    earlier messages word for word. Otherwise the request starts a new conversation with its earlier messages. If the
    client disconnects, the agent still finishes the answer and stores it in the conversation.
    """
    completions = state.completions
    session_id, receipt = await completions.submit(caller, _build_call(body, x_palaver_session, idempotency_key))
    if receipt.outcome is Outcome.REJECTED:
        facts = receipt.facts or {}
        is_forbidden = facts.get("error") in {NotAllowed().code, OwnerRequired().code}
        error = NotAllowed if is_forbidden else RequestRejected
        raise error(receipt.reply or "The message was rejected.", **facts)
    encoder = _AnswerEncoder(body.model, session_id)
    headers = {SESSION_HEADER: session_id}
    answer = _stream_answer(completions, caller, session_id, receipt)
    if body.stream:
        with_usage = body.stream_options is not None and body.stream_options.include_usage
        chunks = _encode_chunks(encoder, answer, with_usage=with_usage)
        stream = EventStream(chunks, state, caller, signed_out_chunk=_encode_error(NotSignedIn()))
        stream.headers.update(headers)
        return stream
    async with contextlib.aclosing(answer):
        async for item in answer:
            if isinstance(item, CompletionResult):
                _check_succeeded(item)
                if not await state.accounts.is_still_signed_in(caller):
                    raise NotSignedIn
                return JSONResponse(encoder.build_completion(item), headers=headers)
    raise AnswerFailed


def _build_call(body: ChatCompletionRequest, session_header: str | None, key: str | None) -> CompletionCall:
    *earlier, last = body.messages
    if last.role != "user":
        raise InvalidInput("messages: the last message must have the role `user`.")
    text, images = _parse_content(last.content)
    session_id = (body.metadata or {}).get("session_id")
    if session_id is not None and not isinstance(session_id, str):
        raise InvalidInput("metadata.session_id: give the id of a conversation as text.")
    before = [parse_message(each.role, each.content) for each in earlier]
    return CompletionCall(
        earlier_messages=[message for message in before if message is not None],
        content=text,
        images=images,
        model=None if body.model == DEFAULT_MODEL else body.model,
        session_id=session_header or session_id,
        conversation_name=body.user,
        idempotency_key=key,
    )


def _parse_content(content: str | list[dict[str, Any]] | None) -> tuple[str, list[bytes]]:
    texts, images = [], []
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or []:
        match part:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "image_url", "image_url": {"url": str(url)}}:
                images.append(_parse_image(url))
            case _:
                raise InvalidInput("messages: only text and image parts are supported.")
    text = make_storable("\n\n".join(texts))
    if not text.strip() and not images:
        raise InvalidInput.say("temporary.last_message_empty", "messages: the last message is empty.")
    return text, images


def _parse_image(url: str) -> bytes:
    """Decode an image embedded in the request. URLs are never fetched: a caller could reach our network with them."""
    head, _, data = url.partition(",")
    if not head.startswith(_DATA_URL_PREFIX) or not head.endswith(";base64"):
        raise InvalidInput("messages: send images as base64 data: URLs. Other URLs are not supported.")
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        raise InvalidInput("messages: an image is not valid base64.") from None


async def _stream_answer(
    completions: Completions, caller: SignedInPerson, session_id: str, receipt: Receipt
) -> AsyncGenerator[str | CompletionResult, None]:
    """Yield the text of the agent's answer as it grows, or Palaver's own reply to a command, and then how it ended."""
    if not has_agent_answer(receipt):
        yield receipt.reply or ""
        yield CompletionResult(text=receipt.reply or "", turn=None, usage=TurnUsage())
        return
    async with contextlib.aclosing(completions.stream_answer(caller.person, session_id, receipt)) as items:
        async for item in items:
            yield item


def _check_succeeded(answered: CompletionResult) -> None:
    if answered.turn is not None and answered.turn.state is TurnState.FAILED:
        raise AnswerFailed(answered.turn.error or "")


async def _encode_chunks(
    encoder: _AnswerEncoder, answer: AsyncGenerator[str | CompletionResult, None], *, with_usage: bool
) -> AsyncGenerator[bytes, None]:
    yield encoder.encode_delta({"role": "assistant", "content": ""})
    async with contextlib.aclosing(answer):
        try:
            async for item in answer:
                if isinstance(item, str):
                    yield encoder.encode_delta({"content": make_storable(item)})
                    continue
                _check_succeeded(item)
                yield encoder.encode_delta({}, finish_reason=_get_finish_reason(item))
                if with_usage:
                    yield encoder.encode_usage(item.usage)
        except PalaverError as error:
            yield _encode_error(error)
    yield b"data: [DONE]\n\n"


class _AnswerEncoder:
    """Encodes one answer as chunks of a stream or as one response."""

    def __init__(self, model: str, session_id: str) -> None:
        self._common: dict[str, Any] = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
            "metadata": {"session_id": session_id},
        }

    def encode_delta(self, delta: dict[str, str], finish_reason: str | None = None) -> bytes:
        return self._encode_chunk(
            choices=[{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}]
        )

    def encode_usage(self, usage: TurnUsage) -> bytes:
        return self._encode_chunk(choices=[], usage=_build_usage(usage))

    def _encode_chunk(self, **values: object) -> bytes:
        return _encode_event({**self._common, "object": "chat.completion.chunk", **values})

    def build_completion(self, answered: CompletionResult) -> ChatCompletion:
        choice: Choice = {
            "index": 0,
            "message": {"role": "assistant", "content": make_storable(answered.text), "refusal": None},
            "finish_reason": _get_finish_reason(answered),
            "logprobs": None,
        }
        usage = _build_usage(answered.usage)
        return {**self._common, "object": "chat.completion", "choices": [choice], "usage": usage}  # type: ignore[typeddict-item]


def _get_finish_reason(answered: CompletionResult) -> Literal["stop", "length"]:
    return "stop" if answered.turn is None or answered.turn.state is TurnState.DONE else "length"


def _build_usage(usage: TurnUsage) -> CompletionUsage:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _encode_error(error: PalaverError) -> bytes:
    message, _ = describe_error(error)
    return _encode_event(build_error_body(get_error_status(error), message, code=error.code))


def _encode_event(body: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(body, separators=(',', ':'))}\n\n".encode()
