"""Markdown → safe HTML: for platforms that show HTML (Matrix, e-mail), and for exported conversations.

Nothing is loaded from elsewhere: an image becomes a link. Only the tags, attributes and addresses below are left.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

_ALLOWED_TAGS = {
    *("del", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "p", "a", "ul", "ol", "li", "strong", "em", "s"),
    *("code", "hr", "br", "table", "thead", "tbody", "tr", "th", "td", "pre"),
}
_ALLOWED_ATTRIBUTES = {"a": {"href"}, "ol": {"start"}, "code": {"class"}}


@cache
def _get_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _render_image)
    return parser


def _render_image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """Render an image as a link: it would be loaded from elsewhere, and tell who reads."""
    from markdown_it.common.utils import escapeHtml

    token = tokens[index]
    address = str(token.attrs.get("src", ""))
    label = renderer.renderInlineAsText(token.children or [], options, env) or address
    return f'<a href="{escapeHtml(address)}">{escapeHtml(label)}</a>'


def render_html(markdown: str, schemes: Set[str]) -> str:
    """Return Markdown as HTML with only allowed tags and attributes, and addresses with these schemes."""
    import nh3

    return nh3.clean(
        _get_parser().render(markdown),
        tags=_ALLOWED_TAGS,
        attributes=_ALLOWED_ATTRIBUTES,
        attribute_filter=_filter_attribute,
        url_schemes=set(schemes),
        link_rel=None,
    ).strip()


def _filter_attribute(tag: str, attribute: str, value: str) -> str | None:
    if (tag, attribute) == ("code", "class"):
        return value if value.startswith("language-") else None
    return value
