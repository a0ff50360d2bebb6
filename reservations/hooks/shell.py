"""Reading a shell command line as far as it says what it will run: simple commands, their words, their redirections.

This is an honest reader and no shell: variables, arithmetic and what a script computes are not known. A word that
depends on them says so (`Word.known`), and what was read is enough to see plain commands for what they are.
"""

from dataclasses import dataclass, field
from typing import Final

MAX_COMMAND: Final = 1_000_000
"""Longer command lines are not read."""
MAX_DEPTH: Final = 8
"""So deep substitutions and `sh -c` are followed."""

_NEAR: Final = 200
"""So far is looked for the end of `{a,b}`."""
_ENDS: Final = frozenset(";&|\n(){}")
_BREAKS: Final = frozenset(";&|\n()<> \t")
_TAILS: Final = frozenset({">|", ">&", "<&", "<<-"})
_QUOTABLE: Final = frozenset('$`"\\\n')


@dataclass(slots=True)
class Word:
    """One word after quotes were taken off.

    Args:
        text: What it says; unknown parts are left out.
        known: Nothing in it depends on a variable or a substitution.
        glob: It has a wildcard outside quotes.
        bare: No part of it was quoted, so that it may be a keyword of the shell.
    """

    text: str = ""
    known: bool = True
    glob: bool = False
    bare: bool = True


@dataclass(slots=True)
class Command:
    """One simple command.

    Args:
        words: Its words, the program first; assignments before it are among them.
        writes: The files that its redirections write.
        reads: The files that its redirections read.
        within: What its substitutions run; part of the command line too.
        body: The text of its here-documents.
        level: How many subshells it stands in: a `cd` inside does not reach outside.
    """

    words: list[Word] = field(default_factory=list[Word])
    writes: list[Word] = field(default_factory=list[Word])
    reads: list[Word] = field(default_factory=list[Word])
    within: "list[Command]" = field(default_factory=list["Command"])
    body: str = ""
    level: int = 0


class Unreadable(ValueError):  # noqa: N818 - named by what is the case
    """The line is no command that a shell would run: an open quote, a redirection without a file."""


class Excessive(Unreadable):
    """The line is too long or too deep to be read here, though a shell may run it."""


def read(text: str, depth: int = 0) -> list[Command]:
    """Return the simple commands of a line in the order in which they stand.

    Raises:
        Excessive: See there.
        Unreadable: See there.
    """
    if len(text) > MAX_COMMAND or depth > MAX_DEPTH:
        raise Excessive("too long" if len(text) > MAX_COMMAND else "too deep")
    return _Reader(text.replace("\r\n", "\n"), depth).commands()


