"""Laws of `perfmodel.frozen.dataclass`: an object is as the standard library's would be."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field, fields, replace

import pytest

from perfmodel import frozen
from perfmodel.timing.style import Block


def classes(dataclass):
    """The same classes by one decorator: defaults, factories, keywords, bases, further checks."""

    @dataclass(frozen=True)
    class Base:
        """A base."""

        values: int
        named: str = "a"
        kept: list = field(default_factory=list, compare=False)

    @dataclass(frozen=True)
    class Below(Base):
        """Below it."""

        more: float = 1.0

        def __post_init__(self):
            if self.more < 0:
                raise ValueError("negative")

    @dataclass(frozen=True, kw_only=True)
    class Named:
        """By keyword."""

        first: int = 1
        second: int

    @dataclass
    class Open:
        """Not frozen."""

        first: int = 0

    return Base, Below, Named, Open


OURS, THEIRS = classes(frozen.dataclass), classes(dataclasses.dataclass)


def described(kinds):
    """What objects of the classes do, as data."""
    base, below, named, opened = kinds
    made = [base(1), base(1, "b", [2]), below(1, more=2.0), named(second=3), opened(4)]
    opened_one = opened()
    opened_one.first = 9
    return [
        *map(repr, made), repr(opened_one), [f.name for f in fields(below)],
        [a == b for a in made for b in made], hash(made[0]) == hash(base(1, kept=[5])),
        repr(replace(made[2], values=7)), dataclasses.asdict(made[2]), base(1) == below(1),
        below.__dataclass_params__.frozen, opened.__hash__,
    ]  # fmt: skip


def test_objects_are_those_of_the_standard_library():
    assert described(OURS) == described(THEIRS)


@pytest.mark.parametrize("kinds", [OURS, THEIRS], ids=["ours", "theirs"])
def test_what_is_refused(kinds):
    base, below, named, opened = kinds
    with pytest.raises(FrozenInstanceError):
        below(1).values = 2
    with pytest.raises(FrozenInstanceError):
        del base(1).values
    with pytest.raises(TypeError, match="__init__\\(\\) missing 1 required"):
        base()
    with pytest.raises(TypeError, match="unexpected keyword argument 'third'"):
        named(second=1, third=2)
    with pytest.raises(TypeError, match="positional"):
        named(1, 2)
    with pytest.raises(ValueError, match="negative"):
        below(1, more=-1.0)
    with pytest.raises(TypeError, match="unhashable"):
        hash(opened())


def test_objects_are_kept_between_processes():
    block = Block(price=2.0)
    assert pickle.loads(pickle.dumps(block)) == block
