"""What Hermes adds to texts: workspaces, recalled memories, names of senders, summaries."""

from __future__ import annotations

import re
from typing import Final

MAX_SENDER_CHARS: Final = 240

_WORKSPACE = re.compile(r"\s*\[Workspace(?:::v1)?:(?:\\.|[^\]\\]){1,4096}\]\s*")
_RECALLED_START: Final = "<memory-context>"
_RECALLED_END: Final = "</memory-context>"
_SENDER = re.compile(r"\[([^\[\]\n|]{1,240})(?:\|([^\[\]\n|]{1,120}))?\]\s")
_SUMMARY_STARTS: Final = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
_SUMMARY_END: Final = "--- END OF CONTEXT SUMMARY"
_MERGED_SUMMARY: Final = "[END OF PRIOR CONTEXT"
_REVIEW_STARTS: Final = (
    "Review the conversation above and update the skill library",
    "Review the conversation above and consider saving to memory",
)


def clean_text(role: str, text: str) -> str:
    """Return a message as people saw it: without what was added for the model."""
    if role == "user" and text.lstrip()[:10] == "[Workspace" and (prefix := _WORKSPACE.match(text)):
        text = text[prefix.end() :]
    return _cut_recalled(text).strip()


def _cut_recalled(text: str) -> str:
    if _RECALLED_START not in text:
        return text
    kept, position = [], 0
    while (start := text.find(_RECALLED_START, position)) >= 0:
        end = text.find(_RECALLED_END, start)
        if end < 0:
            break
        kept.append(text[position:start])
        position = end + len(_RECALLED_END)
    return "".join(kept) + text[position:]


def split_sender(text: str) -> tuple[str, str | None, str]:
    """Split `[Ada] Hello` into name, id and text, as Hermes writes messages of groups; the name may be empty."""
    match = _SENDER.match(text)
    return (match[1].strip(), match[2], text[match.end() :]) if match else ("", None, text)


def read_summary(text: str) -> tuple[str, bool] | None:
    """Return the summary in a message, and whether older words stand before it; None for any other message."""
    head = text.lstrip()
    is_merged = False
    if head.startswith("[PRIOR CONTEXT") and (middle := head.rfind(_MERGED_SUMMARY)) >= 0:
        is_merged = not any(start in head[:middle] for start in _SUMMARY_STARTS)  # or it was an older summary
        head = head[head.find("]", middle) + 1 :].lstrip()
    if not head.startswith(_SUMMARY_STARTS):
        return None
    if head.startswith("[CONTEXT COMPACTION"):  # one long line of instructions, then the summary
        head = head.partition("\n")[2]
    else:
        head = head.partition("]")[2].removeprefix(":")
    end = head.rfind(_SUMMARY_END)
    return (head[:end] if end >= 0 else head).strip(), is_merged


def is_review_request(role: str, text: str) -> bool:
    """Whether this starts a review that ran in the background; older versions stored it in the conversation."""
    return role in {"user", "system"} and text.lstrip().startswith(_REVIEW_STARTS)
