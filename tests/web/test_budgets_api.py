"""Budgets over HTTP: one's own, everybody's, limits, warnings and metrics; and what others must not learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.config.budget_rules import BudgetScope
from palaver.core.engines.base import Write
from palaver.testing import FakeClock
from support.budgets import DOLLAR, store_usage

if TYPE_CHECKING:
    import httpx2

    from support.web import StartWebServer, WebServer


@pytest.fixture
async def web(start_web: StartWebServer) -> WebServer:
    """A server whose clock stands still, because a budget begins again at midnight."""
    return await start_web(clock=FakeClock())


async def use_budget(web: WebServer, scope: BudgetScope, subject: str, **amounts: int) -> None:
    store = web.gateway.store
    await store.engine.arun(Write(lambda tx: store_usage(tx, scope, subject, store.clock.now(), **amounts)))


async def get_person_id(client: httpx2.AsyncClient) -> str:
    return str((await client.get("/api/me")).json()["person"]["id"])


async def get_budgets(client: httpx2.AsyncClient, **params: Any) -> dict[str, Any]:
    response = await client.get("/api/budgets", params=params)
    assert response.status_code == 200, response.text
    budgets: dict[str, Any] = response.json()
    return budgets


async def test_an_owner_sets_lifts_and_clears_limits(web: WebServer) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("ada")
    url = f"/api/budgets/person/{await get_person_id(ada)}/day"
    response = await owner.put(url, json={"usd": "2.50", "tokens": 200_000})
    assert response.status_code == 200
    assert response.json()["subject_name"] == "ada"
    [day, month] = (await get_budgets(ada))["budgets"]
    assert (day["limit_usd"], day["limit_tokens"], day["percent"], day["is_limit_set"]) == ("2.5", 200_000, 0, True)
    assert (month["limit_usd"], month["percent"], month["is_limit_set"]) == (None, None, False)
    await owner.put(url, json={"tokens": None})  # only this unit
    [day, _] = (await get_budgets(ada))["budgets"]
    assert (day["limit_usd"], day["limit_tokens"]) == ("2.5", None)
    assert (await owner.delete(url)).status_code == 204
    assert (await owner.delete(url)).status_code == 204
    assert (await get_budgets(ada))["budgets"][0]["is_limit_set"] is False


@pytest.mark.both_engines
async def test_an_owner_lists_everybodys_budgets_in_pages(web: WebServer) -> None:
    owner = await web.sign_in()
    people = [await get_person_id(await web.sign_in(name)) for name in ("ada", "ben", "cleo")]
    for number, person_id in enumerate(people, start=1):
        await use_budget(web, BudgetScope.PERSON, person_id, tokens=number)
    await use_budget(web, BudgetScope.ALL, "", tokens=6, nanos=DOLLAR)
    await owner.put("/api/budgets/person/*/month", json={"usd": "10"})
    page = await get_budgets(owner, all=True, limit=2)
    found = page["budgets"]
    while page["next_cursor"]:
        page = await get_budgets(owner, all=True, limit=2, cursor=page["next_cursor"])
        found += page["budgets"]
    months = [budget for budget in found if budget["period"] == "month"]
    assert {(each["scope"], each["subject_name"], each["used_tokens"], each["limit_usd"]) for each in months} == {
        ("all", "Everybody", 6, None),
        ("person", "Each person", 0, "10"),
        ("person", "ada", 1, "10"),
        ("person", "ben", 2, "10"),
        ("person", "cleo", 3, "10"),
    }
    assert len(found) == 2 * len(months)


async def test_members_see_only_their_own(web: WebServer) -> None:
    ada, ben = await web.sign_in("ada"), await web.sign_in("ben")
    ada_id, ben_id = await get_person_id(ada), await get_person_id(ben)
    await use_budget(web, BudgetScope.PERSON, ada_id, nanos=7 * DOLLAR, tokens=777)
    await use_budget(web, BudgetScope.ALL, "", nanos=7 * DOLLAR, tokens=777)
    await (await web.sign_in()).put("/api/budgets/all/*/day", json={"usd": "7"})
    text = (await ben.get("/api/budgets")).text.replace(ben_id, "")  # which may contain any letters
    assert [hidden for hidden in ("ada", ada_id, '"7"', "777") if hidden in text] == []
    budgets = await get_budgets(ben)
    assert {(each["scope"], each["subject"]) for each in budgets["budgets"]} == {("person", ben_id)}
    [used_up] = budgets["used_up"]
    assert set(used_up) == {"scope", "subject", "period", "resets_at", "timezone"}
    assert (used_up["scope"], used_up["period"]) == ("all", "day")
    for response in (
        await ben.get("/api/budgets", params={"all": True}),
        await ben.put(f"/api/budgets/person/{ben_id}/day", json={"usd": "100"}),
        await ben.delete("/api/budgets/all/*/day"),
    ):
        assert response.status_code == 403


async def test_a_token_of_an_owner_needs_the_scope_admin_to_see_what_others_spend(web: WebServer) -> None:
    await use_budget(web, BudgetScope.ALL, "", nanos=7 * DOLLAR)
    reader = await web.open_token_client("read")
    assert {each["scope"] for each in (await get_budgets(reader))["budgets"]} == {"person"}
    assert {each["scope"] for each in (await get_budgets(await web.sign_in()))["budgets"]} == {"person", "all"}


async def test_the_budget_of_a_profile_is_in_the_conversation_that_uses_it(web: WebServer) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("ada")
    session_id = await web.create_conversation(owner, "hello")
    assert (await get_budgets(owner, session=session_id))["budgets"]
    assert (await ada.get("/api/budgets", params={"session": session_id})).status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("person/p_unknown/day", {"usd": "1"}, 404),
        ("job/j_none/day", {"usd": "1"}, 404),
        ("profile/cooking/day", {"usd": "1"}, 404),
        ("all/someone/day", {"usd": "1"}, 422),
        ("everyone/*/day", {"usd": "1"}, 422),
        ("all/*/year", {"usd": "1"}, 422),
        ("all/*/day", {"usd": "-1"}, 422),
        ("all/*/day", {"usd": "0.1234567"}, 422),
        ("all/*/day", {"usd": 1.5}, 422),  # money is text
        ("all/*/day", {"tokens": -1}, 422),
    ],
)
async def test_wrong_limits_are_refused(web: WebServer, path: str, body: dict[str, Any], status: int) -> None:
    assert (await (await web.sign_in()).put(f"/api/budgets/{path}", json=body)).status_code == status


async def test_metrics_show_the_budget_of_everybody_and_no_person(web: WebServer) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("ada")
    ada_id = await get_person_id(ada)
    await use_budget(web, BudgetScope.ALL, "", nanos=DOLLAR // 4, tokens=100, held_nanos=DOLLAR)
    await use_budget(web, BudgetScope.PERSON, ada_id, tokens=100)
    await owner.put("/api/budgets/all/*/month", json={"usd": "50"})
    web.gateway.budgets.refused_calls[BudgetScope.PERSON] += 2
    await owner.get("/metrics")
    text = (await owner.get("/metrics")).text
    assert 'palaver_budget_usd{kind="used",period="day"} 0.25\n' in text
    assert 'palaver_budget_usd{kind="held",period="day"} 1.0\n' in text
    assert 'palaver_budget_usd{kind="limit",period="month"} 50.0\n' in text
    assert 'palaver_budget_usd{kind="limit",period="day"}' not in text
    assert 'palaver_budget_tokens{kind="used",period="month"} 100.0\n' in text
    assert 'palaver_budget_refused_calls_total{scope="person"} 2.0\n' in text
    assert ada_id not in text
