"""Saved prompts: a person's texts with placeholders, for the composer of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Path
from pydantic import Field

from palaver.prompts.service import SavedPromptOperations
from palaver.prompts.table import MAX_PROMPT_CHARS
from palaver.web.api_route import make_router
from palaver.web.auth import OwnView
from palaver.web.errors import error_responses
from palaver.web.state import RequestModel, ResponseModel, ShortText, Time

if TYPE_CHECKING:
    from palaver.prompts.table import SavedPrompt

router = make_router("saved prompts", "/api/prompts", responses=error_responses(401))

PromptText = Annotated[
    str, Field(min_length=1, max_length=MAX_PROMPT_CHARS, examples=["Explain {{topic}} to {{audience}}."])
]
PromptId = Annotated[str, Path(description="The id of a saved prompt.", examples=["sp_1a2b3c4d5e6f"], max_length=40)]


class SavedPromptOut(ResponseModel):
    """A saved prompt. `{{word}}` in its text is a placeholder."""

    id: str
    name: str
    text: str
    created_at: Time
    updated_at: Time


class SavedPromptsOut(ResponseModel):
    """Your saved prompts, sorted by name."""

    prompts: list[SavedPromptOut]


class NewSavedPromptIn(RequestModel):
    """A new saved prompt."""

    name: ShortText
    text: PromptText


class SavedPromptChangesIn(RequestModel):
    """Changes to a saved prompt. Fields that you leave out stay as they are."""

    name: ShortText | None = None
    text: PromptText | None = None


@router.get("")
async def list_saved_prompts(view: OwnView) -> SavedPromptsOut:
    """List your saved prompts, sorted by name."""
    return SavedPromptsOut(prompts=[_to_prompt_out(each) for each in await view.part(SavedPromptOperations).list()])


@router.post("", status_code=201)
async def create_saved_prompt(view: OwnView, body: NewSavedPromptIn) -> SavedPromptOut:
    """Save a prompt."""
    return _to_prompt_out(await view.part(SavedPromptOperations).create(body.name, body.text))


@router.patch("/{prompt_id}", responses=error_responses(404))
async def update_saved_prompt(view: OwnView, prompt_id: PromptId, body: SavedPromptChangesIn) -> SavedPromptOut:
    """Change the name or the text of a saved prompt."""
    return _to_prompt_out(await view.part(SavedPromptOperations).update(prompt_id, name=body.name, text=body.text))


@router.delete("/{prompt_id}", status_code=204, responses=error_responses(404))
async def delete_saved_prompt(view: OwnView, prompt_id: PromptId) -> None:
    """Delete a saved prompt."""
    await view.part(SavedPromptOperations).delete(prompt_id)


def _to_prompt_out(prompt: SavedPrompt) -> SavedPromptOut:
    return SavedPromptOut(
        id=prompt.id,
        name=prompt.name,
        text=prompt.text,
        created_at=prompt.created_at,
        updated_at=prompt.updated_at,
    )
