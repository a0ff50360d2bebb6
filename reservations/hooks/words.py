"""What a shell command line consists of: commands, and words with what they depend on."""

from collections.abc import Iterator, Sequence
from typing import Any, Self, TypeAlias

Part: TypeAlias = "tuple[int, str | list[Command], bool]"
"""Where in the text something stands that must be put in: the name of a variable or the commands of a substitution, and
whether it is quoted, so that what it gives is not split into words."""


class Fields:
    """What has fields and no more; `records.replace` gives a copy with some of them changed."""

    __slots__ = ()

    def _replace(self, **changes: Any) -> Self:
        new = object.__new__(type(self))
        for name in self.__slots__:
            setattr(new, name, changes[name] if name in changes else getattr(self, name))
        return new


class Word(Fields):
    """One word after quotes were taken off.

    Args:
        text: What it says; unknown parts are left out.
        known: Nothing in it depends on a variable or a substitution.
        glob: It has a wildcard outside quotes.
        bare: No part of it was quoted, so that it may be a keyword of the shell.
        fed: It is not known and comes from a program's list of names: it may be any file.
        parts: What must be put in.
        odd: It can never be known, whatever the variables hold.
    """

    __slots__ = ("bare", "fed", "glob", "known", "odd", "parts", "text")

    def __init__(
        self,
        text: str = "",
        *,
        known: bool = True,
        glob: bool = False,
        bare: bool = True,
        fed: bool = False,
        parts: list[Part] | None = None,
        odd: bool = False,
    ) -> None:
        self.text = text
        self.known = known
        self.glob = glob
        self.bare = bare
        self.fed = fed
        self.parts = parts or []
        self.odd = odd


class Command(Fields):
    """One simple command, or the definition of a function.

    Args:
        words: Its words, the program first; assignments before it are among them.
        writes: The files that its redirections write.
        reads: The files that its redirections read.
        within: What its substitutions run; part of the command line too. Of a function: its body.
        body: The text of its here-documents and here-strings, or None.
        ops: The operators since the command before, such as `&&`, `;}|` or `)`.
        defines: The name of the function that is defined here.
    """

    __slots__ = ("body", "defines", "ops", "reads", "within", "words", "writes")

    def __init__(self, within: "list[Command] | None" = None, ops: str = "", defines: str = "") -> None:
        self.words: list[Word] = []
        self.writes: list[Word] = []
        self.reads: list[Word] = []
        self.within = within or []
        self.body: Word | None = None
        self.ops = ops
        self.defines = defines


class Unreadable(ValueError):  # noqa: N818 - named by what is the case
    """The line is no command that a shell would run: an open quote, a redirection without a file."""


class Excessive(Unreadable):
    """The line is too long or too deep to be read here, though a shell may run it."""


def followed(words: Sequence[Word]) -> Iterator[tuple[Word, Word]]:
    """Yield each word with the one behind it; the last with an empty one."""
    return zip(words, [*words[1:], Word()], strict=False)
