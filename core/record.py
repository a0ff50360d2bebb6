"""Records: named tuples whose classes are made in an instant.

A hook makes every class again each time it runs. `typing.NamedTuple` writes and compiles source text for each of them,
which took a hook a quarter of its time; `dataclasses` takes eight times as long as that.
"""

from operator import itemgetter
from typing import Any, ClassVar, Final, Self, dataclass_transform

_MAX_FIELDS: Final = 24
_GETTERS: Final = tuple(property(itemgetter(index)) for index in range(_MAX_FIELDS))


@dataclass_transform(frozen_default=True)
class Record(tuple[Any, ...]):
    """The base of records, which are written like named tuples.

    A record is a tuple of its fields, in order: equal to any other of the same values, and to be unpacked. It has at
    most 24 fields::

        class Point(Record):
            x: int
            y: int = 0
    """

    __slots__ = ()
    field_names: ClassVar[tuple[str, ...]] = ()
    """The names of the fields, in order."""
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        """Give each field that the class annotates its place in the tuple."""
        own = tuple(cls.__annotations__)
        cls._defaults = cls._defaults | {name: cls.__dict__[name] for name in own if name in cls.__dict__}
        # The fields of a base come first, and there are more getters than fields.
        for name, getter in zip(own, _GETTERS[len(cls.field_names) :], strict=False):
            setattr(cls, name, getter)
        cls.field_names += own

    def __new__(cls, *values: Any, **named: Any) -> Self:
        """Return a record of these values, in order or by name."""
        if named or len(values) != len(cls.field_names):
            rest = cls.field_names[len(values) :]
            given = cls._defaults | named
            if len(values) > len(cls.field_names) or not named.keys() <= {*rest} or not given.keys() >= {*rest}:
                fields = ", ".join(cls.field_names)
                raise TypeError(f"{cls.__name__} has the fields {fields}; given were {values} and {named}")
            values = (*values, *(given[name] for name in rest))
        return super().__new__(cls, values)

    def _replace(self, **changes: Any) -> Self:
        """Return the record with some fields changed."""
        values = [changes.pop(name, value) for name, value in zip(self.field_names, self, strict=True)]
        if changes:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(changes)}")
        return super().__new__(type(self), values)

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy is made of."""
        return tuple(self)

    def __repr__(self) -> str:
        """Return the record as it is written."""
        values = ", ".join(f"{name}={value!r}" for name, value in zip(self.field_names, self, strict=True))
        return f"{type(self).__name__}({values})"
