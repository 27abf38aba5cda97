"""Checks what a person or the agent wants a job to be: its name, schedule, targets, tools and model.

Everything is checked for the person on whose behalf the job runs, also when an owner or the agent changes it. A field
that is not given stays as it is and is not checked again: a chat or a model that is gone never keeps a person from
changing the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from palaver.agent import profiles, toolsets
from palaver.agent.profiles import check_model_choice
from palaver.agent.toolsets import HISTORY_TOOLSET, MEMORY_TOOLSET
from palaver.core.clock import check_timezone, to_micros
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.operation import check_count
from palaver.core.source import Platform, SessionSource
from palaver.core.text import make_storable
from palaver.core.texts import say
from palaver.core.titles import clean_long_text
from palaver.delivery.reachable_chats import LOCAL_FILE, ChatKind, Origin, ReachableChat, ReachableChats
from palaver.jobs.model import (
    DEFAULT_CHOICE,
    JOB_FIELDS,
    MAX_JOB_NAME_CHARS,
    MAX_PROMPT_CHARS,
    MAX_REPEAT,
    MAX_TARGETS,
    Job,
    JobDraft,
    JobFields,
    NamedItem,
)
from palaver.jobs.schedule import Schedule, format_schedule, parse_schedule, read_schedule
from palaver.sessions.inbound import find_delivery_address
from palaver.sessions.targets import parse_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from palaver.agent.base import AgentInfo, ModelPrices
    from palaver.config.agent_rules import AgentProfile, TurnRules
    from palaver.core.engines.base import Transaction
    from palaver.jobs.table import JobRow
    from palaver.people.model import Person, Principal, Role
    from palaver.sessions.context import Redactor
    from palaver.sessions.gateway_config import GatewayConfig


ORIGIN = "origin"
_OWN_CONVERSATION = say("target.run_only", "only the conversation of the run")
_MAX_NAME_WORDS: Final = 6
_MAX_DEFAULT_NAME_CHARS: Final = 40
DEFAULT_TOOLSETS: Final = (HISTORY_TOOLSET, MEMORY_TOOLSET)
_CHECKED_APART: Final = {"schedule", "timezone", "repeat"}  # they depend on each other


def describe_target(
    tx: Transaction, principal: Principal, text: str, config: GatewayConfig, origin: Origin, now: datetime
) -> NamedItem:
    """Say in words where a target leads; also if nothing can be sent there any more."""
    if is_own_conversation(text, origin):
        return NamedItem(name=text, words=_OWN_CONVERSATION)
    try:
        chat = ReachableChats(tx, principal, config, to_micros(now), origin=origin).resolve(text)
    except InvalidInput:
        return NamedItem(
            name=text, words=say("target.unreachable", "not reachable: it was deleted, or you no longer have access")
        )
    return NamedItem(name=text, words=_describe_chat(chat))


def list_targets(tx: Transaction, principal: Principal, config: GatewayConfig) -> tuple[NamedItem, ...]:
    """List targets that a person can choose on the page or in the terminal."""
    local = [NamedItem(name="local", words=LOCAL_FILE)] if config.saves_local_files else []
    chats = ReachableChats(tx, principal, config).list_chats()
    return (
        NamedItem(name=ORIGIN, words=say("target.origin", "the conversation where the job is made")),
        *local,
        *(NamedItem(name=chat.target, words=_describe_chat(chat)) for chat in chats),
    )


def get_origin(job_row: JobRow) -> Origin:
    return Origin(job_row.job.origin, job_row.origin_session_no)


def is_own_conversation(text: str, origin: Origin) -> bool:
    """Whether a target is the origin of a job that was made outside of any chat and conversation."""
    if origin.session_no is not None or find_delivery_address(origin.source) is not None:
        return False
    try:
        return parse_target(text).kind == ORIGIN
    except InvalidInput:
        return False


def _describe_chat(chat: ReachableChat) -> str:
    if chat.kind is ChatKind.LOCAL:
        return LOCAL_FILE
    if chat.kind is ChatKind.SESSION or chat.source is None:
        return say("target.old_origin", "the conversation where the job was made")
    source = chat.source
    name = f" “{chat.name}”" if chat.name else f" {source.chat_id}"
    place = source.platform.label + name
    if source.thread_id:
        place += say("target.thread", ", thread {id}", id=source.thread_id)
    return place


# ---- fields -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnvironment:
    """The configuration that jobs are checked against."""

    config: GatewayConfig
    rules: TurnRules
    agent: AgentInfo
    profile: AgentProfile
    prices: ModelPrices
    redactor: Redactor | None = None  # with which ids are hidden from the agent


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChecker:
    tx: Transaction
    environment: JobEnvironment
    person: Person
    origin: Origin
    now: datetime
    only_chat: SessionSource | None = None  # where it is asked for, if other people read that

    def check_fields(self, draft: JobDraft, job: Job | None = None) -> JobFields:
        """Return the fields of a new job, or of a job with what a draft changes."""
        given = draft.list_given()
        values: dict[str, Any] = {"anchor": self.now} if job is None else job.list_fields()
        if job is None:
            given |= {key: _require(given.get(key), key) for key in ("prompt", "schedule")}
            given.setdefault("targets", (ORIGIN,))
            given["name"] = draft.name or make_default_name(clean_prompt(given["prompt"]))
        if draft.timezone:
            values["timezone"] = check_timezone(draft.timezone)
        elif job is None:
            values["timezone"] = get_person_timezone(self.environment, self.person)
        if "schedule" in given:
            schedule = parse_schedule(given["schedule"], timezone=values["timezone"], now=self.now)
            stored = format_schedule(schedule)
            values |= {"schedule": stored, "anchor": job.anchor if job and job.schedule == stored else self.now}
        else:
            schedule = read_schedule(values["schedule"])
        if "repeat" in given or job is None or schedule.is_once:
            values["runs_left"] = _check_repeat(draft.repeat, schedule)
        values |= {name: self._check(name, value) for name, value in given.items() if name not in _CHECKED_APART}
        if "toolsets" not in given:
            values["toolsets"] = self._choose_toolsets(values["targets"], job)
        return JobFields(**values)

    def _check(self, name: str, value: Any) -> Any:
        """Return a given field as it is stored; one without a check of its own is a text that may be empty."""
        if JOB_FIELDS[name].reset_value == DEFAULT_CHOICE and value.strip().lower() in {"", DEFAULT_CHOICE}:
            return None
        checks: dict[str, Callable[[Any], object]] = {
            "name": clean_name,
            "prompt": clean_prompt,
            "targets": self._check_targets,
            "toolsets": self._check_toolsets,
            "model": self._check_model,
            "profile": lambda text: profiles.find_profile(self.environment.profile, text, self._check_model),
        }
        if name in checks:
            return checks[name](value)
        return clean_long_text(name, value, JOB_FIELDS[name].maximum) if value.strip() else None

    def _check_targets(self, targets: Iterable[str]) -> tuple[str, ...]:
        targets = tuple(targets)
        if not targets:
            raise InvalidInput(
                say("targets.none", "targets: name at least one, such as origin or local."), key="targets"
            )
        if len(targets) > MAX_TARGETS:
            text = say(
                "targets.too_many",
                "targets: {number} are too many. A job has at most {limit}.",
                number=str(len(targets)),
                limit=str(MAX_TARGETS),
            )
            raise InvalidInput(text, key="targets")
        return tuple(dict.fromkeys(map(self.check_target, targets)))

    def check_target(self, text: str) -> str:
        """Return a target as it is stored; raises InvalidInput, with the valid ones, unless the person may send there.

        The agent may have written it as it was shown to it, also with an id that is hidden from it.
        """
        if is_own_conversation(text, self.origin):
            return ORIGIN
        chats = self._find_chats(only_chat=self.only_chat, redactor=self.environment.redactor)
        return chats.resolve(text, is_from_agent=True).target

    def _find_chats(self, **options: Any) -> ReachableChats:
        config, now = self.environment.config, to_micros(self.now)
        return ReachableChats(self.tx, self.person.principal, config, now, origin=self.origin, **options)

    def _choose_toolsets(self, targets: Iterable[str], job: Job | None) -> tuple[str, ...]:
        """Return the toolsets of a job when none are named: none that know the person where others read along."""
        new_targets = targets if job is None else [target for target in targets if target not in job.targets]
        has_readers = has_other_readers(self._find_chats(), new_targets)
        if job is not None:
            return tuple(name for name in job.toolsets if not has_readers or name not in DEFAULT_TOOLSETS)
        grantable = list_grantable_toolsets(self.environment, self.person.role)
        return tuple(name for name in DEFAULT_TOOLSETS if not has_readers and name in grantable)

    def _check_toolsets(self, names: Iterable[str]) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
        refused = sorted(toolsets.NEVER_FOR_JOBS.intersection(names))
        if refused:
            raise InvalidInput(
                say("toolsets.not_for_jobs", "toolsets: a job can't use {name}. Leave it out.", name=refused[0]),
                toolset=refused[0],
            )
        toolsets.check_toolsets_exist(names, list_grantable_toolsets(self.environment, self.person.role))
        return names

    def _check_model(self, name: str) -> str:
        model = name.strip()
        check_model_choice(self.environment.agent, self.environment.rules, self.person.role, model)
        return model


def has_other_readers(chats: ReachableChats, targets: Iterable[str]) -> bool:
    """Whether people other than the job's person read what is sent to one of these; also true if that is unknown."""
    for target in targets:
        if chats.origin is not None and is_own_conversation(target, chats.origin):
            continue
        try:
            chat = chats.resolve(target)
        except InvalidInput:
            return True
        if chats.is_read_by_others(chat):
            return True
    return False


