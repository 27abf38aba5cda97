"""The shapes that OpenAI's clients send and read, as far as this door knows them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

DEFAULT: Final = "palaver"  # whatever model a conversation uses


class ModelOut(BaseModel):
    """A model that can be asked for."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "palaver"


class ModelList(BaseModel):
    """The models that can be asked for."""

    object: Literal["list"] = "list"
    data: list[ModelOut]


# ---- calls -----------------------------------------------------------------------------------------------


class _Read(BaseModel):
    """Something a client sends: what is not known is read over, as OpenAI does."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ChatMessage(_Read):
    """One message of a call."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None


class StreamOptions(_Read):
    """What a stream ends with."""

    include_usage: bool = False


class ChatCall(_Read):
    """A call, as OpenAI's clients make it."""

    model: str = Field(DEFAULT, max_length=200)
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    tools: Annotated[list[Any], Field(max_length=0)] | None = Field(
        None, description="The agent uses its own tools; those of a caller are refused."
    )
    user: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="Your own name for a conversation: calls with the same one go on with it."
    )
    metadata: dict[str, Any] | None = Field(None, description="`session_id` names a conversation to go on with.")


# ---- answers ---------------------------------------------------------------------------------------------


class Said(BaseModel):
    """What was answered."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class Choice(BaseModel):
    """An answer; there is always one."""

    index: Literal[0] = 0
    message: Said
    finish_reason: Literal["stop", "length"] = Field(description="`length` when the answer was cut short.")
    logprobs: None = None


class CompletionUsage(BaseModel):
    """What the answer used, as far as the provider told."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: dict[str, int]
    completion_tokens_details: dict[str, int]


class ChatCompletion(BaseModel):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage
    metadata: dict[str, str] = Field(description="`session_id`: the conversation it was said in.")


# ---- errors ----------------------------------------------------------------------------------------------


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIError(BaseModel):
    """An error in OpenAI's shape."""

    error: ErrorDetail
