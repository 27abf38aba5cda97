"""`dataclass` of the standard library, for our own classes: it makes a class in a fourth of the time.

Palaver starts with hundreds of classes, and uses few. The original compiles six functions for each. Here those that
have to be fast, `__init__`, `__eq__` and `__hash__`, are compiled when they are used for the first time, and all
classes share the code of the others.

Always true: a class behaves as one of the standard library does, and its functions take it as one: `fields`, `replace`,
`asdict`, a subclass. Supported are the options that Palaver uses; a class that extends another dataclass is made by the
standard library.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError, fields
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        init: bool = True,
        repr: bool = True,  # noqa: A002  (its name in the standard library)
        eq: bool = True,
        frozen: bool = False,
        slots: bool = False,
        kw_only: bool = False,
    ) -> Any:
        def decorate(cls: type) -> type:
            if any(hasattr(base, "__dataclass_fields__") for base in cls.__bases__):
                options = {"init": init, "repr": repr, "eq": eq, "frozen": frozen, "slots": slots, "kw_only": kw_only}
                return dataclasses.dataclass(**options)(cls)
            own, doc = set(cls.__dict__), cls.__doc__
            if cls.__dict__.get("__hash__") is None and "__eq__" in own:
                own.discard("__hash__")  # Python has set it, because the class has an `__eq__`
            cls.__doc__ = doc or " "  # otherwise one is made of a signature
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
            cls.__doc__ = doc
            cls.__dataclass_params__.frozen = frozen  # subclasses have to be, too
            methods: dict[str, object] = {}
            if init:
                methods["__init__"] = _Deferred(cls, "__init__", lambda: _compile_init(cls, frozen=frozen))
            if repr:
                methods["__repr__"] = _format
            if eq:
                methods["__eq__"] = _Deferred(cls, "__eq__", lambda: _compile_eq(cls))
                methods["__hash__"] = _Deferred(cls, "__hash__", lambda: _compile_hash(cls)) if frozen else None
            if frozen:
                methods |= _make_setters(cls) | (
                    {"__getstate__": _get_state, "__setstate__": _set_state} if slots else {}
                )
            for name, method in methods.items():
                if name not in own:
                    setattr(cls, name, method)
            return cls

        return decorate if cls is None else decorate(cls)


class _Deferred:
    """A method of a class, until it is used for the first time."""

    __slots__ = ("_cls", "_compile", "_name")

    def __init__(self, cls: type, name: str, compile_method: Callable[[], Any]) -> None:
        self._cls = cls
        self._name = name
        self._compile = compile_method

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method = self._compile()
        setattr(self._cls, self._name, method)
        return method.__get__(instance, owner)


def _compile(cls: type, name: str, parameters: str, lines: list[str], names: dict[str, object]) -> Any:
    exec(f"def {name}({parameters}):\n  " + "\n  ".join(lines), names)  # noqa: S102  (made of the fields' names)
    method: Any = names[name]
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method


def _compile_init(cls: Any, *, frozen: bool) -> Any:
    names: dict[str, object] = {"__set": object.__setattr__, "__MISSING": MISSING}
    positional, keyword, lines = ["self"], list[str](), list[str]()
    for field in fields(cls):
        name, parameter, value = field.name, field.name, field.name
        if field.default is not MISSING:
            names[f"__{name}"] = field.default
            parameter = f"{name}=__{name}"
            value = name if field.init else f"__{name}"
        elif field.default_factory is not MISSING:
            names[f"__{name}"] = field.default_factory
            parameter = f"{name}=__MISSING"
            value = f"__{name}() if {name} is __MISSING else {name}" if field.init else f"__{name}()"
        if field.init:
            (keyword if field.kw_only else positional).append(parameter)
        if field.init or parameter != name:
            slot = cls.__dict__.get(name)
            if frozen and isinstance(slot, MemberDescriptorType):
                names[f"__set_{name}"] = slot.__set__
                lines.append(f"__set_{name}(self, {value})")
            else:
                lines.append(f"__set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join([*positional, *(["*"] if keyword else []), *keyword])
    return _compile(cls, "__init__", parameters, lines or ["pass"], names)


def _compile_eq(cls: Any) -> Any:
    names = [each.name for each in fields(cls) if each.compare]
    one, other = ("".join(f"{who}.{name}," for name in names) for who in ("self", "other"))
    lines = [f"if other.__class__ is self.__class__: return ({one}) == ({other})", "return NotImplemented"]
    return _compile(cls, "__eq__", "self, other", lines, {})


def _compile_hash(cls: Any) -> Any:
    hashed = (each for each in fields(cls) if (each.compare if each.hash is None else each.hash))
    return _compile(cls, "__hash__", "self", [f"return hash(({''.join(f'self.{each.name},' for each in hashed)}))"], {})


@recursive_repr()
def _format(self: Any) -> str:
    values = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({values})"


def _make_setters(cls: Any) -> dict[str, object]:
    """Return `__setattr__` and `__delattr__` of a frozen class; an ordinary subclass may have attributes of its own."""

    def refuse_setting(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def refuse_deleting(self: object, name: str) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": refuse_setting, "__delattr__": refuse_deleting}


# With these, objects of frozen classes with slots can be copied and pickled.


def _get_state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
