"""Programs on a command line: what runs a text, what writes files, and what else may run either."""

import contextlib
import os.path
import re
from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile
from typing import Any, ClassVar, Final

from interlock.reservations import place
from interlock.reservations.git import commands
from interlock.reservations.guard import effects, git_verbs, listings
from interlock.reservations.guard.effects import UnreadError
from interlock.reservations.guard.git_command import LONG_OPTIONS, Call, arguments, asked
from interlock.reservations.guard.judge import SUBSCRIPT, Spot, shown
from interlock.reservations.guard.languages import TOKEN, Languages
from interlock.reservations.guard.prefilter import NAMES, OUTPUT, RUN, is_language, names
from interlock.reservations.guard.programs import (
    FILES,
    FOLLOWING,
    READERS,
    RUNS,
    SEARCHES,
    WRITES,
    Given,
    Run,
    has,
    options,
    plain,
    values,
    written,
)
from interlock.reservations.guard.syntax import UnreadableError, text_of
from interlock.reservations.guard.words import UNKNOWN, Word
from interlock.reservations.process import SHELLS

_STARTERS: Final = names("ssh-agent direnv pyenv rbenv nodenv conda fnm brew opam mise starship zoxide dircolors asdf")
"""Programs whose output is made for `eval`: it sets up the environment."""
_EVALUATING: Final = names("test [ [[ printf read mapfile readarray wait")
_READ_VALUED: Final = names("-d -n -N -u -i -p")
_STDIN: Final = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_RULES: Final = re.compile(r"\s(?:--eval\b|--(?:make)?file=(?:-|/dev/)|-f\s*(?:-|/dev/\S*|$)(?=\s|$))")
_MODULE: Final = re.compile(r"(?:\S* )*?-[a-zA-Z]*m ?([\w.]+?)(?:\.__main__)?(?= |$)")
_SAFE: Final = re.compile(r"[\w./*?-]+")
_SPELLED: Final = "a command that is spelled out"
_OPENS: Final = r"[ugoa]*\+r?w?x"
"""A mode that turns no hook off."""
MAX_ALIASES: Final = 5
MAX_LINES: Final = 100
_FETCHERS: Final = frozenset({"fetch", "pull", "remote", "submodule"})
_MAKERS: Final = _FETCHERS | {"branch", "tag", "worktree", "update-ref", "push", "checkout", "switch"}
"""Subcommands after which names may mean other commits."""
_ODD: Final = re.compile(
    r"GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE|EXEC_PATH|CONFIG\w*|\w+_PATHSPECS)"
)
"""Variables by which git works on another repository or working tree, by other settings, or reads paths differently."""
_ODD_OPTIONS: Final = re.compile(r"--(?:git-dir|work-tree|exec-path|config-env|\w+-pathspecs)")
_ODD_SETTINGS: Final = re.compile(r"(?i)include|alias\.|core\.(?:worktree|hookspath)$|\w+\.autostash$")
_RUN_SETTINGS: Final = (
    r"^pager\.|(?:editor|pager|sshcommand|external|fsmonitor|command|cmd|textconv|clean|smudge|process|driver|helper|"
    r"askpass|program|uploadpack|receivepack|proxy)$"
)
"""Settings whose value is run."""
_VALUED: Final = names("-C -c --git-dir --work-tree --namespace --config-env --super-prefix --attr-source")
_SHORTENED: Final = re.compile("--[a-z]{1,2}")
"""So short a beginning of an option may mean one or another."""
_MESSAGES: Final = names("-m --message --author --date --trailer --into-name --reason -am -qm -qam -sm")
"""Options whose value names no file and no commit, so that it need not be known."""


