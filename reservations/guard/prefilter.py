"""The pre-filter of the guard: whether a command line is plain enough to pass without a parser.

It passes what it recognises and nothing else: plain commands whose names are spelled out and are none that the guard
judges. Everything with an expansion in command position, a redirection to a file, a group or a keyword is parsed.
"""

import re
from typing import Final

from interlock.core.project import PROJECT
from interlock.reservations import identity
from interlock.reservations.process import PREFIXES, SHELLS


def names(text: str) -> frozenset[str]:
    """Return the words of a text, for tables of names."""
    return frozenset(text.split())


FILE_WRITERS: Final[dict[str, str]] = {
    "remove": "rm unlink rmdir shred trash gio",
    "write": "tee truncate sponge fallocate history",
    "edit": "ed ex vi vim nvim",
    "script": "script",
    "zip": "zip",
    "copy": "cp install",
    "link": "ln",
    "move": "mv",
    "rename": "rename prename",
    "sync": "rsync scp",
    "dump": "dd",
    "in place": "sed gsed perl ruby",
    "awk": "awk gawk mawk nawk",
    "pack": "gzip gunzip bzip2 bunzip2 xz unxz zstd",
    "-o": "sort",
    "-O": "wget",
    "-f": "ssh-keygen",
    "curl": "curl",
    "ssh": "ssh",
    "second": "uniq xxd lz4 ptx objcopy json.tool",
    "archive": "zipfile tarfile",
    "tar": "tar bsdtar",
    "unzip": "unzip",
    "cpio": "cpio",
    "7z": "7z 7za 7zz",
    "rewrite": "black isort pyupgrade rustfmt dos2unix unix2dos",
    "rewrite -i": "autopep8 yapf clang-format yq",
    "rewrite -w": "prettier gofmt goimports gofumpt shfmt 2to3",
    "rewrite --fix": "eslint stylelint ruff biome",
}
"""What programs do to the files that they are given; `programs.FILES` has a row for each way."""

BUILTINS: Final = names(
    "eval source . trap alias coproc cd pushd popd exit return set shopt export declare typeset readonly local unset "
    "let read mapfile readarray getopts printf test [ [[ enable hash bind complete fc"
)
"""Builtins of the shell that run text, move the shell, or change what a later word means."""

WRAPPERS: Final = frozenset({*PREFIXES, "command", "builtin", "exec", "noglob", "nocorrect", "-", "su", "runuser"})
"""Programs that run the words behind their own, or a text that they are given."""

KEYWORDS: Final = names(
    "if then else elif fi do done while until for select case esac in function time coproc { } ! [[ (("
)

JUDGED: Final = frozenset({
    *(name for row in FILE_WRITERS.values() for name in row.split()),
    *SHELLS, *BUILTINS, "git", "find", "fd", "fdfind", "patch", "gh", "sqlite3", "interlock", "chmod", "chown", "chgrp",
    "setfacl", "chattr", "cmake",
})  # fmt: skip
"""Programs whose arguments the guard reads."""

_LANGUAGES: Final = names(
    "python ipython node nodejs deno bun ruby perl php lua tclsh wish expect jshell gdb lldb guile julia Rscript "
    "timeit pdb sqlite"
)
OUTPUT: Final = (
    r"-(?:(?:[oO]|MF|Map|-?[\w:.-]*(?:out|log|report|dest|save|dump|trace|junit|write|result)[\w:.*-]*)(?:=|(?=\s|$))"
    r"|(?:o|MF)(?=\S))"
)
"""An option that names a file which is written, of programs that are in no table."""
_CODE: Final = (
    r"\s(?:-[A-Za-z0-9]*[ceE]|-[pr](?=\s)|-r\S{3}|--eval|--print|eval\s|-[a-zA-Z]*m(?:\S|\s*(?:timeit|pdb)))"
    r"|data:|\|\s*(?:\S*/)?(?:i?python|node|deno|bun|ruby|perl|php|lua|tclsh|jshell|uv|poetry|pipenv)|/dev/(?:stdin|fd)|/proc/"
)
"""What gives such a program its code: an option, or its standard input."""
_GIVES: Final = rf"\s(?:--eval\b|--\w*=-|-f\s*-(?:\s|$)|{OUTPUT})"
"""What gives other programs a text to run, or a file to write."""

