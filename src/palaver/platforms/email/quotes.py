"""Cuts the quoted mail off a reply. Pure, and takes time in proportion to the text.

Cut off is what follows a line such as "On Monday Ada wrote:", the header block of Outlook, or "Original message", and
quoted lines at the end. If the person has written between quoted lines, everything stays: the answers make no sense
without the questions.
"""

from __future__ import annotations

from typing import Final

MAX_ATTRIBUTION_CHARS = 400
MAX_ATTRIBUTION_LINES = 3

# The first word and a later word of a line that introduces a quote: "On …, Ada wrote:".
_ATTRIBUTIONS: Final = (
    ("on ", "wrote"),
    ("am ", "schrieb"),
    ("le ", "écrit"),
    ("il ", "ha scritto"),
    ("el ", "escribió"),
    ("op ", "schreef"),
    ("em ", "escreveu"),
)
_HEADER_NAMES: Final = (
    (("from:",), ("sent:", "date:", "to:", "subject:")),
    (("von:",), ("gesendet:", "datum:", "an:", "betreff:")),
    (("de :", "de:"), ("envoyé :", "envoyé:", "date :", "date:", "à :", "à:", "objet :", "objet:")),
    (("da:",), ("inviato:", "data:", "a:", "oggetto:")),
    (("van:",), ("verzonden:", "datum:", "aan:", "onderwerp:")),
)
_SEPARATORS: Final = (
    "original message",
    "ursprüngliche nachricht",
    "originalnachricht",
    "weitergeleitete nachricht",
    "message d'origine",
    "message d’origine",
    "mensaje original",
    "messaggio originale",
)


def cut_quotes(text: str) -> str:
    """Return what the person has written in this mail."""
    lines = [line.rstrip() for line in text.split("\n")]
    start = _find_quote(lines)
    if start is None:
        return "\n".join(lines).strip()
    if _has_answers_between(lines[start:]):
        return "\n".join(lines).strip()
    return "\n".join(lines[:start]).strip() or "\n".join(lines).strip()


def _find_quote(lines: list[str]) -> int | None:
    """Return the number of the first line that belongs to a quoted mail."""
    for number, line in enumerate(lines):
        if not line:
            continue
        if _is_separator(line) or _is_header_block(lines, number) or _is_attribution(lines, number):
            return number
    end = len(lines)
    while end and (not lines[end - 1] or lines[end - 1].startswith(">")):
        end -= 1
    return end if any(line.startswith(">") for line in lines[end:]) else None


def _is_separator(line: str) -> bool:
    if len(line) > MAX_ATTRIBUTION_CHARS or not line.startswith("--"):
        return False
    words = line.strip("- ").lower()
    return words in _SEPARATORS


def _is_header_block(lines: list[str], number: int) -> bool:
    """Whether a block such as From, Sent, To, Subject begins here."""
    first = _simplify(lines[number])
    for starts, others in _HEADER_NAMES:
        if first.startswith(starts):
            following = [_simplify(line) for line in lines[number + 1 : number + 6]]
            return len({other for line in following for other in others if line.startswith(other)}) >= 2
    return False


def _simplify(line: str) -> str:
    return line[:40].lstrip("> *").replace("*", "").lower()


def _is_attribution(lines: list[str], number: int) -> bool:
    """Whether a line such as "On Monday, Ada wrote:" begins here, also one that is broken into several."""
    first = _simplify(lines[number])
    verb = next((verb for start, verb in _ATTRIBUTIONS if first.startswith(start)), None)
    if verb is None:
        return False
    text = ""
    for line in lines[number : number + MAX_ATTRIBUTION_LINES]:
        text += " " + line
        if len(text) > MAX_ATTRIBUTION_CHARS or not line:
            return False
        if line.endswith(":"):
            return verb in text.lower()
    return False


def _has_answers_between(lines: list[str]) -> bool:
    """Whether something stands below a quoted line that is neither quoted nor a signature."""
    has_quote = False
    for line in lines:
        if line.startswith(">"):
            has_quote = True
        elif line in {"--", "-- "}:
            return False
        elif line and has_quote:
            return True
    return False
