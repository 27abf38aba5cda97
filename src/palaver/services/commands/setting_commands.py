"""Commands that decide something for one conversation: its model, its tools, and what happens while it is busy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.domain.turn import BusyPolicy
from palaver.services import toolsets
from palaver.services.commands.base import BadArguments, Command, Reply
from palaver.services.commands.command_context import begun, visible
from palaver.services.commands.reply_text import code
from palaver.storage import session_settings
from palaver.storage.session_settings import SessionSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.services.commands.base import CommandContext

DEFAULT = "default"
MEANING = {
    BusyPolicy.QUEUE: "waits its turn",
    BusyPolicy.STEER: "is given to the agent after its next tool call",
    BusyPolicy.INTERRUPT: "stops the agent and is answered instead",
    BusyPolicy.REJECT: "is not taken",
}


def _model(asked: CommandContext) -> Reply:
    if not asked.arguments:
        return _models(asked)
    chosen = None if asked.arguments.lower() == DEFAULT else asked.arguments
    if chosen is not None:
        asked.agent.check_model(chosen)
    found = begun(asked)
    was = session_settings.read(asked.tx, found.no).model
    session_settings.choose_model(asked.tx, found.no, chosen, asked.at, asked.person_id)
    model = chosen or asked.agent.model
    text = f"From the next message on {code(model)} answers in this conversation. {_back('model', was, chosen)}"
    return Reply(text=text.rstrip(), session_id=found.session.id, facts={"model": model, "chosen": chosen, "was": was})


def _models(asked: CommandContext) -> Reply:
    settings = session_settings.read(asked.tx, visible(asked).no) if asked.found else SessionSettings()
    model = settings.model or asked.agent.model
    why = "chosen for this conversation" if settings.model else "the default"
    choices = list(asked.agent.models())
    lines = "\n".join(f"- {code(name)}" for name in choices)
    text = f"{code(model)} answers here ({why}). To be chosen with `/model name`:\n\n{lines}\n\n"
    text += "`/model default` goes back to the default."
    return Reply(text=text, facts={"model": model, "chosen": settings.model, "models": choices})


def _busy(asked: CommandContext) -> Reply:
    given = asked.arguments.lower()
    if given not in {"", DEFAULT, *BusyPolicy}:
        choices = ", ".join(code(name) for name in (*BusyPolicy, DEFAULT))
        raise BadArguments(f"`/busy` takes one of {choices}.")
    usual = asked.rules.busy_policy_for(asked.source)
    if not given:
        settings = session_settings.read(asked.tx, visible(asked).no) if asked.found else SessionSettings()
        return _shown_busy(settings.busy, usual)
    chosen = None if given == DEFAULT else BusyPolicy(given)
    found = begun(asked)
    was = session_settings.read(asked.tx, found.no).busy
    session_settings.choose_busy(asked.tx, found.no, chosen, asked.at, asked.person_id)
    text = f"{_holds(chosen or usual)} {_back('busy', was, chosen)}"
    return Reply(text=text.rstrip(), session_id=found.session.id, facts={"busy": chosen or usual, "chosen": chosen})


def _shown_busy(chosen: BusyPolicy | None, usual: BusyPolicy) -> Reply:
    lines = "\n".join(f"- {code(f'/busy {name}')}: it {meaning}" for name, meaning in MEANING.items())
    why = "chosen for this conversation" if chosen else "the default"
    text = f"{_holds(chosen or usual)} That is {why}. To be chosen:\n\n{lines}\n- `/busy default`: as the settings say"
    return Reply(text=text, facts={"busy": chosen or usual, "chosen": chosen})


def _tools(asked: CommandContext) -> Reply:
    word, _, names = asked.arguments.partition(" ")
    there = _toolsets(asked)
    if not word:
        settings = session_settings.read(asked.tx, visible(asked).no) if asked.found else SessionSettings()
        return Reply(text=_listed(there, settings.toolsets_off), facts=_tool_facts(there, settings.toolsets_off))
    if word.lower() not in {"on", "off", DEFAULT} or (word.lower() == DEFAULT) == bool(names.strip()):
        raise BadArguments("`/tools` takes `on` or `off` and the name of a toolset, or `default`.")
    switches = None
    if word.lower() != DEFAULT:
        known = {name.lower(): name for name in there}
        switches = {known.get(name.lower(), name): word.lower() == "on" for name in names.split()}
        toolsets.check_known(switches, there)
    found = begun(asked)
    was = session_settings.read(asked.tx, found.no).toolsets_off
    session_settings.switch_toolsets(asked.tx, found.no, switches, asked.at, asked.person_id)
    off = session_settings.read(asked.tx, found.no).toolsets_off
    text = f"{_are_off(off)} {_switched_back(was, off)}"
    return Reply(text=text.rstrip(), session_id=found.session.id, facts=_tool_facts(there, off))


def _toolsets(asked: CommandContext) -> tuple[str, ...]:
    """Those that there are for the asker here."""
    rules, servers, role = asked.rules, asked.agent.tool_servers(), asked.principal.role
    if asked.found is None:
        return toolsets.names(rules, servers, asked.source.platform, role)
    return toolsets.names_in(asked.found.session, rules, servers, role)


def _listed(there: Sequence[str], off: Sequence[str]) -> str:
    if not there:
        return "The agent has no tools for you here."
    lines = "\n".join(f"- {code(name)} ({'off' if name in off else 'on'}): {toolsets.describe(name)}" for name in there)
    return (
        f"The agent has these tools for you here:\n\n{lines}\n\n`/tools off name` and `/tools on name` switch them for"
        " this conversation, `/tools default` takes that back."
    )


def _are_off(off: Sequence[str]) -> str:
    if not off:
        return "From the next message on the agent has all its tools in this conversation."
    names = ", ".join(map(code, off))
    return f"From the next message on these tools are off in this conversation: {names}."


def _switched_back(was: Sequence[str], off: Sequence[str]) -> str:
    commands = [
        code(f"/tools {word} {' '.join(changed)}")
        for word, changed in (("on", sorted({*off} - {*was})), ("off", sorted({*was} - {*off})))
        if changed
    ]
    return f"{' and '.join(commands)} takes that back." if commands else ""


def _tool_facts(there: Sequence[str], off: Sequence[str]) -> dict[str, Any]:
    return {"toolsets": list(there), "off": list(off)}


def _holds(policy: BusyPolicy) -> str:
    return f"A message that arrives here while the agent answers {MEANING[policy]} ({code(policy)})."


def _back(name: str, was: str | None, chosen: str | None) -> str:
    return "" if was == chosen else f"{code(f'/{name} {was or DEFAULT}')} takes that back."


MODEL = Command(
    name="model",
    usage="[name | default]",
    summary="choose which model answers here",
    help="Alone it shows the present one and what can be chosen. It holds for this conversation alone.",
    example="/model default",
    run=_model,
)
TOOLS = Command(
    name="tools",
    usage="[on name | off name | default]",
    summary="switch the agent's tools off and on here",
    help=(
        "Alone it lists the toolsets there are and whether they are on. It holds for this conversation alone, and gives"
        " nothing that the settings of this gateway do not allow."
    ),
    example="/tools off memory",
    run=_tools,
)
BUSY = Command(
    name="busy",
    usage="[queue | steer | interrupt | reject | default]",
    summary="choose what happens to messages while the agent answers",
    help=(
        "`queue`: they wait; `steer`: the running agent is told; `interrupt`: it stops and answers the new one;"
        " `reject`: they are not taken. It holds for this conversation alone."
    ),
    example="/busy interrupt",
    run=_busy,
)