NAMES: Final = frozenset({*identity.NAMES, identity.SESSION, identity.EXPORTED, PROJECT, "INTERLOCK_HOOKS"})
"""Variables that identify an agent; see `check_names`."""

_UNREAD: Final = JUDGED | WRAPPERS | KEYWORDS
_NAMED: Final = "|".join(sorted(NAMES))
_PLAIN = r"[A-Za-z0-9_./:,=@%+^*?\[\]~#-]"
_WORD = rf"""(?:(?:(?!\#){_PLAIN}|'[^']*'|"[^"$`\\]*")(?:{_PLAIN}|'[^']*'|"[^"$`\\]*")*)"""
_REDIRECT = r"(?:[12]?>/dev/null|2>&1|>&2)"
_QUIET: Final = re.compile(_REDIRECT)
_COMMAND = rf"[A-Za-z0-9_./+-]+(?:[ \t]+(?:{_WORD}|{_REDIRECT}))*"
_LINE: Final = re.compile(rf"\s*{_COMMAND}[ \t]*(?:(?:&&|\|\||[;|\n])\s*{_COMMAND}[ \t]*)*[;\s]*", re.ASCII)
_FIRST: Final = rf"(?:^|&&|\|\||[;|\n])\s*({_PLAIN}+)"
_GIT_READS: Final = r"(^|[;&|\n])\s*git (?:status|log|diff|show|blame|describe|rev-parse|ls-files)(?= |$)"
_GIT_WRITES: Final = r"--ou|--ext|--text|\s-[-\w]*[oO]\b|\s-[oOc]"
"""Options by which git's reading subcommands write a file or run a program."""
_QUOTED: Final = re.compile(r"""'[^']*'|"[^"]*\"""")
_MAX: Final = 20_000
"""Longer lines are parsed; the expression needs no second look at any character."""
_QUOTES: Final = dict.fromkeys(map(ord, "'\"\\"))


MODULE: Final = r"(?s)(?:.*\s|^)-[a-zA-Z]*m\s*interlock(?:\.__main__)?(?=\s|$)"
"""The options of Python up to our own module."""


def unquoted(command: str) -> str:
    r"""Return a command line without quotes: `r\m` and `r''m` are `rm`."""
    return command.replace("\\\n", "").translate(_QUOTES)


def is_language(name: str) -> bool:
    """Return whether a program, whatever its version, runs code of another language."""
    return name.rstrip("0123456789.") in _LANGUAGES


def is_plain(command: str) -> bool:
    """Return whether a command line consists of plain commands that the guard has nothing to say about."""
    if not command.strip():
        return True
    if "git " in command and re.search(_GIT_WRITES, unquoted(command)) is None:
        command = re.sub(_GIT_READS, r"\1 true", command)
    if len(command) > _MAX or _LINE.fullmatch(command) is None or re.search(_NAMED, said := unquoted(command)):
        return False
    programs = [name.rpartition("/")[2] for name in re.findall(_FIRST, _QUOTED.sub("x", command))]
    arguments = {word.rpartition("/")[2] for word in said.split()}
    if re.search(MODULE, said) or re.search(_GIVES, said) or ">" in _QUIET.sub("", command):
        return False
    if any(map(is_language, arguments)) and re.search(_CODE, said):
        return False
    return (
        _UNREAD.isdisjoint(programs)
        and (JUDGED - BUILTINS).isdisjoint(arguments)
        and not any(name.startswith("git-") for name in programs)
    )


RUN: Final = (
    JUDGED - BUILTINS - names("install interlock patch gh sort curl trash script zip history ssh cmake json.tool")
)
"""As an argument, one of these may be run by the program that it is given to."""
