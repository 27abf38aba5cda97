"""Settings of the agent, its tools and its turns: valid values and problems."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from palaver.config.agent_rules import (
    DEFAULT_MESSAGES_PER_MINUTE,
    AgentProfile,
    CompactionRules,
    McpServer,
    MemoryRules,
    Profile,
    Provider,
    ToolsetRule,
    TurnRules,
)
from palaver.config.budget_rules import BudgetRules, TokenPrice
from palaver.core.errors import ConfigError
from palaver.core.source import Platform
from palaver.people.model import Role
from palaver.sessions.policy import ResetMode, ResetPolicy
from palaver.sessions.turn import BusyPolicy

if TYPE_CHECKING:
    from pathlib import Path

    from config.conftest import FindProblems, LoadSettings

MODEL_RULE = "demo, local, local:/path/of/model.gguf or provider:name such as openai:gpt-5"
PATTERN_RULE = f"{MODEL_RULE}; a * at the end stands for any ending, as in openai:*"
PRICE_RULE = "dollars for a million tokens, 0 to 1000000, such as 2.5"
WINDOW_RULE = "a whole number of tokens, 500 to 100000000"
URL_RULE = "a URL that begins with http:// or https://"
KEY_RULE = "ASCII characters without spaces, exactly as the provider gave it"
COMMAND_OR_URL = "set either command or url"
BUSY_RULE = "queue, steer, interrupt or reject"
AT_LEAST_ONE = "list at least one (or use enabled: false)"

DEFAULT_RULES = TurnRules(messages_per_minute=DEFAULT_MESSAGES_PER_MINUTE)


def test_the_agent_profile_has_all_settings_of_the_file(load: LoadSettings, full_config: str, tmp_path: Path) -> None:
    assert load(full_config).agent == AgentProfile(
        model="openai:gpt-5",
        fallback_models=("ollama:llama3:8b", "local", f"local:{tmp_path}/models/small.gguf"),
        context_windows={"ollama:llama3:8b": 8192},
        prices={"workshop:qwen3": TokenPrice(input_usd=Decimal("0.10"), output_usd=Decimal(1))},
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


def test_the_turn_rules_have_all_settings_of_the_file(load: LoadSettings, full_config: str, tmp_path: Path) -> None:
    assert load(full_config).turns == TurnRules(
        max_running=256,
        max_running_per_person=1,
        max_queued=1000,
        busy_policy=BusyPolicy.STEER,
        busy_policy_by_platform={Platform.TELEGRAM: BusyPolicy.INTERRUPT},
        merge_window_seconds=1.5,
        timeout_minutes=1440,
        open_platforms=frozenset({Platform.TELEGRAM}),
        allowed_users={Platform.TELEGRAM: frozenset({"007", "123"})},
        messages_per_minute={Role.OWNER: 600, Role.GUEST: 20},
        guest_commands=frozenset({"help", "new"}),
        toolsets={
            "memory": ToolsetRule(
                platforms=frozenset({Platform.TELEGRAM, Platform("irc")}), roles=frozenset({Role.OWNER, Role.GUEST})
            ),
            "schedule": ToolsetRule(),
            "messaging": ToolsetRule(),
            "web": ToolsetRule(),
        },
        models_by_role={
            Role.MEMBER: ("openai:gpt-5-mini", "ollama:*", f"local:{tmp_path}/models/small.gguf"),
            Role.GUEST: (),
        },
        budgets=BudgetRules(timezone="Europe/Berlin"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "turns:\ntoolsets:\nproviders:\nmcp_servers:\nfallback_models:\ninstructions:\ncontext_windows:\n",
        "toolsets: {memory: , history: {platforms: }}",
        "fallback_models: []",
        "models_by_role:",
    ],
)
def test_empty_sections_have_the_defaults(load: LoadSettings, text: str) -> None:
    settings = load(text)
    assert (settings.agent, settings.turns) == (AgentProfile(), DEFAULT_RULES)


def test_a_toolset_that_is_not_in_the_file_keeps_its_default_rule(load: LoadSettings) -> None:
    toolsets = load("toolsets: {memory: {roles: [guest]}}").turns.toolsets
    assert toolsets == {
        "history": ToolsetRule(),
        "memory": ToolsetRule(roles=frozenset({Role.GUEST})),
        "schedule": ToolsetRule(),
        "messaging": ToolsetRule(),
        "web": ToolsetRule(),
    }


def test_a_platform_is_open_to_everyone_only_if_configured(load: LoadSettings) -> None:
    text = "platforms: {telegram: {access: everyone}, slack: {access: known}, discord: }"
    assert load(text).turns.open_platforms == {Platform.TELEGRAM}


@pytest.mark.parametrize(
    ("name", "model"),
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
def test_a_model_name_is_accepted_and_its_path_made_absolute(
    load: LoadSettings, tmp_path: Path, name: str, model: str
) -> None:
    expected = model.format(home=tmp_path)
    assert load(f"model: {name}", HOME="/users/ada").agent.model == expected
    assert load("", HOME="/users/ada", PALAVER_MODEL=name).agent.model == expected


@pytest.mark.parametrize(
    "name",
    ["gpt-5", "", "Auto", "auto:x", "demo:x", "local:", "local: ", "openai:", "openai: gpt-5", ":x", "A:x", "7"],
)
def test_an_invalid_model_name_is_rejected(find_problems: FindProblems, name: str) -> None:
    assert find_problems(f"model: '{name}'") == [f'config.yaml:1: model: "{name}" is not allowed (auto, {MODEL_RULE})']


@pytest.mark.parametrize(
    "url", ["http://localhost:11434/v1", "https://example.org", "https://ada:pw@example.org/v1?x=1", "http://[::1]:80/"]
)
def test_a_url_is_accepted_unchanged(load: LoadSettings, url: str) -> None:
    text = f"providers: {{openai: {{base_url: '{url}'}}}}\nmcp_servers: {{one: {{url: '{url}'}}}}"
    agent = load(text).agent
    assert agent.providers["openai"].base_url == agent.mcp_servers["one"].url == url


@pytest.mark.parametrize(
    "url",
    [
        *("http://", "https://:80", "http://a b", "http://a:x", "http://a:99999", "http://[a"),
        *("http://[::1]x/", "http://999.1.1.1/", "http://a..b/"),
    ],
)
def test_an_invalid_url_is_rejected(find_problems: FindProblems, url: str) -> None:
    scheme = url.partition("//")[0]
    assert find_problems(f"providers: {{openai: {{base_url: '{url}'}}}}") == [
        f"config.yaml:1: providers.openai.base_url: {scheme}//… is not allowed ({URL_RULE})"
    ]


@pytest.mark.parametrize(
    ("key", "low", "high", "kind"),
    [
        ("max_running", 1, 256, "a whole number"),
        ("max_running_per_person", 1, 256, "a whole number"),
        ("max_queued", 1, 1000, "a whole number"),
        ("merge_window_seconds", 0, 60, "a number of seconds"),
        ("timeout_minutes", 1, 1440, "a whole number of minutes"),
    ],
)
def test_the_numbers_of_turns_have_limits(
    load: LoadSettings, find_problems: FindProblems, key: str, low: int, high: int, kind: str
) -> None:
    assert load(f"turns: {{{key}: {low}}}").turns != load(f"turns: {{{key}: {high}}}").turns
    invalid = {
        str(low - 1): low - 1,
        str(high + 1): high + 1,
        "true": "true",
        "'5'": '"5"',
        ".nan": "NaN",
        "": "an empty value",
    }
    if key != "merge_window_seconds":
        invalid["2.5"] = 2.5
    for text, shown_value in invalid.items():
        assert find_problems(f"turns: {{{key}: {text}}}") == [
            f"config.yaml:1: turns.{key}: {shown_value} is not allowed ({kind}, {low} to {high})"
        ]


def test_learning_is_off_by_default_and_memories_are_limited(load: LoadSettings, find_problems: FindProblems) -> None:
    assert load("").turns.memory == MemoryRules(learn=False, max_memories=200)
    assert load("memory: {learn: true, max_memories: 10}").turns.memory == MemoryRules(learn=True, max_memories=10)
    for value in (9, 1001, 2.5):
        assert find_problems(f"memory: {{max_memories: {value}}}") == [
            f"config.yaml:1: memory.max_memories: {value} is not allowed (a whole number, 10 to 1000)"
        ]


@pytest.mark.parametrize(
    ("key", "low", "high", "kind"),
    [("at_percent", 10, 95, "a whole number of percent"), ("keep_exchanges", 1, 50, "a whole number")],
)
def test_the_numbers_of_summaries_have_limits(
    load: LoadSettings, find_problems: FindProblems, key: str, low: int, high: int, kind: str
) -> None:
    rules = load(f"compaction: {{{key}: {low}, enabled: false, notify: false}}").turns.compaction
    assert rules == CompactionRules(**{key: low}, enabled=False, notify=False)
    for value in (low - 1, high + 1, 2.5):
        assert find_problems(f"compaction: {{{key}: {value}}}") == [
            f"config.yaml:1: compaction.{key}: {value} is not allowed ({kind}, {low} to {high})"
        ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("model: ", f"model: an empty value is not allowed (auto, {MODEL_RULE})"),
        ("context_windows: {'openai:x': 0}", f"context_windows.openai:x: 0 is not allowed ({WINDOW_RULE})"),
        ("context_windows: {'openai:x': big}", f'context_windows.openai:x: "big" is not allowed ({WINDOW_RULE})'),
        (
            "context_windows: {local: 1000}",
            "context_windows.local: this name is not valid (provider:name such as ollama:qwen3)",
        ),
        ("prices: {'openai:x': {input: 1}}", "prices.openai:x.output: this key is required"),
        (
            "prices: {'openai:x': {input: -1, output: 2}}",
            f'prices.openai:x.input: "-1" is not allowed ({PRICE_RULE})',
        ),
        (
            "prices: {local: {input: 1, output: 2}}",
            "prices.local: this name is not valid (provider:name such as ollama:qwen3)",
        ),
        ("fallback_models: demo", 'fallback_models: "demo" is not allowed (a list)'),
        ("fallback_models: [demo, auto]", f'fallback_models.1: "auto" is not allowed ({MODEL_RULE})'),
        ("fallback_models: [~]", f"fallback_models.0: an empty value is not allowed ({MODEL_RULE})"),
        ("models_by_role: [demo]", "models_by_role: a list is not allowed (a section with keys)"),
        ("models_by_role: {admin: [demo]}", "models_by_role.admin: this name is not valid (owner, member or guest)"),
        ("models_by_role: {member: demo}", 'models_by_role.member: "demo" is not allowed (a list)'),
        ("models_by_role: {member: [auto]}", f'models_by_role.member.0: "auto" is not allowed ({PATTERN_RULE})'),
        ("models_by_role: {member: ['*:x']}", f'models_by_role.member.0: "*:x" is not allowed ({PATTERN_RULE})'),
        (
            "models_by_role: {member: ['openai:*x']}",
            f'models_by_role.member.0: "openai:*x" is not allowed ({PATTERN_RULE})',
        ),
        ("instructions: [be brief]", "instructions: a list is not allowed (text)"),
        ("modle: demo", "modle: unknown key (did you mean model?)"),
        ("api_key: x", "api_key: unknown key (did you mean providers.<name>.api_key?)"),
        ("mcpServers: {}", "mcpServers: unknown key (did you mean mcp_servers?)"),
        ("providers: {openai: {api_key: ''}}", f"providers.openai.api_key: … is not allowed ({KEY_RULE})"),
        ("providers: {openai: {api_key: a b}}", f"providers.openai.api_key: … is not allowed ({KEY_RULE})"),
        ("providers: {openai: {apikey: x}}", "providers.openai.apikey: unknown key (did you mean api_key?)"),
        ("providers: {openai: x}", "providers.openai: … is not allowed (a section with keys)"),
        (
            "providers: {OpenAI: {}}",
            "providers.OpenAI: this name is not valid "
            "(up to 32 lowercase letters, digits, '_' or '-', starting with a letter)",
        ),
        ("mcp_servers: {one: }", f"mcp_servers.one: {COMMAND_OR_URL}"),
        ("mcp_servers: {one: {enabled: false}}", f"mcp_servers.one: {COMMAND_OR_URL}"),
        ("mcp_servers: {one: {command: x, url: 'http://x'}}", f"mcp_servers.one: {COMMAND_OR_URL}"),
        (
            "mcp_servers: {one: {url: 'http://x', args: [x]}}",
            "mcp_servers.one: args and env can only be used with command, not with url",
        ),
        (
            "mcp_servers: {one: {url: 'http://x', env: {A: x}}}",
            "mcp_servers.one: args and env can only be used with command, not with url",
        ),
        (
            "mcp_servers: {one: {command: x, headers: {A: x}}}",
            "mcp_servers.one: headers can only be used with url, not with command",
        ),
        ("mcp_servers: {one: {command: ' '}}", "mcp_servers.one.command: … is not allowed (text)"),
        ("mcp_servers: {one: {url: x}}", f"mcp_servers.one.url: … is not allowed ({URL_RULE})"),
        ("mcp_servers: {one: {command: x, args: -y}}", "mcp_servers.one.args: … is not allowed (a list)"),
        ("mcp_servers: {one: {command: x, args: [[]]}}", "mcp_servers.one.args.0: a list is not allowed (text)"),
        ("mcp_servers: {one: {command: x, env: {A: }}}", "mcp_servers.one.env.A: an empty value is not allowed (text)"),
        (
            "mcp_servers: {one: {command: x, env: [A=1]}}",
            "mcp_servers.one.env: a list is not allowed (a section with keys)",
        ),
        (
            "mcp_servers: {one: {command: x, env: {1A: x}}}",
            "mcp_servers.one.env.1A: this name is not valid (letters, digits and '_', not starting with a digit)",
        ),
        (
            "mcp_servers: {one: {url: 'http://x', headers: {'A b': x}}}",
            "mcp_servers.one.headers.…: this name is not valid (the name of an HTTP header, such as Authorization)",
        ),
        (
            'mcp_servers: {one: {url: "http://x", headers: {A: "x\\n"}}}',
            "mcp_servers.one.headers.A: … is not allowed (text on one line)",
        ),
        (
            "mcp_servers: {my server: {command: x}}",
            "mcp_servers.…: this name is not valid (up to 32 letters, digits, '_' or '-', starting with a letter)",
        ),
        ("mcp_servers: {one: {command: x, enabled: 1}}", "mcp_servers.one.enabled: … is not allowed (true or false)"),
        ("turns: {busy_policy: wait}", f'turns.busy_policy: "wait" is not allowed ({BUSY_RULE})'),
        ("turns: {busy_policy: }", f"turns.busy_policy: an empty value is not allowed ({BUSY_RULE})"),
        ("turns: {max_runing: 3}", "turns.max_runing: unknown key (did you mean max_running?)"),
        ("turns: 3", "turns: 3 is not allowed (a section with keys)"),
        ("platforms: {irc: {busy_policy: wait}}", f'platforms.irc.busy_policy: "wait" is not allowed ({BUSY_RULE})'),
        ("platforms: {irc: {access: all}}", 'platforms.irc.access: "all" is not allowed (known or everyone)'),
        ("platforms: {irc: {access: }}", "platforms.irc.access: an empty value is not allowed (known or everyone)"),
        ("toolsets: {memroy: {}}", "toolsets.memroy: unknown name (did you mean memory?)"),
        ("toolsets: {xyz: {}}", "toolsets.xyz: unknown name (known: history, memory, schedule, messaging, web)"),
        ("toolsets: {memory: {enabled: 1}}", "toolsets.memory.enabled: 1 is not allowed (true or false)"),
        ("toolsets: {memory: {role: [owner]}}", "toolsets.memory.role: unknown key (did you mean roles?)"),
        ("toolsets: {memory: {roles: owner}}", 'toolsets.memory.roles: "owner" is not allowed (a list)'),
        (
            "toolsets: {memory: {roles: [owner, gest]}}",
            'toolsets.memory.roles.1: "gest" is not allowed (owner, member or guest)',
        ),
        ("toolsets: {memory: {roles: []}}", f"toolsets.memory.roles: {AT_LEAST_ONE}"),
        ("toolsets: {memory: {platforms: []}}", f"toolsets.memory.platforms: {AT_LEAST_ONE}"),
        (
            "toolsets: {memory: {platforms: [telegrm]}}",
            'toolsets.memory.platforms.0: "telegrm" is not allowed (local, web, api, telegram, discord, slack, '
            "whatsapp, whatsapp-web, signal, matrix, email, webhook, cron)",
        ),
    ],
)
def test_each_problem_has_a_clear_message(find_problems: FindProblems, text: str, problem: str) -> None:
    assert find_problems(text) == [f"config.yaml:1: {problem}"]


def test_problems_that_concern_a_whole_section_are_reported_with_its_line(find_problems: FindProblems) -> None:
    text = "turns:\n  busy_policy: wait\nmcp_servers:\n  one:\n    command: x\n  two:\n    args: [x]\nmodel: gpt\n"
    assert find_problems(text, OPENAI_API_KEY="a b") == [
        f'config.yaml:2: turns.busy_policy: "wait" is not allowed ({BUSY_RULE})',
        f"config.yaml:6: mcp_servers.two: {COMMAND_OR_URL}",
        f'config.yaml:8: model: "gpt" is not allowed (auto, {MODEL_RULE})',
        f"OPENAI_API_KEY: … is not allowed ({KEY_RULE})",
    ]


PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA"
PROFILES = """\
mcp_servers:
  files: {command: npx}
