"""The tree of errors."""

from __future__ import annotations

from palaver.core import errors


def test_the_errors_stand_in_the_order_of_their_tree() -> None:
    def list_tree(base: type[Exception]) -> list[type[Exception]]:
        return [base, *(each for child in base.__subclasses__() if child in classes for each in list_tree(child))]

    classes = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    assert classes == list_tree(errors.PalaverError)
