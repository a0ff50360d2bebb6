"""Code of other languages, and programs of `sed`, `awk` and editors: the files that they name, and what they run.

None of it is parsed. It is looked at for what may write and for texts that are the names of files.
"""

import contextlib
import os.path
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from interlock.reservations.guard.effects import UnreadError
from interlock.reservations.guard.judge import Feed, Judge, Spot
from interlock.reservations.guard.prefilter import RUN, is_language
from interlock.reservations.guard.programs import options, plain
from interlock.reservations.guard.syntax import UnreadableError
from interlock.reservations.guard.words import Word, glob

_QUOTED: Final = r'"(?:\\.|[^"\\])*"'
_SIGNS: Final = dict.fromkeys(map(ord, ">|;}\n"))
_PRINTED: Final = r"print[^;}\n>]*>>?([^;}\n]+)"
_FROM_INPUT: Final = r"\n-(?:\w*f|W\n?exec)(?:\n?(?:-|/dev/\S*)\n|\n$)|\n--file[=\n](?:-|/dev/\S*)\n"
"""A program of `sed` or `awk` in its input; each argument is a line."""
_UNSEEN: Final = {
    "in place": (
        rf"{_FROM_INPUT}|s([^\w\s])[^\n]*\1[gpiImM\d]*e[gpiImM\d]*(?=[\s;}}])|(?:^|[\n;{{\d$/])\s*e(?=[\n;}}])"
    ),
    "awk": (rf"{_FROM_INPUT}|system\s*\((?!\s*\"[^\"]*\"\s*\))|print[^;}}\n|]*\|&?(?!\|)(?!\s*\")|\w\s*\|&?\s*getline"),
    "edit": r"\n(?:-[a-zA-Z]*[csS]\b|--cmd|\+.)(?!\n:?(?:qa?|wqa?|x)!?\n)",
}
"""What runs or writes something that such a program's arguments do not say."""
_VALUED: Final = frozenset({"-W", "-X", "-r", "--require", "--import"})
_STRING: Final = r"""'[^'\n]+'|"[^"\n]+"|`[^`\n]+`|<[^<>'"\s]+>"""
_WILD: Final = r"(?=.*[*?])(?=.*\w)[\w./*?-]+"
TOKEN: Final = re.compile(r"[\w./-]+")
_CODED: Final = r"-[A-Za-z0-9]*[ceE]|-p$|-r|--eval|--print|eval$|--import|--loader|data:"
"""An option that is followed by code, or that holds it."""
_GIVEN: Final = r"argv|ARGV|shift|args|<>|inplace|environ|getenv|ENV|\benv\b|stdin|STDIN"
"""What code says that reads its arguments, variables, or standard input."""
_FOLDERS: Final = (
    r"rmtree|rm_r|rmSync|rmdir|glob|walk|iterdir|(?:list|scan|read)_?dir|readDir|[rR]ename|move\b|copytree|extract"
    r"|unpack"
)
"""What code says that goes through a folder."""
_WRITING: Final = (
    r"""open(?:Sync)?\((?:(?:[^()]|\([^()]*\))*,\s*(?:mode\s*=\s*)?(?!['"](?:r[bt]?|<\W*|utf.*?)['"]|encoding|errors|newline)"""
    r"""|\s*(?:mode\s*=\s*)?['"][rbt]*[wax+][bt+]*['"])|(?<!stdout\.)[wW]rite|unlink|[rR]emove|os\.replace|[rR]ename|rmtree|rm(?:Sync|dir|\()"""
    r"""|truncate|FileHandler|basicConfig|ZipFile|urlretrieve|extract|unpack|qx|put_contents|to_\w+\(|savefig|savetxt"""
    r"""|[cC]opy\w*\(|cp(?:Sync)?\(|move\b|[dD]elete|appendFile|touch|symlink|system|subprocess|[pP]open|spawn|exec|`"""
    r"""|open.*(?:['"]|q\W)[+>]|open\s+\S+\s+[wa]|\.dump\(|inplace|\$\^I|FileIO|os\.open|O_[WRTC]|\.save\(|shell\s|!"""
    r"""|(?m:^\.[a-z]+ )|(?i:\binto\b|\battach\b)|\.replace\([^,()]*\)|file\s+copy|logging file"""
)
"""What code says that may write a file, or run a command."""


