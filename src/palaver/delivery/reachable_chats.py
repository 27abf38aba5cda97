"""The chats that a person may send to: the only place that decides it, for jobs, the agent and the terminal.

A person may send to their own direct messages, to chats in which they have written and, unless they are a guest, to
home channels. A guest may send only to their own direct messages. An owner may send to every chat.

Always true: a chat that this person may not send to gives the same error as one that does not exist, and that error
lists what is valid. In a conversation that several people read (`only_chat`), only its own chat and home channels are
reachable, because every person there could make the agent send something.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from palaver.core.background import is_owner_dead
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.source import PLATFORMS_WITHOUT_CHATS, ChatType, Platform, SessionSource, decode_source
from palaver.core.texts import say
from palaver.delivery import accounts_table as platform_accounts
from palaver.people import table as people
from palaver.people.model import Principal, Role
from palaver.sessions import home_channels, lanes_table as chat_lanes, table as sessions
from palaver.sessions.context import Redactor, quote_chat_text
from palaver.sessions.delivery import Address
from palaver.sessions.home_channels import load_home_channels
from palaver.sessions.inbound import find_delivery_address
from palaver.sessions.target_resolution import find_hidden_chat, find_shown_place, is_hidden_chat, make_target
from palaver.sessions.targets import DeliveryTarget, format_target, parse_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from palaver.core.engines.base import Transaction
    from palaver.sessions.gateway_config import GatewayConfig, HomeChannel

MAX_REACHABLE_CHATS: Final = 100  # in a list
MAX_NAMED_TARGETS: Final = 8  # in an error

LOCAL_FILE = say("chat.local_file", "a file on this machine")
_NOT_ALLOWED = say("chat.not_allowed", "is not a chat that you can send to")


class ChatKind(StrEnum):
    CHAT = "chat"
    SESSION = "session"  # a conversation on the page, in the terminal or in an app
    LOCAL = "local"  # a file on this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachableChat:
    kind: ChatKind
    target: str  # as `sessions/targets.py` writes it; of a home channel the platform alone
    source: SessionSource | None = None  # of a chat: in direct messages with the person, elsewhere without one
    is_known: bool = True  # False: no person has written there yet, so the type of the chat is unknown
    session_no: int | None = None  # of a conversation
    name: str = ""  # of the chat or its person, as they chose it

    @property
    def address(self) -> Address | None:
        """The address that it is sent to; None for a conversation and for a file."""
        return None if self.source is None else Address.from_source(self.source)


@dataclass(frozen=True, slots=True)
class Origin:
    """The place where a request was made: the target `origin`."""

    source: SessionSource
    session_no: int | None = None


@dataclass(frozen=True, slots=True)
class ReachableChats:
    """The chats that may be sent to on behalf of a person, from one place."""

    tx: Transaction
    principal: Principal
    config: GatewayConfig
    now: int = 0  # a list does not need it
    _: KW_ONLY
    origin: Origin | None = None
    only_chat: SessionSource | None = None  # of a conversation that several people read
    redactor: Redactor | None = None  # with which ids were hidden from the agent

    @property
    def is_guest(self) -> bool:
        return self.principal.role is Role.GUEST

    @property
    def is_owner(self) -> bool:
        return self.principal.role is Role.OWNER and self.only_chat is None

    def list_chats(self, search: str = "", limit: int = MAX_REACHABLE_CHATS) -> list[ReachableChat]:
        """List chats, the person's own direct messages first; `search` looks into names and targets."""
        words = search.casefold().split()
        found: dict[Address, ReachableChat] = {}
        for chat in self._list_candidates():
            text = f"{chat.name} {chat.target} {chat.source.platform.label if chat.source else ''}".casefold()
            if chat.address is not None and all(word in text for word in words):
                found.setdefault(chat.address, chat)
            if len(found) >= limit:
                break
        return list(found.values())

    def resolve(self, text: str, *, is_from_agent: bool = False) -> ReachableChat:
        """Return the place that a target names, if this person may send there; InvalidInput lists the valid targets.

        The agent (`is_from_agent`) may also write a chat as it was shown to it, with a hidden id or in quotes.
        """
        try:
            target = parse_target(text)
        except InvalidInput:
            target = None
        chat = self._find_shown_chat(text, target) if is_from_agent else None
        if chat is not None:
            return chat
        if target is None:
            raise self._build_error(text, say("chat.bad_target", "is not a valid target"))
        match target.kind:
            case "local":
                return self._resolve_local(text)
            case "origin":
                return self._resolve_origin()
            case "home":
                return self._resolve_platform(target, text)
            case "chat":
                is_hidden = is_from_agent and is_hidden_chat(target, self.redactor)
                chat = None if is_hidden else self._find_chat(target)
        if chat is None:
            raise self._build_error(text, _NOT_ALLOWED)
        return chat

    def is_read_by_others(self, chat: ReachableChat) -> bool:
        """Whether people other than this person read what is sent to a chat; also true if that is unknown."""
        if chat.session_no is not None:
            return sessions.get_by_no(self.tx, chat.session_no).session.shared
        if chat.source is None:  # a file
            return False
        if not chat.is_known or _is_group(chat.source):
            return True
        reader = people.find_by_source(self.tx, chat.source)
        return reader is None or reader.person.id != self.principal.person_id

    def _list_candidates(self) -> Iterable[ReachableChat]:
        if self.only_chat is None:
            yield from map(_make_chat, self._list_own_dms())
        elif _is_group(self.only_chat):
            yield _make_chat(self.only_chat)
        if self.is_guest:
            return
        for home in self._load_homes().values():
            yield self._resolve_home(home)
        if self.only_chat is not None:
            return
        agent, person_id = self.config.agent, self.principal.person_id
        if self.is_owner:
            lanes = chat_lanes.list_all_lanes(self.tx, agent)
        else:
            own = chat_lanes.list_own_lanes(self.tx, agent, person_id)
            shared = chat_lanes.list_shared_lanes(self.tx, agent, person_id)
            lanes = [lane for lane in (*own, *shared) if _is_group(lane.source)]
        for lane in sorted(lanes, key=lambda each: -each.updated_at):
            if find_delivery_address(lane.source) is not None:
                yield _make_chat(lane.source)

    def _list_own_dms(self) -> list[SessionSource]:
        """List where a person writes direct messages from, on each of their accounts."""
        identities = people.list_identities(self.tx, self.principal.person_id)
        sources = [identity.dm_source for identity in identities if identity.dm_source is not None]
        return [source for source in sources if find_delivery_address(source) is not None]

    def _find_shown_chat(self, text: str, target: DeliveryTarget | None) -> ReachableChat | None:
        """Return the chat that the agent was shown with this text; `target` is the text as it is parsed, if it can be.

        All chats are listed only if they have to be: for a hidden id, or a text that is not exactly a known chat.
        """
        named = target if target is not None and target.kind == "chat" else None
        if named is not None and self.redactor is None:
            chat = self._find_chat(named)
            if chat is not None and chat.is_known:
                return chat
        if ":" not in text:
            return None
        places = [chat.source for chat in self._list_candidates() if chat.source is not None]
        if self.origin is not None and find_delivery_address(self.origin.source) is not None:
            places.append(self.origin.source)
        place = find_shown_place(text, places, self.redactor)
        if place is not None:
            return self._find_chat(make_target(place))
        hidden = None if named is None else find_hidden_chat(named, places, self.redactor)
        return None if named is None or hidden is None else self._find_chat(replace(named, chat_id=hidden.chat_id))

    def _resolve_local(self, text: str) -> ReachableChat:
        if self.is_guest or self.only_chat is not None:
            raise self._build_error(text, _NOT_ALLOWED)
        if not self.config.saves_local_files:
            raise InvalidInput.say(
                "chat.no_folder", "local: this gateway has no home folder to save files in. Choose another target."
            )
        return ReachableChat(kind=ChatKind.LOCAL, target="local", name=LOCAL_FILE)

    def _resolve_origin(self) -> ReachableChat:
        origin = self.origin
        if origin is None:
            raise self._build_error("origin", say("chat.unknown_origin", "is not known here"))
        address = find_delivery_address(origin.source)
        if address is not None:
            target = make_target(origin.source)
            chat = self._find_chat(target)
            if chat is None:
                raise InvalidInput(
                    say("chat.origin_closed", "origin: you can no longer send to the chat in which this was made."),
                    target="origin",
                )
            return replace(chat, target="origin")
        if origin.session_no is None or not sessions.is_visible(self.tx, origin.session_no, self.principal.person_id):
            raise InvalidInput(
                say(
                    "chat.origin_deleted",
                    "origin: the conversation in which this was made was deleted, or you no longer have access.",
                ),
                target="origin",
            )
        return ReachableChat(kind=ChatKind.SESSION, target="origin", session_no=origin.session_no)

    def _resolve_platform(self, target: DeliveryTarget, text: str) -> ReachableChat:
        """Return the home channel of a platform."""
        home = self._load_homes().get(target.platform)
        if home is None or (target.account and target.account != home.account):
            raise self._build_error(
                text, say("chat.no_home", "has no home channel. An owner chooses it with /sethome in a chat")
            )
        return replace(self._resolve_home(home), target=str(target.platform))

    def _load_homes(self) -> Mapping[Platform, HomeChannel]:
        return {} if self.is_guest else load_home_channels(self.tx, self.config)

    def _resolve_home(self, home: HomeChannel) -> ReachableChat:
        """Return the chat of a home channel, as an owner wrote there or as people have written there since."""
        target = make_target(home)
        known = home_channels.load_chosen(self.tx).get(home.platform) or _choose_lane(
            chat_lanes.list_lanes_in_chat(self.tx, self.config.agent, _get_chat(target), None), target
        )
        return _make_unknown_chat(target, home.name) if known is None else replace(_make_chat(known), name=home.name)

    def _find_chat(self, target: DeliveryTarget) -> ReachableChat | None:
        if target.platform in PLATFORMS_WITHOUT_CHATS:
            return None
        if self.only_chat is not None:
            return self._find_in_shared_place(self.only_chat, target)
        for source in self._list_own_dms():
            if (chat := _match_chat(source, target)) is not None:
                return chat
        if self.is_guest:
            return None
        return (
            self._find_where_written(target)
            or self._find_home(target)
            or (self._find_for_owner(target) if self.is_owner else None)
        )

    def _find_where_written(self, target: DeliveryTarget) -> ReachableChat | None:
        """Return a chat in which this person has written; for an owner, in which any person has."""
        member_id = None if self.is_owner else self.principal.person_id
        lanes = chat_lanes.list_lanes_in_chat(self.tx, self.config.agent, _get_chat(target), member_id)
        # Not to direct messages of several people.
        source = _choose_lane(
            [lane for lane in lanes if self.is_owner or _is_group(lane.source) or not lane.shared], target
        )
        return None if source is None else _make_chat(source)

    def _find_home(self, target: DeliveryTarget) -> ReachableChat | None:
        home = self._load_homes().get(target.platform)
        return None if home is None or make_target(home) != target else self._resolve_home(home)

    def _find_in_shared_place(self, only_chat: SessionSource, target: DeliveryTarget) -> ReachableChat | None:
        """Return a chat that a conversation of several people may send to: its own, and home channels."""
        own = _match_chat(only_chat, target) if _is_group(only_chat) else None
        return own or self._find_home(target)

    def _find_for_owner(self, target: DeliveryTarget) -> ReachableChat | None:
        """Return the direct messages of a person whose account is named, or a chat where no person has written yet."""
        identity = people.find_by_account(self.tx, str(target.platform), target.chat_id)
        if identity is not None and identity.dm_source is not None:
            chat = _match_chat(decode_source(identity.dm_source), target)
            if chat is not None:
                return chat
        rows = platform_accounts.list_accounts(self.tx)
        running = {(row.platform, row.account) for row in rows if row.is_held(self.now, is_owner_dead)}
        if (target.platform, target.account) not in running.union(self.config.chat_accounts):
            return None
        return _make_unknown_chat(target, "")

    def _build_error(self, text: str, problem: str) -> InvalidInput:
        explained = say(
            "chat.problem",
            "{chat} {problem}. {valid}",
            chat=quote_chat_text(text),
            problem=problem,
            valid=self._list_valid_targets(),
        )
        return InvalidInput(explained, target=text)

    def _list_valid_targets(self) -> str:
        """Name targets that are valid; ids are written out only if they are not hidden from the reader of this text."""
        names = ["origin"] if self.origin is not None else []
        if self.config.saves_local_files and not self.is_guest and self.only_chat is None:
            names.append("local")
        names += map(str, self._load_homes())
        if self.redactor is None:
            names += [quote_chat_text(chat.target) for chat in self.list_chats(limit=MAX_NAMED_TARGETS)]
        return (
            say("chat.valid", "Valid targets: {names}.", names=", ".join(names))
            if names
            else say("chat.none", "There is no chat that you can send to.")
        )


