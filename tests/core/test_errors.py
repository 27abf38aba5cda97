"""The tree of errors."""

from __future__ import annotations

import re

from palaver.core import errors


def test_the_documented_tree_has_every_error_below_its_base() -> None:
    bases: list[str] = []
    documented = {}
    for indent, name in re.findall(r"^    ([│├└─ ]*)([A-Z]\w+)", errors.__doc__ or "", re.MULTILINE):
        del bases[len(indent) // 4 :]
        documented[name] = bases[-1] if bases else "Exception"
        bases.append(name)
    classes = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    assert documented == {each.__name__: each.__bases__[0].__name__ for each in classes}
