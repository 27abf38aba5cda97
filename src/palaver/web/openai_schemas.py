"""JSON schemas of the OpenAI-compatible API: the supported subset of what OpenAI's clients send and read."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_MODEL: Final = "palaver"  # the model chosen for the conversation, or else the default


class OpenAIModel(BaseModel):
    """A model."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "palaver"


class OpenAIModelList(BaseModel):
    """The available models."""

    object: Literal["list"] = "list"
    data: list[OpenAIModel]


# ---- requests ---------------------------------------------------------------------------------------------


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


# ---- answers ---------------------------------------------------------------------------------------------


class AnswerMessage(BaseModel):
    """The answer."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class Choice(BaseModel):
    """An answer. There is always exactly one."""

    index: Literal[0] = 0
    message: AnswerMessage
    finish_reason: Literal["stop", "length"] = Field(description="`length` if the answer was interrupted.")
    logprobs: None = None


class CompletionUsage(BaseModel):
    """Tokens used, as reported by the provider."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: dict[str, int]
    completion_tokens_details: dict[str, int]


class ChatCompletion(BaseModel):
    """A complete answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage
    metadata: dict[str, str] = Field(description="`session_id`: the id of the conversation.")


# ---- errors ----------------------------------------------------------------------------------------------


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIError(BaseModel):
    """An error in OpenAI's format."""

    error: ErrorDetail
