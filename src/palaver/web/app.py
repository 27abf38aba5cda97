"""The web application: every route, the guard around them, and the page.

`create_app` puts the parts together and starts nothing; whoever serves it (`server.py`) starts and stops the gateway.
"""

from __future__ import annotations

import importlib.util
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI

from palaver import __version__
from palaver.web.errors import answers, install_errors
from palaver.web.metrics import install_metrics
from palaver.web.openapi import install_openapi, operation_id
from palaver.web.page import install_page

if TYPE_CHECKING:
    from palaver.web.state import WebState

PAGE: Final = Path(__file__).parent / "static"

API: Final = (
    *("sign_in", "me", "people"),
    *("sessions", "messages", "search", "projects", "models", "commands", "usage"),
    *("live", "attachments", "shares"),
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
    for name in API:
        if importlib.util.find_spec(f"palaver.web.routes.{name}"):
            app.include_router(import_module(f"palaver.web.routes.{name}").router, prefix="/api")
    app.include_router(import_module("palaver.web.routes.health").router)
    if importlib.util.find_spec("palaver.web.openai"):
        app.include_router(import_module("palaver.web.openai").router)
    install_page(app, page)
    install_openapi(app)
    install_metrics(app)
    if importlib.util.find_spec("palaver.web.guard"):
        import_module("palaver.web.guard").install_guard(app, state)
    return app
