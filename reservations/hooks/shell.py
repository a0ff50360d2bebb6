"""Reading a shell command line as far as it says what it will run: simple commands, their words, their redirections.

This is an honest reader and no shell: arithmetic and what a script computes are not known. A word that depends on a
variable or a substitution says where (`Word.parts`), and what was read is enough to see plain commands for what they
are.
"""

import os.path
import re
from typing import Final

from interlock.reservations.hooks.words import Command, Excessive, Unreadable, Word

MAX_COMMAND: Final = 1_000_000
"""Longer command lines are not read."""
MAX_DEPTH: Final = 8
"""So deep substitutions and `sh -c` are followed."""

MAX_RANGE: Final = 100
"""A longer `{1..9}` may be anything."""

_NEAR: Final = 200
"""So far is looked for the end of `{a,b}`."""
_ENDS: Final = frozenset(";&|\n(){}")
_BREAKS: Final = frozenset(";&|\n()<> \t")
_TAILS: Final = frozenset({">|", ">&", "<&", "<<-"})
_QUOTABLE: Final = frozenset('$`"\\\n')
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FUNCTION: Final = re.compile(r"\(\s*\)\s*([{(])")
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "e": "\x1b",
    "E": "\x1b",
}
_SPECIAL: Final = re.compile(r"[$`\\]")
_APPENDED: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+=", re.ASCII)
_RANGE: Final = re.compile(
    r"(?:([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z])|(-?\d{1,9})\.\.(-?\d{1,9}))(?:\.\.-?\d+)?\}", re.ASCII
)


def read(text: str, depth: int = 0) -> list[Command]:
    """Return the simple commands of a line in the order in which they stand.

    Raises:
        Excessive: See there.
        Unreadable: See there.
    """
    if len(text) > MAX_COMMAND or depth > MAX_DEPTH:
        raise Excessive("too long" if len(text) > MAX_COMMAND else "too deep")
    return _Reader(text.replace("\r\n", "\n"), depth).commands()


def _escaped(found: re.Match[str]) -> str:
    """Return what an escape in `$'…'` stands for."""
    if code := found[1] or found[2]:
        return chr(int(code, 16))
    return chr(int(found[3], 8) & 0xFF) if found[3] else _ESCAPES.get(found[4], found[4])


def _alternatives(first: str, last: str) -> str:
    """Return what `{first..last}` stands for as `{a,b,c}`, without regard to steps; `*` for many."""
    numbers = first.lstrip("-").isdigit()
    begin, end = sorted(map(int if numbers else ord, (first, last)))
    if end - begin >= MAX_RANGE:
        return "*"
    width = max(len(first), len(last)) if numbers and "0" in {first.lstrip("-")[:1], last.lstrip("-")[:1]} else 0
    found = (f"{value:0{width}}" if numbers else chr(value) for value in range(begin, end + 1))
    return first if begin == end else f"{{{','.join(found)}}}"