class _Reader:
    """One pass over the text."""

    def __init__(self, text: str, depth: int, at: int = 0, *, inner: bool = False) -> None:
        self.text = text
        self.at = at
        self.inner = inner
        self.depth = depth
        self.level = 0
        self.found: list[Command] = []
        self.now = Command()
        self.parts: list[str] = []
        self.bodies: list[tuple[str, bool, Command]] = []

    def commands(self) -> list[Command]:
        """Read everything."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if self.inner and char == ")" and not self.level:
                break
            if char in " \t":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif char == "#":
                self._skip_comment()
            elif self.text.startswith(("&>", ">", "<"), self.at) or self._is_numbered():
                self._redirection()
            elif char in _ENDS and (char not in "{}" or self._stands_alone()):
                self._end(char)
            else:
                word = self._word()
                self.now.words.append(word)
        if self.inner and self.at >= len(self.text):
            raise Unreadable("an open parenthesis")
        self._close()
        return self.found

    def _close(self) -> None:
        """Put the command at hand away."""
        if self.now.words or self.now.writes or self.now.reads or self.now.within:
            self.now.level = self.level
            self.found.append(self.now)
        self.now = Command()

    def _end(self, char: str) -> None:
        self._close()
        self.at += 1
        if char == "(":
            self.level += 1
        elif char == ")":
            self.level = max(0, self.level - 1)
        elif char == "\n":
            self._skip_bodies()

    def _stands_alone(self) -> bool:
        """Say whether a brace is a word of its own: a group, and no `{a,b}`."""
        return self.text[self.at + 1 : self.at + 2] in {"", " ", "\t", "\n", ";"}

    def _is_numbered(self) -> bool:
        """Say whether a redirection with a number stands here, such as `2>`."""
        end = self.at
        while end < len(self.text) and self.text[end].isdigit():
            end += 1
        return end > self.at and self.text[end : end + 1] in {"<", ">"}

    def _skip_comment(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _redirection(self) -> None:
        while self.text[self.at].isdigit() or self.text[self.at] == "&":
            self.at += 1
        signs = ""
        while (sign := self.text[self.at : self.at + 1]) and (sign in "<>" or signs + sign in _TAILS):
            signs += sign
            self.at += 1
        if self.text[self.at : self.at + 1] == "(":
            self._process()
            return
        while self.text[self.at : self.at + 1] in {" ", "\t"}:
            self.at += 1
        if self.at >= len(self.text) or self.text[self.at] in "\n;|)":
            raise Unreadable("a redirection without a file")
        word = self._word()
        if signs in {"<<", "<<-"}:
            self.bodies.append((word.text, signs == "<<-", self.now))
        elif signs in {">&", "<&"} and (word.text.isdigit() or word.text in {"-", ""}):
            return
        elif ">" in signs:
            self.now.writes.append(word)
        elif signs == "<":
            self.now.reads.append(word)

    def _process(self) -> None:
        """Read `<(…)` and `>(…)`."""
        self._inside()
        self.now.words.append(Word("", known=False))

    def _skip_bodies(self) -> None:
        """Take here-documents off: they are data, not commands, but for a shell that reads them."""
        for mark, tabs, command in self.bodies:
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at = min(end + 1, len(self.text))
                if (line.lstrip("\t") if tabs else line) == mark:
                    break
                command.body += f"{line}\n"
        self.bodies.clear()

    def _word(self) -> Word:
        word = Word()
        self.parts = []
        while self.at < len(self.text) and (char := self.text[self.at]) not in _BREAKS:
            self.at += 1
            if char == "\\":
                self.parts.append(self.text[self.at : self.at + 1].replace("\n", ""))
                word.bare = False
                self.at += 1
            elif char == "'":
                self.parts.append(self._upto("'"))
                word.bare = False
            elif char == '"':
                self._double(word)
            elif char == "$" and self.text[self.at : self.at + 1] == "'":
                self.at += 1
                self._ansi(word)
            elif char in "$`":
                self._expansion(char, word)
            else:
                self.parts.append(char)
                word.glob |= char in "*?[" or (
                    char == "{" and "," in self.text[self.at : self.at + _NEAR].partition("}")[0]
                )
                if char == "~" and len(self.parts) == 1:
                    word.known = False
        word.text = "".join(self.parts)
        return word

    def _upto(self, quote: str) -> str:
        end = self.text.find(quote, self.at)
        if end < 0:
            raise Unreadable("an open quote")
        text, self.at = self.text[self.at : end], end + 1
        return text

    def _ansi(self, word: Word) -> None:
        """Read `$'…'`; its escapes make the word unknown."""
        word.bare = False
        while (char := self.text[self.at : self.at + 1]) != "'":
            if not char:
                raise Unreadable("an open quote")
            if char == "\\":
                word.known = False
                self.at += 1
            else:
                self.parts.append(char)
            self.at += 1
        self.at += 1

    def _double(self, word: Word) -> None:
        word.bare = False
        while (char := self.text[self.at : self.at + 1]) != '"':
            if not char:
                raise Unreadable("an open quote")
            self.at += 1
            if char == "\\" and self.text[self.at : self.at + 1] in _QUOTABLE:
                self.parts.append(self.text[self.at].replace("\n", ""))
                self.at += 1
            elif char in "$`":
                self._expansion(char, word)
            else:
                self.parts.append(char)
        self.at += 1

    def _expansion(self, char: str, word: Word) -> None:
        """Read what stands after `$` or a backquote; what it gives is not known."""
        if char == "`":
            self.now.within += read(self._upto("`"), self.depth + 1)
            word.known = False
            return
        rest = self.text[self.at : self.at + 1]
        if rest == "(":
            if self.text.startswith("((", self.at):
                self._arithmetic()
            else:
                self._inside()
            word.known = False
        elif rest == "{":
            self.at += 1
            self._upto("}")
            word.known = False
        elif rest.isalnum() or rest in {"_", "@", "*", "#", "?", "$", "!", "-"}:
            self.at += 1
            while rest.isidentifier() and (
                self.text[self.at : self.at + 1].isalnum() or self.text[self.at : self.at + 1] == "_"
            ):
                self.at += 1
            word.known = False
        else:
            self.parts.append("$")

    def _inside(self) -> None:
        """Read the commands between parentheses; only a reader of commands knows which one closes them."""
        if self.depth >= MAX_DEPTH:
            raise Excessive("too deep")
        reader = _Reader(self.text, self.depth + 1, self.at + 1, inner=True)
        self.now.within += reader.commands()
        self.at = reader.at + 1

    def _arithmetic(self) -> None:
        """Skip `((…))`: it runs nothing that is followed here."""
        open_ones = 0
        while self.at < len(self.text):
            open_ones += {"(": 1, ")": -1}.get(self.text[self.at], 0)
            self.at += 1
            if not open_ones:
                return
        raise Unreadable("an open parenthesis")