def list_grantable_toolsets(environment: JobEnvironment, role: Role) -> tuple[str, ...]:
    servers = environment.agent.list_tool_servers()
    names = toolsets.list_allowed_toolsets(environment.rules, servers, Platform.CRON, role)
    return tuple(name for name in names if name not in toolsets.NEVER_FOR_JOBS)


def get_person_timezone(environment: JobEnvironment, person: Person) -> str:
    """Return a person's time zone, or the gateway's if they have chosen none."""
    return person.timezone or environment.config.timezone


def clean_name(text: str) -> str:
    """Return a name as it is stored: on one line, and not too long."""
    name = " ".join(make_storable(text).split())
    if not name or len(name) > MAX_JOB_NAME_CHARS or not name.isprintable():
        message = say(
            "jobs.bad_name",
            "name: use 1 to {limit} characters on one line, such as Morning news.",
            limit=str(MAX_JOB_NAME_CHARS),
        )
        raise InvalidInput(message, key="name")
    return name


def clean_prompt(text: str) -> str:
    prompt = make_storable(text).strip()
    if not prompt:
        raise InvalidInput(say("jobs.no_prompt", "prompt: say what the agent should do."), key="prompt")
    if len(prompt) > MAX_PROMPT_CHARS:
        message = say(
            "jobs.prompt_too_long",
            "prompt: {length} characters are too many. The limit is {limit}.",
            length=str(len(prompt)),
            limit=str(MAX_PROMPT_CHARS),
        )
        raise InvalidInput(message, key="prompt")
    return prompt


def make_default_name(prompt: str) -> str:
    """Make a name from the first words of a prompt."""
    words = prompt[: 4 * _MAX_DEFAULT_NAME_CHARS].split()[:_MAX_NAME_WORDS]
    name = ""
    for word in words:
        if len(name) + 1 + len(word) > _MAX_DEFAULT_NAME_CHARS:
            break
        name = f"{name} {word}".strip()
    name = "".join(char for char in name or words[0][:_MAX_DEFAULT_NAME_CHARS] if char.isprintable())
    return name.rstrip(".,:;!?") or "Job"


def _require(value: str | None, key: str) -> str:
    if value is None or not value.strip():
        raise InvalidInput(say("jobs.field_missing", "{key}: is missing.", key=key), key=key)
    return value


def _check_repeat(repeat: int | None, schedule: Schedule) -> int | None:
    """Return how many scheduled runs a job has; None: without end."""
    check_count("repeat", repeat, minimum=0, maximum=MAX_REPEAT)
    if schedule.is_once:
        if repeat is not None and repeat > 1:
            raise InvalidInput(
                say("jobs.one_time", "repeat: this schedule has one time only. Use every, or cron."), key="repeat"
            )
        return None
    return repeat or None
