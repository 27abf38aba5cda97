"""Settings of the agent, its tools and its turns: what arrives of them, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from palaver.domain.person import Role
from palaver.domain.profile import AgentProfile, McpServer, Provider, ToolsetRule, TurnRules
from palaver.domain.source import Platform
from palaver.domain.turn import BusyPolicy

if TYPE_CHECKING:
    from pathlib import Path

    from config.conftest import Load, Mistakes

MODELS = "demo, local, local:/path/of/model.gguf or provider:name such as openai:gpt-5"
WINDOW = "a whole number of tokens, 500 to 100000000"
ADDRESS = "an address that begins with http:// or https://"
KEY = "ASCII characters without spaces, as the provider gave it"
ONE_OF_TWO = "give either command or url, one of the two"
BUSY = "queue, steer, interrupt or reject"
SOME = "name at least one (enabled: false switches it off)"


def test_everything_about_the_agent_arrives(load: Load, everything: str, tmp_path: Path) -> None:
    assert load(everything).agent == AgentProfile(
        model="openai:gpt-5",
        fallback_models=("ollama:llama3:8b", "local", f"local:{tmp_path}/models/small.gguf"),
        context_windows={"ollama:llama3:8b": 8192},
        instructions="Be brief.",
        providers={
            "openai": Provider(api_key="007", base_url="https://eu.example.org/v1"),
            "google": Provider(api_key="from-the-file"),
            "workshop": Provider(),
        },
        mcp_servers={
            "files": McpServer(command="npx", args=("-y", "8080"), env={"DEBUG": "yes", "EMPTY": ""}),
            "Calendar": McpServer(url="http://127.0.0.1:9000/mcp?room=1", headers={"X-Room": "0x1F"}),
        },
    )


def test_everything_about_turns_arrives(load: Load, everything: str) -> None:
    assert load(everything).turns == TurnRules(
        concurrency=256,
        per_person=1,
        queue_limit=1000,
        busy=BusyPolicy.STEER,
        busy_by_platform={Platform.TELEGRAM: BusyPolicy.INTERRUPT},
        collect=timedelta(seconds=1.5),
        longest=timedelta(days=1),
        open_to_all=frozenset({Platform.TELEGRAM}),
        toolsets={
            "memory": ToolsetRule(
                platforms=frozenset({Platform.TELEGRAM, Platform("irc")}), roles=frozenset({Role.OWNER, Role.GUEST})
            )
        },
    )


@pytest.mark.parametrize(
    "text",
    [
        "turns:\ntoolsets:\nproviders:\nmcp_servers:\nfallback_models:\ninstructions:\ncontext_windows:\n",
        "toolsets: {memory: , history: {platforms: }}",
        "fallback_models: []",
    ],
)
def test_what_is_left_empty_has_the_defaults(load: Load, text: str) -> None:
    settings = load(text)
    assert (settings.agent, settings.turns) == (AgentProfile(), TurnRules())


def test_a_toolset_that_is_not_named_keeps_its_rule(load: Load) -> None:
    toolsets = load("toolsets: {memory: {roles: [guest]}}").turns.toolsets
    assert toolsets == {"history": ToolsetRule(), "memory": ToolsetRule(roles=frozenset({Role.GUEST}))}


def test_strangers_may_speak_only_where_the_operator_says_so(load: Load) -> None:
    text = "platforms: {telegram: {access: everyone}, slack: {access: known}, discord: }"
    assert load(text).turns.open_to_all == {Platform.TELEGRAM}


@pytest.mark.parametrize(
    ("given", "model"),
    [
        ("auto", "auto"),
        ("demo", "demo"),
        ("local", "local"),
        ("local:/srv/a model.gguf", "local:/srv/a model.gguf"),
        ("local:small.gguf", "local:{home}/small.gguf"),
        ("local:~/small.gguf", "local:/users/ada/small.gguf"),
        ("openai:gpt-5", "openai:gpt-5"),
        ("ollama:llama3:8b", "ollama:llama3:8b"),
        ("my-server:org/model@1.0", "my-server:org/model@1.0"),
    ],
)
def test_a_model_is_named_by_its_kind_path_or_provider(load: Load, tmp_path: Path, given: str, model: str) -> None:
    expected = model.format(home=tmp_path)
    assert load(f"model: {given}", HOME="/users/ada").agent.model == expected
    assert load("", HOME="/users/ada", PALAVER_MODEL=given).agent.model == expected


@pytest.mark.parametrize(
    "given",
    ["gpt-5", "", "Auto", "auto:x", "demo:x", "local:", "local: ", "openai:", "openai: gpt-5", ":x", "A:x", "7"],
)
def test_what_names_no_model_is_refused(mistakes: Mistakes, given: str) -> None:
    assert mistakes(f"model: '{given}'") == [f'config.yaml:1: model: "{given}" is not allowed (auto, {MODELS})']


@pytest.mark.parametrize(
    "url", ["http://localhost:11434/v1", "https://example.org", "https://ada:pw@example.org/v1?x=1", "http://[::1]:80/"]
)
def test_an_address_is_taken_as_it_is(load: Load, url: str) -> None:
    text = f"providers: {{openai: {{base_url: '{url}'}}}}\nmcp_servers: {{one: {{url: '{url}'}}}}"
    agent = load(text).agent
    assert agent.providers["openai"].base_url == agent.mcp_servers["one"].url == url


@pytest.mark.parametrize("url", ["http://", "https://:80", "http://a b", "http://a:x", "http://a:99999", "http://[a"])
def test_what_cannot_be_reached_is_no_address(mistakes: Mistakes, url: str) -> None:
    scheme = url.partition("//")[0]
    assert mistakes(f"providers: {{openai: {{base_url: '{url}'}}}}") == [
        f"config.yaml:1: providers.openai.base_url: {scheme}//… is not allowed ({ADDRESS})"
    ]


@pytest.mark.parametrize(
    ("key", "low", "high", "kind"),
    [
        ("concurrency", 1, 256, "a whole number"),
        ("per_person", 1, 256, "a whole number"),
        ("queue_limit", 1, 1000, "a whole number"),
        ("collect_seconds", 0, 60, "a number of seconds"),
        ("longest_minutes", 1, 1440, "a whole number of minutes"),
    ],
)
def test_a_number_about_turns_has_its_bounds(
    load: Load, mistakes: Mistakes, key: str, low: int, high: int, kind: str
) -> None:
    assert load(f"turns: {{{key}: {low}}}").turns != load(f"turns: {{{key}: {high}}}").turns
    wrong = {str(low - 1): low - 1, str(high + 1): high + 1, "true": "true", "'5'": '"5"', ".nan": "NaN", "": "nothing"}
    if key != "collect_seconds":
        wrong["2.5"] = 2.5
    for given, shown in wrong.items():
        assert mistakes(f"turns: {{{key}: {given}}}") == [
            f"config.yaml:1: turns.{key}: {shown} is not allowed ({kind}, {low} to {high})"
        ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("model: ", f"model: nothing is not allowed (auto, {MODELS})"),
        ("context_windows: {'openai:x': 0}", f"context_windows.openai:x: 0 is not allowed ({WINDOW})"),
        ("context_windows: {'openai:x': big}", f'context_windows.openai:x: "big" is not allowed ({WINDOW})'),
        (
            "context_windows: {local: 1000}",
            "context_windows.local: this cannot be a name (provider:name such as ollama:qwen3)",
        ),
        ("fallback_models: demo", 'fallback_models: "demo" is not allowed (a list)'),
        ("fallback_models: [demo, auto]", f'fallback_models.1: "auto" is not allowed ({MODELS})'),
        ("fallback_models: [~]", f"fallback_models.0: nothing is not allowed ({MODELS})"),
        ("instructions: [be brief]", "instructions: a list is not allowed (text)"),
        ("modle: demo", "modle: unknown key (did you mean model?)"),
        ("api_key: x", "api_key: unknown key (did you mean providers.<name>.api_key?)"),
        ("mcpServers: {}", "mcpServers: unknown key (did you mean mcp_servers?)"),
        ("providers: {openai: {api_key: ''}}", f"providers.openai.api_key: … is not allowed ({KEY})"),
        ("providers: {openai: {api_key: a b}}", f"providers.openai.api_key: … is not allowed ({KEY})"),
        ("providers: {openai: {apikey: x}}", "providers.openai.apikey: unknown key (did you mean api_key?)"),
        ("providers: {openai: x}", "providers.openai: … is not allowed (a section with keys of its own)"),
        (
            "providers: {OpenAI: {}}",
            "providers.OpenAI: this cannot be a name "
            "(up to 32 small letters, digits, '_' or '-', beginning with a letter)",
        ),
        ("mcp_servers: {one: }", f"mcp_servers.one: {ONE_OF_TWO}"),
        ("mcp_servers: {one: {enabled: false}}", f"mcp_servers.one: {ONE_OF_TWO}"),
        ("mcp_servers: {one: {command: x, url: 'http://x'}}", f"mcp_servers.one: {ONE_OF_TWO}"),
        (
            "mcp_servers: {one: {url: 'http://x', args: [x]}}",
            "mcp_servers.one: args and env go with command, not with url",
        ),
        (
            "mcp_servers: {one: {url: 'http://x', env: {A: x}}}",
            "mcp_servers.one: args and env go with command, not with url",
        ),
        (
            "mcp_servers: {one: {command: x, headers: {A: x}}}",
            "mcp_servers.one: headers go with url, not with command",
        ),
        ("mcp_servers: {one: {command: ' '}}", "mcp_servers.one.command: … is not allowed (text)"),
        ("mcp_servers: {one: {url: x}}", f"mcp_servers.one.url: … is not allowed ({ADDRESS})"),
        ("mcp_servers: {one: {command: x, args: -y}}", "mcp_servers.one.args: … is not allowed (a list)"),
        ("mcp_servers: {one: {command: x, args: [[]]}}", "mcp_servers.one.args.0: a list is not allowed (text)"),
        ("mcp_servers: {one: {command: x, env: {A: }}}", "mcp_servers.one.env.A: nothing is not allowed (text)"),
        (
            "mcp_servers: {one: {command: x, env: [A=1]}}",
            "mcp_servers.one.env: a list is not allowed (a section with keys of its own)",
        ),
        (
            "mcp_servers: {one: {command: x, env: {1A: x}}}",
            "mcp_servers.one.env.1A: this cannot be a name (letters, digits and '_', not beginning with a digit)",
        ),
        (
            "mcp_servers: {one: {url: 'http://x', headers: {'A b': x}}}",
            "mcp_servers.one.headers.…: this cannot be a name (the name of an HTTP header, such as Authorization)",
        ),
        (
            'mcp_servers: {one: {url: "http://x", headers: {A: "x\\n"}}}',
            "mcp_servers.one.headers.A: … is not allowed (text on one line)",
        ),
        (
            "mcp_servers: {my server: {command: x}}",
            "mcp_servers.…: this cannot be a name (up to 32 letters, digits, '_' or '-', beginning with a letter)",
        ),
        ("mcp_servers: {one: {command: x, enabled: 1}}", "mcp_servers.one.enabled: … is not allowed (true or false)"),
        ("turns: {busy: wait}", f'turns.busy: "wait" is not allowed ({BUSY})'),
        ("turns: {busy: }", f"turns.busy: nothing is not allowed ({BUSY})"),
        ("turns: {concurency: 3}", "turns.concurency: unknown key (did you mean concurrency?)"),
        ("turns: 3", "turns: 3 is not allowed (a section with keys of its own)"),
        ("platforms: {irc: {busy: wait}}", f'platforms.irc.busy: "wait" is not allowed ({BUSY})'),
        ("platforms: {irc: {access: all}}", 'platforms.irc.access: "all" is not allowed (known or everyone)'),
        ("platforms: {irc: {access: }}", "platforms.irc.access: nothing is not allowed (known or everyone)"),
        ("toolsets: {memroy: {}}", "toolsets.memroy: unknown name (did you mean memory?)"),
        ("toolsets: {xyz: {}}", "toolsets.xyz: unknown name (known: history, memory)"),
        ("toolsets: {memory: {enabled: 1}}", "toolsets.memory.enabled: 1 is not allowed (true or false)"),
        ("toolsets: {memory: {role: [owner]}}", "toolsets.memory.role: unknown key (did you mean roles?)"),
        ("toolsets: {memory: {roles: owner}}", 'toolsets.memory.roles: "owner" is not allowed (a list)'),
        (
            "toolsets: {memory: {roles: [owner, gest]}}",
            'toolsets.memory.roles.1: "gest" is not allowed (owner, member or guest)',
        ),
        ("toolsets: {memory: {roles: []}}", f"toolsets.memory.roles: {SOME}"),
        ("toolsets: {memory: {platforms: []}}", f"toolsets.memory.platforms: {SOME}"),
        (
            "toolsets: {memory: {platforms: [telegrm]}}",
            'toolsets.memory.platforms.0: "telegrm" is not allowed (local, web, api, telegram, discord, slack, '
            "whatsapp, signal, matrix, webhook, cron)",
        ),
    ],
)
def test_each_mistake_is_said_in_words(mistakes: Mistakes, text: str, complaint: str) -> None:
    assert mistakes(text) == [f"config.yaml:1: {complaint}"]


def test_a_server_is_blamed_on_its_own_line_and_with_the_others(mistakes: Mistakes) -> None:
    text = "turns:\n  busy: wait\nmcp_servers:\n  one:\n    command: x\n  two:\n    args: [x]\nmodel: gpt\n"
    assert mistakes(text, OPENAI_API_KEY="a b") == [
        f'config.yaml:2: turns.busy: "wait" is not allowed ({BUSY})',
        f"config.yaml:6: mcp_servers.two: {ONE_OF_TWO}",
        f'config.yaml:8: model: "gpt" is not allowed (auto, {MODELS})',
        f"OPENAI_API_KEY: … is not allowed ({KEY})",
    ]