class Commands(Languages):
    """Judges programs, and git's commands."""

    made, fetched = "", False
    """What makes branches and tags was given, and whether anything was fetched."""

    def program(self, spot: Spot, run: Run) -> None:
        """Judge one program with its arguments."""
        self._wrapped(spot, run)
        if run.folder is not None:
            known = run.folder.literal and spot.here is not None
            here = os.path.normpath(os.path.join(spot.here or "", run.folder.text)) if known else None
            spot = spot._replace(here=here)
        if run.fed is not None:
            for words in self._fed_runs(spot, run):
                self.count("commands", spot.node)
                self.program(spot, Run(words))
        elif run.words and (not run.words[0].literal or run.words[0].text.startswith("/dev/fd/")):
            self.plainly(spot, "…", "a program that is spelled out")
        elif run.words:
            for text in self.kept(spot, run.words[:1]) if "/" in run.words[0] or run.name.endswith(".py") else ():
                self._own_program(spot, text, run.words)
            self._judged(spot, run.name, run.words[1:])

    def _own_program(self, spot: Spot, text: Word, words: Sequence[Word]) -> None:
        """Judge a program that the line itself writes, by what its first line names."""
        said = [os.path.basename(word) for word in text.partition("\n")[0].removeprefix("#!").split()]
        name = next((word for word in said if word != "env" and not word.startswith("-")), "")
        name = "python" if words[0].endswith(".py") else name
        if is_language(name):
            self.code(spot, name, words)
        else:
            self._script(spot, words, name)

    def _judged(self, spot: Spot, name: str, rest: Sequence[Word]) -> None:
        self.mentions(spot, name, rest)
        if name.startswith("git-") and name[4:] in git_verbs.VERBS:
            name, rest = "git", [Word(name[4:]), *rest]
        if name in _EVALUATING and any(SUBSCRIPT.search(word.text) for word in rest):
            self.plainly(spot, name, "a text without commands in a subscript")
        if name == "git":
            self.git(spot, rest)
        elif name in FILES:
            self._write(spot, name, rest)
        elif name in SHELLS:
            self._shell(spot, name, rest)
        elif (row := self.PROGRAMS.get(name)) is not None:
            row(self, spot, rest)
        elif name not in SEARCHES:
            self._outputs(spot, name, rest)
            if name not in READERS:
                self._other(spot, name, rest)

    def _wrapped(self, spot: Spot, run: Run) -> None:
        for word in run.assigned:
            name, sign, value = word.partition("=")
            if not sign or not word.single or not Word(name).literal:
                self.plainly(spot, "env", "variables whose names are spelled out")
            self.set(spot, name, Word(value))
        for text in run.texts:
            self._run_text(spot, run.name or "…", text)
        self.files(spot, run.name or "…", run.outputs, follow=True)

    def _fed_runs(self, spot: Spot, run: Run) -> list[list[Word]]:
        """Return what `xargs` runs: one command for each word that has a place in it, one with all words without."""
        reads = run.name in FILES or run.name == "git" or is_language(run.name)
        fed = [UNKNOWN] if spot.feed is None else [Word(part) for word in spot.feed for part in word.split()]
        words = [word if (reads and set("'\"\\").isdisjoint(word)) or word.isdigit() else UNKNOWN for word in fed]
        place = run.fed
        if place and run.name in SHELLS and all(word.pattern and _SAFE.fullmatch(word.text) for word in fed):
            words = [Word(word.text) for word in fed]
        if not place:
            return [[*run.words, *words]]
        return [[Word(word.replace(place, each)) for word in run.words] for each in words]

    def mentions(self, spot: Spot, name: str, words: Sequence[Word]) -> None:
        """Judge words that hold the name of a variable that identifies an agent, unless they are a text to look for."""
        said = next((each for word in words for each in sorted(NAMES) if each in word.text), "")
        if said and (name not in SEARCHES or (name == "printf" and words[0].text == "-v")):
            self.anything(f"{name} {said}", effects.PERSON, spot.here, effects.AROUND)

    def _write(self, spot: Spot, name: str, rest: Sequence[Word]) -> None:
        self.code(spot, name, rest)
        self._outputs(spot, name, [word for word in rest if word.startswith("--")])
        way, said = FILES[name], [word.text for word in rest if word.known]
        said += [text.partition("=")[2] for text in said if text.startswith("--")]
        said += [text.partition("e")[2] for text in said if re.match(r"-[nErsuz]*e.", text)]
        self.script(spot, name, way, said)
        files = [Word(file) for text in said for file in re.findall(WRITES[way], text)] if way in WRITES else []
        files += written(way, rest, spot.here or self.cwd) if rest else []
        self.files(spot, shown(name, rest), files, follow=way in FOLLOWING)
        for file in plain(rest) if name == "tee" else plain(rest)[1:] if name in {"cp", "mv"} else ():
            self.keep(spot, file, spot.feed if name == "tee" else self.kept(spot, plain(rest)))
        is_link = way == "link" or any(re.match(r"-\w*[sl]|--(?:sym|link)", word.text) for word in rest if name == "cp")
        for made in files if is_link else ():
            is_soft = any(re.match(r"-\w*s|--sym", word.text) for word in rest)
            path = os.path.normpath(os.path.join(spot.here or self.cwd, made.text))
            self.links[path] = os.path.join(os.path.dirname(path) if is_soft else spot.here or self.cwd, plain(rest)[0])
        for match in (each for text in said for each in re.finditer(RUNS[way], text)) if way in RUNS else ():
            self.loosely(spot, match[match.lastindex or 0].replace("\\n", "\n"))

    def _outputs(self, spot: Spot, name: str, rest: Sequence[Word]) -> None:
        """Judge what an option names as a file that is written, in its own word or the next."""
        found = [(option, re.match(OUTPUT, option.text), after) for option, after in pairwise([*rest, Word()])]
        outputs = [Word(option[match.end() :]) or after for option, match, after in found if match]
        self.files(spot, name, [word for word in outputs if word.known], follow=True)

    def _other(self, spot: Spot, name: str, rest: Sequence[Word]) -> None:
        """Judge a program that is in no table: what it is given may be a command, or the store."""
        self.code(spot, name, rest)
        if name in {"npm", "pnpm", "yarn", "bun"}:
            self._recipes(spot, [Word("package.json")])
        module = _MODULE.match(" ".join(re.sub(r"\s", "_", word.text) for word in rest))
        if is_language(name) and module is not None:
            for text in self.kept(spot, [Word(f"{module[1].replace('.', '/')}.py")]):
                self.code(spot._replace(feed=[text]), name, [Word("-")])
            self.program(spot, Run([Word(module[1]), *rest[module[0].count(" ") + 1 :]]))
        for at, word in enumerate(rest):
            if word.literal and " " in word.text:
                if ">" in word or not RUN.isdisjoint(map(os.path.basename, TOKEN.findall(word.text))):
                    self.loosely(spot, re.sub(r"^--?[\w-]+=", "", word.text))
            elif word.literal and os.path.basename(word.text) in RUN:
                with contextlib.suppress(UnreadError):
                    self.program(spot, Run(rest[at:]))
            checkout = self.checkouts.at(spot.here or self.cwd)
            store = os.path.dirname(checkout.place.store_path)
            if place.inside(store, os.path.realpath(os.path.join(spot.here or self.cwd, word.text))):
                self.anything(f"{name} {word.text}", effects.STORE, spot.here, "may take away what guards")

    def _shell(self, spot: Spot, name: str, rest: Sequence[Word]) -> None:
        words, is_text, is_input = list(rest), False, False
        while words and words[0].text[:1] in {"-", "+"} and words[0].text not in {"-", "--"}:
            option = words.pop(0).text
            is_text |= option.lower() == "-command" or (option[1:2] != "-" and "c" in option)
            is_input |= option[1:2] != "-" and "s" in option
            if words and words[0].text == "nocaseglob":
                self.plainly(spot, name, "wildcards as they are")
            if option in {"--rcfile", "--init-file"} and words[:1] == ["/dev/fd/63"]:
                self.plainly(spot, name, "a script that is spelled out")
            if option in {"--rcfile", "--init-file"} or (option[1:2] != "-" and option[-1] in "oO"):
                words = words[1:]
        words = words[1:] if words and words[0].text == "--" else words
        if is_text:
            self._run_text(spot, name, words[0] if words else Word(), words[1:])
        else:
            self._script(spot, [] if is_input else words, name)

    def _run_text(self, spot: Spot, name: str, text: Word, given: Sequence[Word] = ()) -> None:
        if not text.literal:
            self.plainly(spot, name, _SPELLED)
        if given:
            self.set(spot, "0", given[0])
            self.give(spot, given[1:])
        self.text(spot, text.text, spot.feed)

    def _script(self, spot: Spot, words: Sequence[Word], name: str = "source") -> None:
        if words and (not words[0].literal or words[0].text.startswith(("/dev/fd/6", "/proc/"))):
            self.plainly(spot, name, "a script that is spelled out")
        for text in self.kept(spot, words):
            self.give(spot, words[1:])
            self._own_script(spot, text)
        if spot.feed is not None and (not words or words[0].text in _STDIN):
            self._run_text(spot, f"… | {name}", Word(" ".join(spot.feed)))

    def _own_script(self, spot: Spot, text: Word) -> None:
        """Judge a script that the line itself writes; where it cannot be read whole, the lines that can."""
        try:
            self.text(spot, text.text)
        except (UnreadError, UnreadableError):
            lines = [line for line in text.text.split("\n") if not RUN.isdisjoint(TOKEN.findall(line))]
            for line in lines[:MAX_LINES]:
                self.loosely(spot, line)

    def _eval(self, spot: Spot, rest: Sequence[Word]) -> None:
        starter = re.fullmatch(r'eval\s+"?\$\(([\w-]+)[\w\s./-]*\)"?', text_of(spot.node))
        if starter is None or starter[1] not in _STARTERS:
            self._run_text(spot, "eval", Word(" ".join(word.text if word.known else word for word in rest)))

    def _trap(self, spot: Spot, rest: Sequence[Word]) -> None:
        words = [word for word in rest if word.text != "--"]
        if len(words) > 1 and words[0].text != "-":
            self._run_later(spot, "trap", words[:1])

    def _alias(self, spot: Spot, rest: Sequence[Word]) -> None:
        self._run_later(spot, "alias", [Word(word.partition("=")[2] if word.known else word) for word in rest])

    def _run_later(self, spot: Spot, name: str, texts: Sequence[Word]) -> None:
        for text in texts:
            if not text.literal:
                self.plainly(spot, name, _SPELLED)
            self.later.append((spot, text.text))

    def _read(self, spot: Spot, rest: Sequence[Word]) -> None:
        """Note what variables are filled with: lines of one word each, or something that is not known."""
        given, names = options(rest, _READ_VALUED)
        if has(given, "-C"):
            self.plainly(spot, "mapfile", "no callback")
        lines = [Word(line) for word in spot.feed or [UNKNOWN] for line in word.splitlines() or [""]]
        is_plain = not has(given, "-n", "-N", "-u", "-i") and not values(given, "-d")
        is_plain &= not any(value[:1] not in {(), ("",)} for value in self.values.get("IFS", ()))
        if not is_plain or any(len(line.split()) > 1 or "\\" in line for line in lines):
            lines = [UNKNOWN]
        for name in names or [Word("MAPFILE")]:
            self._fill(spot, [name], [Word(line.strip()) for line in lines])
            if name.literal:
                self.set(spot, name.text, *(Word(line.strip()) for line in lines))

    def _printf(self, spot: Spot, rest: Sequence[Word]) -> None:
        self._fill(spot, rest[1:2] if rest and rest[0].text == "-v" else [], [UNKNOWN])

    def _fill(self, spot: Spot, names: Sequence[Word], values: Sequence[Word]) -> None:
        for name in names:
            if not name.literal:
                self.plainly(spot, "read", "the name of the variable spelled out")
            for value in values:
                self.set(spot, name.text, value)

    def _set(self, spot: Spot, rest: Sequence[Word]) -> None:
        words = list(rest)
        if words and (words[0].text == "--" or not words[0].text.startswith(("-", "+"))):
            self.give(spot, words[words[0].text == "--" :])

    def _hash(self, spot: Spot, rest: Sequence[Word]) -> None:
        if rest:
            self.plainly(spot, "let, hash, enable, bind or complete", "the program itself, and numbers as `$((…))`")

    def _find(self, spot: Spot, rest: Sequence[Word]) -> None:
        names = listings.found_by_find(rest)
        words = iter(rest)
        for word in words:
            if word.text == "-delete":
                self.files(spot, "find -delete", names, follow=False)
            elif word.text.startswith("-fprint") or word.text == "-fls":
                self.files(spot, "find", [next(words, Word())], follow=True)
            elif word.text in {"-exec", "-execdir", "-ok", "-okdir"}:
                inner = list(takewhile(lambda part: part.text not in {";", "+"}, words))
                for found in names:
                    self.program(spot._replace(feed=None), Run([Word(part.replace("{}", found)) for part in inner]))
            elif word.text in {"-x", "-X", "--exec", "--exec-batch"}:
                self.program(spot._replace(feed=None), Run([*words, UNKNOWN]))

    def _make(self, spot: Spot, rest: Sequence[Word]) -> None:
        """Refuse rules that are given to `make` beside its file."""
        if _RULES.search(" ".join(["", *(word.text for word in rest), ""])):
            self.plainly(spot, "make", "rules in a file")
        self._recipes(spot, (*rest, *map(Word, ("GNUmakefile", "makefile", "Makefile"))))

    def _recipes(self, spot: Spot, files: Sequence[Word]) -> None:
        """Judge the commands in files that the line itself writes, one after a tab or in a text each."""
        for text in (text for file in files for text in self.kept(spot, [file])):
            for recipe, script in re.findall(r'(?m)^\t[@+-]*(.+)|:\s*"([^"]*)"', text):
                self.loosely(spot, recipe or script)

    def _shopt(self, spot: Spot, rest: Sequence[Word]) -> None:
        if any(word.text in {"nocaseglob", "expand_aliases"} or not word.known for word in rest):
            self.plainly(spot, "shopt", "wildcards and names of programs as they are")

    def _patch(self, spot: Spot, rest: Sequence[Word]) -> None:
        """Refuse `patch`, which finds its files by its own rules; git says of a patch which files it changes."""
        if all(word.text != "--dry-run" for word in rest):
            self.plainly(spot, "patch", "`git apply FILE`")

    def _modes(self, spot: Spot, rest: Sequence[Word]) -> None:
        """Judge what takes the execute bit from git's hooks; a mode of a folder around everything is everyday work."""
        if any(re.fullmatch(_OPENS, word.text) for word in rest):
            return
        for word in plain(rest):
            path = os.path.realpath(os.path.join(spot.here or self.cwd, word.text))
            if self.checkouts.at(os.path.dirname(path)).guards(path, above=False):
                self.anything("chmod", effects.HOOKS, spot.here, "would take away what guards")

    def _interlock(self, spot: Spot, rest: Sequence[Word]) -> None:
        """Judge our own commands: nobody is left without a guard, and hooks are not called by hand."""
        verb = "…" if rest and not rest[0].known else rest[0].text if rest else ""
        if verb == "hook":
            checkout = self.checkouts.at(spot.here or self.cwd)
            if checkout.opened is not None:
                hits, fix = checkout.all(), effects.OWN_HOOKS
                raise effects.touching("interlock hook", hits, fix, checkout, effects.AROUND)
        if verb in ("answer", "ui", "…"):
            may_be = "may be `answer` or `ui`, which " if verb == "…" else ""
            text = (
                f"`interlock {verb}` {may_be}is for the person who owns the task, and for no agent.\n"
                f"  fix: {effects.PERSONS}"
            )
            raise effects.RefusedError(
                f"interlock {verb}", [], effects.PERSONS, self.checkouts.at(spot.here or self.cwd), text
            )
        if verb == "uninstall" or (verb == "init" and any(word.text == "--undo" for word in rest)):
            self.anything(f"interlock {verb}", effects.PERSON, spot.here, effects.AROUND)

    def _gh(self, spot: Spot, rest: Sequence[Word]) -> None:
        said = " ".join(word.text for word in rest)
        if re.fullmatch(r"(co\b|pr checkout\b).*|repo sync( (-b|--branch|-s|--source) \S+| -\S+)*", said, re.DOTALL):
            self.anything("gh pr checkout" if said[:4] != "repo" else "gh repo sync", git_verbs.WAIT, spot.here)
        elif re.match(r"pr merge\b(?!.* (-R|--repo)\b).* (--delete-branch|-[smr]*d\w*)\b", said):
            fix = "merge it without `-d`; `git push origin --delete BRANCH` deletes the branch on the server."
            self.anything("gh pr merge -d", fix, spot.here)

    def git(self, spot: Spot, given: Sequence[Word], aliased: int = 0) -> None:
        """Judge a git command: its own options, then the subcommand or what its alias expands to."""
        own, words = options(given, _VALUED, stop=True)
        here, odd = self._options(spot, own)
        name, rest = (words[0].text if words and words[0].literal else ""), words[1:]
        if not words or (here is None and name in git_verbs.READS):
            return
        if not name or here is None:
            self.plainly(spot, "git …", "a subcommand that is spelled out, in a folder that is")
        if not os.path.isdir(here):
            return
        spot = spot._replace(here=here)
        if name not in git_verbs.READS and name != "config":
            for path in odd:
                self.anything(f"git {name}", effects.TREE, path)
        hooks = self.env.get("INTERLOCK_HOOKS", "") != "off"
        known = ("--output",) if name in git_verbs.READS else LONG_OPTIONS
        sorted_ones = arguments(name, rest, known)
        call = Call(
            here, self.checkouts.at(here), name, rest, *sorted_ones, self.made, self.fetched, self.undisturbed, hooks
        )
        self.files(spot, f"git {name}", git_verbs.written(call), follow=True)
        for text in git_verbs.commands_of(call):
            if not text.known:
                self.plainly(spot, f"git {name}", "a command that is spelled out")
            for folder in (here, None) if name == "submodule" else (here,):
                self.text(spot._replace(here=folder), text.text)
        if name in git_verbs.VERBS:
            self._known(spot, name, rest)
            if call.checkout.held:
                self._verb(spot, call)
        elif name in git_verbs.READS:
            self._note(spot, name, rest)
        else:
            self._meant(spot, name, rest, aliased)

    def _options(self, spot: Spot, given: Given) -> tuple[str | None, list[str]]:
        """Judge git's own options; return its folder, and the folders that an odd option or variable is about."""
        here, odd = spot.here, [""][:0]
        named = [word for name in self.values if _ODD.fullmatch(name) for row in self.values[name] for word in row]
        for option, value in given:
            if not value.literal:
                self.plainly(spot, "git …", "git's own options spelled out")
            if option == "-C":
                here = None if here is None else os.path.normpath(os.path.join(here, value.text))
            elif option == "-c":
                self._setting(spot, value.text)
            elif _ODD_OPTIONS.fullmatch(option) and (value or option != "--exec-path"):
                named.append(value)
        for word in named:
            path = os.path.realpath(os.path.join(here or self.cwd, word.text))
            odd += [here or self.cwd, path, os.path.dirname(path)]
        return here, odd

    def _meant(self, spot: Spot, name: str, rest: Sequence[Word], aliased: int) -> None:
        """Judge what an alias expands to; another subcommand is a program of its own."""
        self.count("git commands", spot.node)
        meaning = asked(spot.here or self.cwd, "config", "--get", f"alias.{name}").strip()
        if (meaning and not all(word.known for word in rest)) or aliased > MAX_ALIASES:
            self.plainly(spot, f"git {name}", "git's own subcommand, with arguments that are spelled out")
        if meaning.startswith("!"):
            root = self.checkouts.at(spot.here or self.cwd).root
            text = f"{meaning[1:]} {git_verbs.quoted([word.text for word in rest])}".rstrip()
            self.text(spot._replace(here=root), text)
        elif meaning:
            import shlex  # noqa: PLC0415 - few lines have an alias

            self.git(spot, [*map(Word, shlex.split(meaning)), *rest], aliased + 1)

    def _known(self, spot: Spot, name: str, words: Sequence[Word]) -> None:
        if name == "branch" and {"-d", "-D", "--delete"}.intersection(word.text for word in words):
            return  # never the branch that is checked out
        for before, word in pairwise([Word(), *words]):
            if _SHORTENED.fullmatch(word.text):
                self.plainly(spot, f"git {name}", "options in full")
            if not word.known and not (before.text in _MESSAGES and word.single):
                self.plainly(spot, f"git {name}", "arguments that are spelled out")

    def _setting(self, spot: Spot, setting: str) -> None:
        key, _, value = setting.partition("=")
        if _ODD_SETTINGS.match(key):
            self.anything(f"git -c {key}", effects.TREE, spot.here)
        elif re.search(_RUN_SETTINGS, key.lower()):
            self.text(spot, value.removeprefix("!"))

    def _note(self, spot: Spot, name: str, words: Sequence[Word]) -> None:
        if name == "config" and any(word.text.lower().startswith("alias.") for word in words):
            self.set(spot, "GIT_CONFIG", Word())
        if name in _MAKERS and (
            name not in {"checkout", "switch"} or any(word.text[:2].lower() in {"-b", "-c"} for word in words)
        ):
            self.made += " ".join(["", *(word.text for word in words), "FETCH_HEAD" if name in _FETCHERS else ""])
        self.fetched |= name in _FETCHERS

    def _verb(self, spot: Spot, call: Call) -> None:
        self.count("git commands", spot.node)
        try:
            verdict = git_verbs.judge(call)
        except commands.GitError as error:
            if error.status is None:
                raise
            # Git does not find what is named, and will not find it when the command runs.
            return
        self._note(spot, call.name, call.words)
        if verdict is not None and verdict[0]:
            hits, why = call.ordered(verdict[0])
            action, verb = shown(f"git {call.name}", call.words), "may touch" if why else "would touch"
            raise effects.touching(action, hits, verdict[1], call.checkout, verb, why, asks=True)

    _rows: ClassVar[dict[str, Callable[[Any, Spot, Sequence[Word]], None]]] = {
        "eval": _eval, "source .": _script, "trap": _trap, "alias": _alias,
        "read mapfile readarray getopts": _read, "printf": _printf, "set": _set, "let hash enable bind complete": _hash,
        "find fd fdfind": _find, "patch": _patch, "chmod chown chgrp setfacl chattr": _modes, "interlock": _interlock,
        "gh": _gh, "make gmake": _make, "shopt": _shopt,
    }  # fmt: skip
    PROGRAMS: ClassVar = {name: row for each, row in _rows.items() for name in each.split()}
    """Program to what judges it, where that is not a row of the other tables."""
