"""The web application: all routes, the guard around them, and the page.

`create_app` connects the parts and starts nothing; the code that runs the server starts and stops the gateway.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI

from palaver import __version__
from palaver.web import openai
from palaver.web.errors import error_responses, install_errors
from palaver.web.guard import install_guard
from palaver.web.metrics import install_metrics
from palaver.web.openapi import get_operation_id, install_openapi
from palaver.web.page import install_page
from palaver.web.routes import (
    attachments,
    commands,
    health,
    live,
    me,
    memories,
    messages,
    models,
    people,
    platforms,
    policies,
    projects,
    search,
    sessions,
    shares,
    sign_in,
    toolsets,
    usage,
)

if TYPE_CHECKING:
    from palaver.web.state import WebState

PAGE_FOLDER: Final = Path(__file__).parent / "static"

_API_MODULES = (
    *(sign_in, me, people),
    *(sessions, toolsets, messages, search, projects, memories, models, policies, commands, usage),
    *(live, attachments, shares, platforms),
)


def create_app(state: WebState, page_folder: Path = PAGE_FOLDER) -> FastAPI:
    """Build the application. Without a built page in `page_folder`, it serves the API alone."""
    app = FastAPI(
        title="Palaver",
        version=__version__,
        summary="Conversations between people and one AI agent.",
        docs_url=None,  # the docs pages load scripts from other sites
        redoc_url=None,
        openapi_url="/api/openapi.json",
        generate_unique_id_function=get_operation_id,
        responses=error_responses(400, 403, 422, 500, 503),
        redirect_slashes=False,
    )
    app.state.palaver = state
    install_errors(app)
    for module in _API_MODULES:
        app.include_router(module.router, prefix="/api")
    app.include_router(health.router)
    app.include_router(openai.router)
    install_openapi(app)
    install_page(app, page_folder)
    install_metrics(app, state)
    install_guard(app, state)
    return app
