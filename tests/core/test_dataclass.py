"""Our `dataclass` makes classes that behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import KW_ONLY, FrozenInstanceError, field
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from palaver.core.dataclass import dataclass

T = TypeVar("T")
OPTIONS: list[dict[str, Any]] = [
    {},
    {"frozen": True},
    {"slots": True},
    {"eq": False},
    {"repr": False},
    {"kw_only": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "eq": False},
]


def observe(function: Any) -> Any:
    """Return what a call returns or raises, with the addresses of objects and the names of functions left out."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001  (compared)
        return type(error), str(error).rpartition("__init__() ")[2]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_class_behaves_as_one_of_the_standard_library(options: dict[str, Any]) -> None:
    ours = dataclass(**options)(make_body())
    assert observe_class(ours) == observe_class(dataclasses.dataclass(**options)(make_body()))


def make_body() -> Any:
    class Value(Generic[T]):
        kind: ClassVar[str] = "value"
        name: str
        number: int = 3
        _: KW_ONLY
        items: tuple[T, ...] = field(default_factory=tuple)
        note: str = field(default="", compare=False, repr=False)
        unhashed: int = field(default=1, hash=False)
        size: int = field(default=7, init=False)
        made: list[str] = field(default_factory=lambda: ["made"], init=False, hash=False)

        def get_name(self) -> str:
            return self.name

    return Value


def observe_class(cls: Any) -> dict[str, Any]:
    one, same = cls(name="a", number=1), cls(name="a", number=1, note="other")
    other = cls(name="b", items=("x",), unhashed=2)
    seen: dict[str, Any] = {
        "parameters": [
            (each.name, each.kind, each.default is not inspect.Parameter.empty)
            for each in inspect.signature(cls).parameters.values()
        ],
        "fields": [(each.name, each.kw_only, each.init) for each in dataclasses.fields(cls)],
        "match": cls.__match_args__,
        "equal": [one == same, one == other, one == 1, one != same],
        "asdict": [dataclasses.asdict(each) for each in (one, same, other)],
        "replaced": dataclasses.asdict(dataclasses.replace(one, name="c", items=(1,))),
        "method": one.get_name(),
        "wrong": [
            observe(cls),
            observe(lambda: cls("a", 1, ("x",))),
            observe(lambda: cls(name="a", wrong=1)),
            observe(lambda: cls(name="a", size=1)),
            observe(lambda: setattr(one, "name", "d")),
        ],
        "is_made_anew": one.made is not same.made,
    }
    seen["hash"] = observe(lambda: hash(one) == hash(same))
    if "repr" not in vars(cls) and "object at" not in repr(one):
        seen["repr"] = [repr(each) for each in (one, other)]
    return seen | {"deleted": observe(lambda: delattr(one, "number"))}


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")


@dataclass(frozen=True, slots=True)
class Node:
    children: list[Node]


@dataclass(frozen=True)
class Own:  # noqa: PLW1641  (the decorator makes the hash)
    name: str

    def __repr__(self) -> str:
        return "mine"

    def __eq__(self, other: object) -> bool:
        return True


def test_values_can_be_copied_pickled_and_matched() -> None:
    point = Point(1, 2)
    assert copy.copy(point) == copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)
    with pytest.raises(ValueError, match="negative"):
        Point(-1)
    with pytest.raises(AttributeError):
        object.__getattribute__(point, "__dict__")


def test_a_value_that_contains_itself_can_be_shown() -> None:
    node = Node([])
    node.children.append(node)
    assert repr(node) == "Node(children=[...])"


def test_methods_of_the_class_itself_stay() -> None:
    assert repr(Own("a")) == "mine"
    assert Own("a") == Own("b")
    assert hash(Own("a")) == hash(("a",))


def test_a_class_can_be_extended_by_both_decorators_and_without() -> None:
    @dataclass(frozen=True)
    class Base:
        name: str

    @dataclass(frozen=True)
    class Ours(Base):
        number: int = 1

    @dataclasses.dataclass(frozen=True)
    class Original(Base):
        number: int = 1

    class Plain(Base):
        def __init__(self) -> None:
            super().__init__("plain")
            object.__setattr__(self, "extra", 1)

    assert (Ours("a"), Original("a", 2), Plain().name) == (Ours("a", 1), Original("a", 2), "plain")
    plain = Plain()
    plain.more = 1  # type: ignore[attr-defined]  # an ordinary subclass has attributes of its own
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        plain.name = "b"  # type: ignore[misc]
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):
        dataclasses.dataclass(type("Wrong", (Base,), {}))


def test_the_function_that_creates_objects_is_compiled_by_the_first_one() -> None:
    @dataclass(frozen=True, slots=True)
    class Value:
        name: str

    assert not inspect.isfunction(vars(Value)["__init__"])
    assert Value("a") == Value(name="a")
    assert inspect.isfunction(vars(Value)["__init__"])