profiles:
  work:
    description: 007
    instructions: You check invoices.
    model: openai:gpt-5
    toolsets: [history, mcp:files]
  quiet: {toolsets: []}
  plain:
  mine: {model: local:models/small.gguf}
personalities:
  pirate: Talk like a pirate.
  number: 42
"""


def test_profiles_and_personalities_are_read(load: LoadSettings, tmp_path: Path) -> None:
    agent = load(PROFILES).agent
    assert agent.profiles == {
        "work": Profile(
            description="007",
            instructions="You check invoices.",
            model="openai:gpt-5",
            toolsets=("history", "mcp:files"),
        ),
        "quiet": Profile(toolsets=()),
        "plain": Profile(),
        "mine": Profile(model=f"local:{tmp_path}/models/small.gguf"),
    }
    assert agent.personalities == {"pirate": "Talk like a pirate.", "number": "42"}


def test_a_profile_can_have_a_reset_policy_and_a_picture(load: LoadSettings) -> None:
    lines = [
        "timezone: Europe/Berlin",
        "profiles:",
        f"  work: {{picture: '{PICTURE}', session_reset: {{mode: idle, idle_minutes: 30}}}}",
        "  diary: {session_reset: {mode: none}}",
        "  plain: {session_reset: {idle_minutes: 30}}",
        "  empty: {session_reset: }",
    ]
    settings = load("\n".join(lines))
    assert settings.gateway.reset_by_profile == {
        "work": ResetPolicy(mode=ResetMode.IDLE, idle_minutes=30, timezone="Europe/Berlin"),
        "diary": ResetPolicy(timezone="Europe/Berlin"),
    }
    assert settings.agent.profiles["work"].picture == PICTURE


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("profiles: {work: {session_reset: {mode: weekly}}}", "none, idle, daily or both"),
        ("profiles: {work: {session_reset: {mod: idle}}}", "profiles.work.session_reset.mod: unknown key"),
        ("profiles: {work: {session_reset: {at_hour: 24}}}", "profiles.work.session_reset.at_hour: 24 is not allowed"),
        (f"profiles: {{work: {{picture: '{PICTURE.replace('png', 'svg+xml')}'}}}}", "a PNG, JPEG, WebP or GIF picture"),
        (f"profiles: {{work: {{picture: '{PICTURE.replace('png', 'gif')}'}}}}", "a PNG, JPEG, WebP or GIF picture"),
        (f"profiles: {{work: {{picture: '{PICTURE}A'}}}}", "a PNG, JPEG, WebP or GIF picture"),
        (f"profiles: {{work: {{picture: '{PICTURE}{'A' * 65536}'}}}}", "at most 65536 characters"),
        ("profiles: {work: {picture: https://example.org/a.png}}", "profiles.work.picture: "),
        ("profiles: {default: {}}", "profiles.default: this name is not valid"),
        ("profiles: {Work: {}}", "profiles.Work: this name is not valid"),
        ("profiles: {work: {model: auto}}", 'profiles.work.model: "auto" is not allowed'),
        ("profiles: {work: {toolset: []}}", "profiles.work.toolset: unknown key (did you mean toolsets?)"),
        ("profiles: {work: {toolsets: [files]}}", 'profiles.work.toolsets.0: "files" is not allowed'),
        ("profiles: {work: {toolsets: [mcp:files]}}", "there is no files in mcp_servers (known: none)"),
        ("personalities: {pirate: }", "personalities.pirate: an empty value is not allowed (text)"),
        ("personalities: {default: x}", "personalities.default: this name is not valid"),
    ],
)
def test_problems_of_profiles_are_reported(find_problems: FindProblems, text: str, problem: str) -> None:
    problems = find_problems(text)
    assert len(problems) == 1
    assert problem in problems[0]


@pytest.mark.parametrize(
    ("platform", "user", "advice"),
    [
        ("telegram", "@ada", "a number such as 123456789"),
        ("discord", "ada#1234", "a number"),
        ("matrix", "@ada", "@ada:example.org"),
        ("signal", "+491701234567", "UUID"),
        ("slack", "ada", "U012AB3CD"),
        ("my_irc", "@ada", "the id that the platform gives a user"),
    ],
)
def test_names_are_refused_in_allow_lists(load: LoadSettings, platform: str, user: str, advice: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(f"platforms: {{{platform}: {{allowed_users: ['{user}']}}}}")
    assert f"{platform}.allowed_users: {user!r} is not a user's id." in str(caught.value)
    assert advice in str(caught.value)


def test_ids_in_allow_lists_stay_text(load: LoadSettings) -> None:
    text = "platforms: {telegram: {allowed_users: [007, 12345678901]}, matrix: {allowed_users: ['@ada:example.org']}}"
    assert load(text).turns.allowed_users == {
        Platform.TELEGRAM: {"007", "12345678901"},
        Platform.MATRIX: {"@ada:example.org"},
    }


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("people:", {Role.MEMBER: 60, Role.GUEST: 20}),
        ("people: {messages_per_minute: {member: null, owner: 100}}", {Role.OWNER: 100, Role.GUEST: 20}),
    ],
)
def test_limits_of_messages_are_by_role(load: LoadSettings, text: str, limits: dict[Role, int]) -> None:
    assert load(text).turns.messages_per_minute == limits
