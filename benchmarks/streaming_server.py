"""Runs `palaver serve` with an agent that streams a requested number of words at a requested speed.

    python -m benchmarks.streaming_server serve …

The agent answers "say 3000 words at 50" with 3000 words of Markdown, 50 per second.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from palaver.agent.base import TextDelta, extract_text
from palaver.drivers.demo import DemoAgent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.agent.base import AgentEvent, AgentRequest

REQUEST_PATTERN = re.compile(r"say (?P<words>\d+) words at (?P<pace>\d+)")
SAMPLE_TEXT = """\
Much can be said about the sea, and **most of it** has been said before, by people who knew it better. Here are three
things, in no order:

- it is never the same *twice*
- it has no `edges`
- it has no owner

| what | how much |
|---|---|
| water | a lot |
| salt | enough |

```python
def tide(moon: float, sun: float) -> float:
    return moon + 0.46 * sun
```

"""


class StreamingAgent(DemoAgent):
    """The demo agent, which also understands `say N words at M`."""

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        match = REQUEST_PATTERN.search(extract_text(request.messages[-1]) if request.messages else "")
        if match is None:
            async for event in super().run(request):
                yield event
            return
        count, words_per_second = int(match["words"]), int(match["pace"])
        words = re.findall(r"\S+\s*", SAMPLE_TEXT)
        words_per_delta = max(1, words_per_second // 100)  # at most 100 deltas per second, as from a real model
        for start in range(0, count, words_per_delta):
            delta = (words[number % len(words)] for number in range(start, min(start + words_per_delta, count)))
            yield TextDelta("".join(delta))
            await asyncio.sleep(words_per_delta / words_per_second)


def main() -> None:
    """Run the command line with this agent instead of the demo agent."""
    from palaver.cli import main as run_command_line
    from palaver.drivers import selection

    selection.DemoAgent = StreamingAgent  # type: ignore[misc]
    run_command_line()


if __name__ == "__main__":
    main()