class Languages(Judge):
    """Judges code."""

    def text(self, spot: Spot, text: str, feed: Feed = None) -> None:
        """Judge a command line inside the command line."""
        raise NotImplementedError

    def code(self, spot: Spot, name: str, rest: Sequence[Word]) -> None:
        """Judge code of another language: the files that it names and may write, and commands in it."""
        if not is_language(name):
            return
        said, fed = [word.text for word in rest], [*(spot.feed or ()), *self.kept(spot, options(rest, _VALUED)[1])]
        given = [part for row in pairwise([*rest, Word()]) if re.match(_CODED, row[0].text) for part in row]
        given = list(rest) if name in {"timeit", "sqlite3"} else [] if "-m" in said[:2] else given
        is_read = not given and (not plain(rest) or "-" in said)
        code = "\n".join(word.text for word in (*given, *fed) if word.known)
        is_unread = any(not word.known and re.search(_WRITING, word.text) for word in given)
        if is_unread or (is_read and not all(word.known for word in fed)) or "/dev/fd/63" in said:
            self.plainly(spot, f"{name} …", "code that is spelled out")
        strings = [text[1:-1] for text in re.findall(_STRING, code)]
        if re.search(_WRITING, code) is None and RUN.isdisjoint(map(os.path.basename, strings)):
            return
        texts = dict.fromkeys([*strings, *TOKEN.findall(code)])
        paths = {text: os.path.join(spot.here or self.cwd, text) for text in texts}
        is_named = os.path.lexists if re.search(_FOLDERS, code) else os.path.isfile
        named = [Word(text) for text, path in paths.items() if is_named(path) or os.path.islink(path)]
        named += [glob(text) for text in strings if re.fullmatch(_WILD, text)]
        if re.search(_GIVEN, code):
            held = [word for rows in self.values.values() for row in rows for word in row if word.known]
            named += [word for word in (*rest, *fed, *held) if word not in given]
        self.files(spot, f"{name} …", named, follow=True)
        for text in (*strings, *re.findall(r"(?m)(?:^|\b(?:shell|system|exec)\s|[!|])\s*(\w[^\n'\"]*)", code)):
            if " " in text:
                self.loosely(spot, text)

    def script(self, spot: Spot, name: str, way: str, said: Sequence[str]) -> None:
        """Judge a program of `sed`, `awk` or an editor: refused where it does not say what it writes or runs."""
        if (row := _UNSEEN.get(way)) and (found := re.search(row, "\n".join(["", *said, ""]))):
            self.plainly(spot, f"{name} {found[0].strip()}", "files and commands that are spelled out")
        if way == "edit" and spot.feed is not None:
            self.plainly(spot, name, "`sed -i` and the file that it changes")
        if way == "awk":
            self._targets(spot, said)

    def _targets(self, spot: Spot, said: Sequence[str]) -> None:
        """Judge what a program of `awk` prints to: texts and, for everything else in a target, any text."""
        for text in said:
            plain = re.sub(_QUOTED, lambda found: found[0].translate(_SIGNS), re.sub(r"\w+\[[^\]]*\]", "x", text))
            for target in re.findall(_PRINTED, plain):
                parts = [(one, other.strip(" ()")) for one, other in re.findall(r'"([^"]*)"|([^"]+)', target)]
                path = ""
                for one, other in parts:
                    path += one or ("" if not other else "**" if path.endswith("/") or not path else "*")
                self.files(spot, "awk", [glob(path)], follow=True)

    def loosely(self, spot: Spot, text: str) -> None:
        """Judge a text that may be a command: refused for what it would touch, not for what cannot be read."""
        with contextlib.suppress(UnreadError, UnreadableError):
            self.text(spot, text)
