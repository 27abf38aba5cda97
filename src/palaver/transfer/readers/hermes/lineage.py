"""Which sessions of Hermes are one conversation: it started a new session for each compaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from palaver.transfer.readers.hermes.state_database import parse_stored_json
from palaver.transfer.readers.values import as_count, as_dict, as_id, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable

ACCIDENTAL_ENDS: Final = frozenset({"agent_close", "ws_orphan_reap"})  # Hermes goes on with such a session
_AGENT_SOURCES: Final = frozenset({"tool", "subagent"})


@dataclass(slots=True)
class SessionLink:
    id: str
    source: str
    parent_id: str
    started_at: float
    end_reason: str
    session_key: str
    message_count: int
    is_branch: bool
    is_delegate: bool

    @property
    def is_open(self) -> bool:
        return not self.end_reason or self.end_reason in ACCIDENTAL_ENDS


@dataclass(slots=True)
class Chain:
    """The sessions of one conversation, the oldest first."""

    session_ids: list[str]
    started_at: float
    parent_id: str = ""  # the session from which it was branched


@dataclass(slots=True)
class Lineage:
    chains: list[Chain] = field(default_factory=list)
    roots: dict[str, str] = field(default_factory=dict)  # the first session of the chain of a session
    links: dict[str, SessionLink] = field(default_factory=dict)
    delegate_count: int = 0  # sessions of sub-agents

    def find_open_sessions(self) -> dict[str, str]:
        """Return the last session of each chat that has not ended, by session key."""
        newest: dict[str, SessionLink] = {}
        for link in self.links.values():
            if not (link.session_key and link.is_open and link.message_count) or link.is_delegate:
                continue
            known = newest.get(link.session_key)
            if known is None or link.started_at >= known.started_at:
                newest[link.session_key] = link
        return {key: link.id for key, link in newest.items()}


def read_lineage(rows: Iterable[dict[str, Any]], page_ids: frozenset[str] = frozenset()) -> Lineage:
    """Group sessions into chains. What is in `page_ids` has a file of the web page, and is a conversation for sure."""
    lineage = Lineage(links={link.id: link for row in rows if (link := _read_link(row)).id})
    children = _find_children(lineage, page_ids)
    continued = {parent: _choose_child(candidates) for parent, candidates in children.items()}
    continuations = set(continued.values())
    for link in lineage.links.values():
        if link.is_delegate:
            lineage.delegate_count += 1
        elif link.id not in continuations:
            _add_chain(lineage, link, continued)
    for link in lineage.links.values():
        if not link.is_delegate and link.id not in lineage.roots:  # sessions that continue each other in a circle
            _add_chain(lineage, link, {})
    return lineage


def _read_link(row: dict[str, Any]) -> SessionLink:
    config = as_dict(parse_stored_json(row["model_config"], {}))
    source = as_text(row["source"])
    started_at = row["started_at"]
    return SessionLink(
        id=as_id(row["id"]),
        source=source,
        parent_id=as_id(row["parent_session_id"]),
        started_at=float(started_at) if isinstance(started_at, int | float) else 0.0,
        end_reason=as_text(row["end_reason"]),
        session_key=as_text(row["session_key"]),
        message_count=as_count(row["message_count"]),
        is_branch=config.get("_branched_from") is not None,
        is_delegate=config.get("_delegate_from") is not None or source in _AGENT_SOURCES,
    )


def _find_children(lineage: Lineage, page_ids: frozenset[str]) -> dict[str, list[SessionLink]]:
    """Return the sessions that may continue each compacted session; mark branches and sub-agents."""
    children: dict[str, list[SessionLink]] = {}
    for link in lineage.links.values():
        parent = lineage.links.get(link.parent_id)
        if parent is None or parent is link or link.is_branch or link.is_delegate:
            continue
        if parent.end_reason == "compression":
            children.setdefault(parent.id, []).append(link)
        elif parent.end_reason == "branched" or link.id in page_ids:
            link.is_branch = True
        else:
            link.is_delegate = True
    return children


def _choose_child(candidates: list[SessionLink]) -> str:
    """Choose as Hermes does: the session that was compacted again, else one that is open, else the newest."""
    best = max(
        candidates,
        key=lambda link: (link.end_reason == "compression", not link.end_reason, link.started_at, link.id),
    )
    return best.id


def _add_chain(lineage: Lineage, first: SessionLink, continued: dict[str, str]) -> None:
    chain = Chain([first.id], first.started_at, first.parent_id)
    seen = {first.id}
    current = first.id
    while (current := continued.get(current, "")) and current not in seen:
        seen.add(current)
        chain.session_ids.append(current)
    for session_id in chain.session_ids:
        lineage.roots[session_id] = first.id
    lineage.chains.append(chain)
