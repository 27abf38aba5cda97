"""The settings of the agent's web tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.config.agent_rules import WebFetchRules, WebSearchRules, WebToolRules
from palaver.config.setting_templates import find_template
from palaver.config.validators import SearchProvider
from palaver.core.errors import ConfigError

if TYPE_CHECKING:
    from config.conftest import LoadSettings


def test_the_web_tools_have_the_settings_of_the_file(load: LoadSettings) -> None:
    text = "{fetch: {private_hosts: [wiki.home.lan, 10.0.0.7]}, search: {provider: brave, api_key: k-1}}"
    rules = load(f"web: {text}").turns.web
    assert rules == WebToolRules(
        fetch=WebFetchRules(private_hosts=("wiki.home.lan", "10.0.0.7")),
        search=WebSearchRules(provider=SearchProvider.BRAVE, api_key="k-1"),
    )
    assert "k-1" not in repr(rules)


@pytest.mark.parametrize("text", ["", "web: {fetch: , search: }", "web: {search: {provider: null}}"])
def test_by_default_nothing_private_is_read_and_nothing_searches(load: LoadSettings, text: str) -> None:
    assert load(text).turns.web == WebToolRules()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{search: {provider: google}}", 'web.search.provider: "google" is not allowed (searxng, brave, tavily)'),
        ("{search: {url: ftp://x}}", "web.search.url"),
        ("{fetch: {private_hosts: ['http://x']}}", "web.fetch.private_hosts.0"),
    ],
)
def test_wrong_values_are_named(load: LoadSettings, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(f"web: {text}")
    assert problem in str(caught.value)


def test_the_key_is_a_secret_and_applies_without_a_restart() -> None:
    template = find_template(("web", "search", "api_key"))
    assert template is not None
    assert (template.is_secret, template.needs_restart) == (True, False)
