"""The web application: every route, the guard around them, and the page.

`create_app` puts the parts together and starts nothing; whoever serves it (`server.py`) starts and stops the gateway.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI

from palaver import __version__
from palaver.web import openai
from palaver.web.errors import answers, install_errors
from palaver.web.guard import install_guard
from palaver.web.metrics import install_metrics
from palaver.web.openapi import install_openapi, operation_id
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

PAGE: Final = Path(__file__).parent / "static"

_API = (
    *(sign_in, me, people),
    *(sessions, toolsets, messages, search, projects, memories, models, policies, commands, usage),
    *(live, attachments, shares, platforms),
)


def create_app(state: WebState, page: Path = PAGE) -> FastAPI:
    """The application on a gateway; `page` is the folder with the built page, if there is one."""
    app = FastAPI(
        title="Palaver",
        version=__version__,
        summary="Conversations between people and one AI agent.",
        docs_url=None,  # their scripts come from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
        generate_unique_id_function=operation_id,
        responses=answers(400, 403, 422, 500, 503),
        redirect_slashes=False,
    )
    app.state.palaver = state
    install_errors(app)
    for noun in _API:
        app.include_router(noun.router, prefix="/api")
    app.include_router(health.router)
    app.include_router(openai.router)
    install_openapi(app)
    install_page(app, page)
    install_metrics(app)
    install_guard(app, state)
    return app
