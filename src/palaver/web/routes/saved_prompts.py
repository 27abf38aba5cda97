"""Saved prompts: a person's texts with placeholders, for the composer of the page."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import Field

from palaver.core.wire import build_json
from palaver.prompts.model import PROMPT_FIELDS, SavedPromptJson, SavedPromptsJson, list_form_fields
from palaver.prompts.service import SavedPromptOperations
from palaver.web.api_route import make_router
from palaver.web.auth import OwnView
from palaver.web.errors import error_responses
from palaver.web.state import RequestModel, with_fields

router = make_router("saved prompts", "/api/prompts", responses=error_responses(401))

PromptId = Annotated[str, Path(description="The id of a saved prompt.", examples=["sp_1a2b3c4d5e6f"], max_length=40)]


def _make_fields(*, are_optional: bool) -> dict[str, Any]:
    """Return the fields of a saved prompt as a request gives them."""
    made: dict[str, Any] = {}
    for name, declared in PROMPT_FIELDS.items():
        examples = None if declared.example is None else [declared.example]
        limits = Field(min_length=int(name == "text"), max_length=declared.max_chars, examples=examples)
        text = Annotated[str, limits]
        made[name] = (text, ...) if declared.is_required and not are_optional else (text | None, None)
    return made


@with_fields(_make_fields(are_optional=False))
class NewSavedPromptIn(RequestModel):
    """A new saved prompt."""


@with_fields(_make_fields(are_optional=True))
class SavedPromptChangesIn(RequestModel):
    """Changes to a saved prompt. Fields that you leave out stay as they are."""


@router.get("")
async def list_saved_prompts(view: OwnView) -> SavedPromptsJson:
    """List your saved prompts, sorted by name."""
    prompts = await view.part(SavedPromptOperations).list()
    return {"prompts": [build_json(SavedPromptJson, each) for each in prompts], "fields": list_form_fields()}


@router.post("", status_code=201)
async def create_saved_prompt(view: OwnView, body: NewSavedPromptIn) -> SavedPromptJson:
    """Save a prompt."""
    given = body.model_dump()
    prompt = await view.part(SavedPromptOperations).create(given.pop("name"), given.pop("text"), **given)
    return build_json(SavedPromptJson, prompt)


@router.patch("/{prompt_id}", responses=error_responses(404))
async def update_saved_prompt(view: OwnView, prompt_id: PromptId, body: SavedPromptChangesIn) -> SavedPromptJson:
    """Change a saved prompt."""
    given = {
        name: value
        for name, value in body.model_dump(exclude_unset=True).items()
        if value is not None or not PROMPT_FIELDS[name].is_required
    }
    return build_json(SavedPromptJson, await view.part(SavedPromptOperations).update(prompt_id, **given))


@router.delete("/{prompt_id}", status_code=204, responses=error_responses(404))
async def delete_saved_prompt(view: OwnView, prompt_id: PromptId) -> None:
    """Delete a saved prompt."""
    await view.part(SavedPromptOperations).delete(prompt_id)