def _get_chat(target: DeliveryTarget) -> tuple[str, str, str]:
    return str(target.platform), target.account, target.chat_id


def _match_chat(source: SessionSource, target: DeliveryTarget) -> ReachableChat | None:
    """Return the chat of a source if it is that of a target, in the target's thread."""
    is_same = _get_chat(make_target(source)) == _get_chat(target)
    return _make_chat(replace(source, thread_id=target.thread_id)) if is_same else None


def _is_group(source: SessionSource) -> bool:
    return source.chat_type is not ChatType.DM


def _choose_lane(lanes: list[chat_lanes.ChatLane], target: DeliveryTarget) -> SessionSource | None:
    """Return the place of a target in a chat: in its own thread if there is a lane, else anywhere in the chat."""
    if not lanes:
        return None
    in_thread = (lane for lane in lanes if lane.source.thread_id == target.thread_id)
    lane = next(in_thread, None) or max(lanes, key=lambda each: each.updated_at)
    return replace(lane.source, thread_id=target.thread_id)


def _make_chat(source: SessionSource) -> ReachableChat:
    if _is_group(source):  # no single person's
        source = replace(source, user_id=None, user_name=None, user_id_alt=None)
    name = (source.chat_name if _is_group(source) else source.user_name or source.chat_name) or ""
    return ReachableChat(
        kind=ChatKind.CHAT, target=format_target(Address.from_source(source)), source=source, name=name
    )


def _make_unknown_chat(target: DeliveryTarget, name: str) -> ReachableChat:
    source = SessionSource(
        target.platform,
        target.chat_id,
        chat_type=ChatType.GROUP,
        chat_name=name or None,
        thread_id=target.thread_id,
        account=target.account,
    )
    return replace(_make_chat(source), is_known=False)
