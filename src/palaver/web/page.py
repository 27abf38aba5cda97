"""The page: the built front end, served from the package.

It is one page with its own addresses, so every path that is not the API's gives the same document. What a build has
named by its content never changes and is kept by browsers for ever; everything else is asked for again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fastapi.responses import FileResponse
from starlette.exceptions import HTTPException

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi import FastAPI, Request

HASHED: Final = "assets/"  # where the build puts what it names by its content
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"
_NOT_THE_PAGE = ("api/", "v1/")


def install_page(app: FastAPI, folder: Path) -> None:
    """Serve the page, if there is one."""
    document = folder / "index.html"
    if not document.is_file():
        return
    known = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}

    async def page(request: Request) -> FileResponse:
        path: str = request.path_params["path"]
        file = known.get(path)
        if file is not None:
            return FileResponse(file, headers={"Cache-Control": _FOR_EVER if path.startswith(HASHED) else _ASK_AGAIN})
        if f"{path}/".startswith((*_NOT_THE_PAGE, HASHED)):
            raise HTTPException(404, "there is nothing here")
        return FileResponse(document, headers={"Cache-Control": _ASK_AGAIN})

    app.add_route("/{path:path}", page, methods=["GET"], include_in_schema=False)