class _Reader:
    """One pass over the text, up to its end or to the parenthesis or brace that closes what was opened before."""

    def __init__(self, text: str, depth: int, at: int = 0, *, until: str = "") -> None:
        self.text = text
        self.at = at
        self.until = until
        self.depth = depth
        self.open = 0
        self.ops = ""
        self.found: list[Command] = []
        self.now = Command()
        self.parts: list[str] = []
        self.size = 0
        self.bodies: list[tuple[Word, bool, Command]] = []

    def commands(self) -> list[Command]:
        """Read everything."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == self.until and not self.open and (char == ")" or self._stands_alone()):
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
                self.now.words.append(self._word())
        if self.until and self.at >= len(self.text):
            raise Unreadable("an open parenthesis" if self.until == ")" else "an open brace")
        self._close()
        return self.found

    def _close(self) -> None:
        """Put the command at hand away."""
        if self.now.words or self.now.writes or self.now.reads or self.now.within or self.now.body:
            self.now.ops, self.ops = self.ops, ""
            self.found.append(self.now)
        self.now = Command()

    def _end(self, char: str) -> None:
        if (char == "(" and (self._array() or self._function())) or (char == "{" and self._named()):
            return
        self._close()
        self.at += 1
        self.ops += char
        opens, closes = ("(", ")") if self.until != "}" else ("{", "}")
        self.open = max(0, self.open + (char == opens) - (char == closes))
        if char == "\n":
            self._skip_bodies()

    def _function(self) -> bool:
        """Read the definition of a function, if its parentheses stand here."""
        words = self.now.words
        found = _FUNCTION.match(self.text, self.at)
        if found is None or len(words) not in {1, 2} or (len(words) == 2 and words[0].text != "function"):
            return False
        self.at = found.start(1)
        self._define(words[-1].text, ")" if found[1] == "(" else "}")
        return True

    def _named(self) -> bool:
        """Read the definition of a function that is introduced by `function` alone."""
        words = self.now.words
        if len(words) != 2 or words[0].text != "function":
            return False
        self._define(words[1].text, "}")
        return True

    def _define(self, name: str, until: str) -> None:
        self.now = Command()
        self.found.append(Command(within=self._inside(until), ops=self.ops, defines=name))
        self.ops = ";"

    def _array(self) -> bool:
        """Skip the words of an array; what its substitutions run is judged."""
        if self.text[self.at - 1 : self.at] != "=" or not self.now.words:
            return False
        self.now.within += [inner for command in self._inside(")") for inner in command.within]
        self.now.words[-1].known, self.now.words[-1].odd = False, True
        return True

    def _stands_alone(self) -> bool:
        """Say whether a brace is a word of its own: a group, and no `{a,b}`."""
        after = self.text[self.at + 1 : self.at + 2]
        return after in {"", " ", "\t", "\n", ";"} or (self.text[self.at] == "}" and after in _BREAKS)

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
            # What `<(…)` and `>(…)` run is judged; what comes out of it is not known.
            self.now.within += self._inside(")")
            self.now.words.append(Word("", known=False, fed=True, odd=True))
            return
        while self.text[self.at : self.at + 1] in {" ", "\t"}:
            self.at += 1
        if self.at >= len(self.text) or self.text[self.at] in "\n;|)":
            raise Unreadable("a redirection without a file")
        word = self._word()
        if signs in {"<<", "<<-"}:
            self.bodies.append((word, signs == "<<-", self.now))
        elif signs == "<<<":
            self.now.body = word
        elif signs in {">&", "<&"} and (word.text.isdigit() or word.text in {"-", ""}):
            return
        elif ">" in signs:
            self.now.writes.append(word)
        elif signs == "<":
            self.now.reads.append(word)

    def _skip_bodies(self) -> None:
        """Take here-documents off: they are data, not commands, but for a shell that reads them."""
        for mark, tabs, command in self.bodies:
            lines: list[str] = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                line = line.lstrip("\t") if tabs else line
                self.at = min(end + 1, len(self.text))
                if line == mark.text:
                    break
                lines.append(f"{line}\n")
            text = "".join(lines)
            command.body = self._expanding(text, command) if mark.bare else Word(text, bare=False)
        self.bodies.clear()

    def _expanding(self, text: str, command: Command) -> Word:
        """Read a text in which the shell puts variables and substitutions in, though it runs nothing else of it."""
        if not _SPECIAL.search(text):
            return Word(text, bare=False)
        reader = _Reader(text, self.depth)
        word = Word(bare=False)
        while found := _SPECIAL.search(text, reader.at):
            reader._add(text[reader.at : found.start()])
            reader.at = found.end()
            if found[0] == "\\":
                reader._add(text[reader.at : reader.at + 1])
                reader.at += 1
            else:
                reader._expansion(found[0], word, quoted=True)
        reader._add(text[reader.at :])
        word.text = "".join(reader.parts)
        command.within += reader.now.within
        return word

    def _add(self, text: str) -> None:
        self.parts.append(text)
        self.size += len(text)

    def _word(self) -> Word:
        word = Word()
        begun = self.at
        self.parts, self.size = [], 0
        while self.at < len(self.text) and (char := self.text[self.at]) not in _BREAKS:
            self.at += 1
            if char == "\\":
                self._add(self.text[self.at : self.at + 1].replace("\n", ""))
                word.bare = False
                self.at += 1
            elif char == "'":
                self._add(self._upto("'"))
                word.bare = False
            elif char == '"':
                self._double(word)
            elif char == "$" and self.text[self.at : self.at + 1] == "'":
                self.at += 1
                self._ansi(word)
            elif char in "$`":
                self._expansion(char, word, quoted=False)
            else:
                self._bare(char, word)
        word.text = "".join(self.parts)
        if (found := _APPENDED.match(word.text)) and self.text.startswith(found[0], begun):
            # `x+=b` is `x=$xb`.
            word.known = False
            word.parts.insert(0, (found.end(), found[1], True))
        return word

    def _bare(self, char: str, word: Word) -> None:
        """Read a character that is not quoted."""
        if char == "{" and (found := _RANGE.match(self.text, self.at)):
            self.at = found.end()
            word.glob = True
            self._add(_alternatives(*(value for value in found.groups() if value is not None)))
            return
        begins = not self.parts
        self._add(char)
        if not word.glob:
            near = self.text[self.at : self.at + _NEAR] if char == "{" else ""
            word.glob = char in "*?[" or "," in near.partition("}")[0]
        if char == "~" and begins and not word.parts:
            self._home(word)

    def _home(self, word: Word) -> None:
        """Put in what `~` stands for; of another user it is not known."""
        if self.at < len(self.text) and self.text[self.at] != "/" and self.text[self.at] not in _BREAKS:
            word.known, word.odd = False, True
        else:
            self.parts, self.size = [], 0
            self._add(os.path.expanduser("~"))

    def _upto(self, quote: str) -> str:
        end = self.text.find(quote, self.at)
        if end < 0:
            raise Unreadable("an open quote")
        text, self.at = self.text[self.at : end], end + 1
        return text

    def _ansi(self, word: Word) -> None:
        """Read `$'…'`."""
        word.bare = False
        begun = self.at
        while (char := self.text[self.at : self.at + 1]) != "'":
            if not char:
                raise Unreadable("an open quote")
            self.at += 2 if char == "\\" else 1
        raw = self.text[begun : self.at]
        self.at += 1
        self._add(_ESCAPE.sub(_escaped, raw))

    def _double(self, word: Word) -> None:
        word.bare = False
        while (char := self.text[self.at : self.at + 1]) != '"':
            if not char:
                raise Unreadable("an open quote")
            self.at += 1
            if char == "\\" and self.text[self.at : self.at + 1] in _QUOTABLE:
                self._add(self.text[self.at].replace("\n", ""))
                self.at += 1
            elif char in "$`":
                self._expansion(char, word, quoted=True)
            else:
                self._add(char)
        self.at += 1

    def _expansion(self, char: str, word: Word, *, quoted: bool) -> None:
        """Read what stands after `$` or a backquote."""
        rest = self.text[self.at : self.at + 1]
        if char == "`":
            self._substituted(read(self._upto("`").replace("\\`", "`"), self.depth + 1), word, quoted)
        elif self.text.startswith("((", self.at):
            self._arithmetic()
            word.known, word.odd = False, True
        elif rest == "(":
            self._substituted(self._inside(")"), word, quoted)
        elif rest == "{":
            self.at += 1
            inner = self._upto("}")
            word.known = False
            if _NAME.fullmatch(inner):
                word.parts.append((self.size, inner, quoted))
            else:
                word.odd = True
                self._expanding(inner, self.now)
        elif found := _NAME.match(self.text, self.at):
            self.at = found.end()
            word.known = False
            word.parts.append((self.size, found[0], quoted))
        elif rest.isdigit() or rest in {"@", "*", "#", "?", "$", "!", "-"}:
            self.at += 1
            word.known = False
            word.parts.append((self.size, rest, quoted))
        else:
            self._add("$")

    def _substituted(self, commands: list[Command], word: Word, quoted: bool) -> None:
        self.now.within += commands
        word.known = False
        word.parts.append((self.size, commands, quoted))

    def _inside(self, until: str) -> list[Command]:
        """Read the commands up to a closing sign; only a reader of commands knows which one that is."""
        if self.depth >= MAX_DEPTH:
            raise Excessive("too deep")
        reader = _Reader(self.text, self.depth + 1, self.at + 1, until=until)
        commands = reader.commands()
        self.at = reader.at + 1
        return commands

    def _arithmetic(self) -> None:
        """Skip `((…))`: it runs nothing that is followed here."""
        open_ones = 0
        while self.at < len(self.text):
            open_ones += {"(": 1, ")": -1}.get(self.text[self.at], 0)
            self.at += 1
            if not open_ones:
                return
        raise Unreadable("an open parenthesis")
