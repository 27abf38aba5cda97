"""Reads jobs together with what they may cost: prices are loaded between two reads, outside of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.jobs.details import CostBasis

if TYPE_CHECKING:
    from palaver.agent.prices import ModelPrices
    from palaver.core.operation import AsyncRunner
    from palaver.core.source import SessionSource
    from palaver.jobs.details import JobDetails, JobPreview
    from palaver.jobs.proposal import JobDraft
    from palaver.jobs.service import Jobs
    from palaver.people.model import Principal


async def get_job(
    jobs: Jobs[AsyncRunner], prices: ModelPrices, principal: Principal, id_or_name: str, *, everything: bool = False
) -> JobDetails:
    details = await jobs.get(principal, id_or_name, everything=everything)
    previews = [details.preview, *([details.proposed_change] if details.proposed_change else [])]
    if await _load_missing_prices(prices, previews):
        details = await jobs.get(principal, id_or_name, everything=everything)
    return details


async def preview_job(
    jobs: Jobs[AsyncRunner],
    prices: ModelPrices,
    principal: Principal,
    draft: JobDraft,
    source: SessionSource,
    *,
    session_id: str | None = None,
    job: str | None = None,
    everything: bool = False,
) -> JobPreview:
    """Check a new job, or a change of one, and return it in words; nothing is stored."""

    async def read() -> JobPreview:
        return await jobs.preview(principal, draft, source, session_id=session_id, job=job, everything=everything)

    preview = await read()
    return await read() if await _load_missing_prices(prices, [preview]) else preview


async def _load_missing_prices(prices: ModelPrices, previews: list[JobPreview]) -> bool:
    """Load the prices that previews lack; return whether one was found."""
    models = {each.used_model for each in previews if each.cost_basis is CostBasis.UNKNOWN}
    missing = [model for model in models if not prices.is_loaded(model)]
    await prices.load(missing)
    return any(prices.find(model) is not None for model in missing)
