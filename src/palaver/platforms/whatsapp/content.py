"""Describes in a line of text what people send besides texts and files: places, contacts, orders, stickers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

JSON = Mapping[str, Any]

MAX_LISTED_ITEMS: Final = 30
MAX_FORM_CHARS: Final = 4000


def describe_content(message: JSON) -> str | None:
    """Return the text of a message without files; None for what is no message to the agent."""
    kind = message.get("type")
    if kind == "text":
        return str(message["text"]["body"])
    if kind in _IGNORED_TYPES:
        return None
    describe = _DESCRIPTIONS.get(str(kind))
    return describe(message[str(kind)]) if describe else _describe_unsupported(message)


def _describe_place(place: JSON) -> str:
    where = f"{place['latitude']}, {place['longitude']}"
    names = [str(place[field]) for field in ("name", "address") if place.get(field)]
    return f"[Place: {', '.join(names)} ({where})]" if names else f"[Location: {where}]"


def _describe_contacts(contacts: list[JSON]) -> str:
    people = []
    for contact in contacts:
        numbers = [str(each.get("phone") or each.get("wa_id") or "") for each in contact.get("phones", [])]
        mails = [str(each.get("email") or "") for each in contact.get("emails", [])]
        name = str(contact.get("name", {}).get("formatted_name") or "unknown")
        people.append(", ".join([name, *filter(None, [*numbers, *mails])]))
    return _list_items("Contact" if len(people) == 1 else "Contacts", people)


def _describe_order(order: JSON) -> str:
    items = [
        f"{item.get('quantity')} × {item.get('product_retailer_id')} at {item.get('item_price')} {item.get('currency')}"
        for item in order.get("product_items", [])
    ]
    text = str(order.get("text") or "")
    return "\n".join(filter(None, [text, _list_items("Order", items)]))


def _describe_interactive(interactive: JSON) -> str:
    """Return what a person has chosen, where it is no button of ours."""
    kind = str(interactive.get("type"))
    reply = interactive.get(kind) or {}
    if kind == "nfm_reply":
        return f"[Form: {str(reply.get('response_json') or reply.get('body') or '')[:MAX_FORM_CHARS]}]"
    return str(reply.get("title") or "") or f"[A reply of the type {kind}]"


def _describe_unsupported(message: JSON) -> str:
    errors = message.get("errors") or [{}]
    reason = (errors[0].get("error_data") or {}).get("details") or errors[0].get("title") or ""
    kind = str((message.get("unsupported") or {}).get("type") or message.get("type") or "unknown")
    return f"[A message that WhatsApp does not pass on to businesses: {kind}{f'. {reason}' if reason else ''}]"


def _list_items(title: str, items: list[str]) -> str:
    shown = items[:MAX_LISTED_ITEMS]
    more = f"; and {len(items) - len(shown)} more" if len(items) > len(shown) else ""
    return f"[{title}: {'; '.join(shown)}{more}]"


_IGNORED_TYPES: Final = frozenset({"system", "request_welcome", "ephemeral", "reaction"})
_DESCRIPTIONS: Final[dict[str, Callable[[Any], str]]] = {
    "location": _describe_place,
    "contacts": _describe_contacts,
    "order": _describe_order,
    "interactive": _describe_interactive,
    "button": lambda button: str(button.get("text") or button.get("payload") or ""),
    "sticker": lambda sticker: "[Animated sticker]" if sticker.get("animated") else "[Sticker]",
}
