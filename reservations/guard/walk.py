"""The walk over the tree of a command line: in which folders its commands may run.

Nothing is run, so that what may happen counts. Where a command runs is followed as far as `cd` and what joins commands
say it: `a && b` runs `b` only after `a`. A line is walked again until it gives no variable a new value.
"""

import os.path
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from interlock.reservations.guard.commands import Commands
from interlock.reservations.guard.effects import Worlds
from interlock.reservations.guard.judge import Feed, Spot
from interlock.reservations.guard.prefilter import names
from interlock.reservations.guard.programs import Run, plain
from interlock.reservations.guard.syntax import Node, UnreadableError, is_quoted, parse, row_of, text_of
from interlock.reservations.guard.words import UNKNOWN, Word, bindings

MAX_DEPTH: Final = 40
"""So deep commands inside commands are followed, and functions that call functions."""
MAX_FOLDERS: Final = 16
"""With more folders than these, the folder is not known."""
MAX_ROUNDS: Final = 5
_CALM: Final = names("cd pushd popd echo printf pwd ls cat mkdir test [ true : set export source . which")
"""Programs after which a folder that was there still is."""
_PARTS: Final = names("heredoc_start heredoc_body heredoc_end file_redirect herestring_redirect comment")

Folders: TypeAlias = tuple[str | None, ...]
"""Folders in which the next command may run; None for one that is not known."""


class Ends(NamedTuple):
    """Where what comes next may run: after a command that worked, and after one that failed."""

    done: Folders
    failed: Folders

    @property
    def any(self) -> Folders:
        """After either."""
        return _joined(self.done, self.failed)


class Walk(Commands):
    """Judges one command line.

    Args:
        worlds: The checkouts that it may reach.
        env: The environment of the hook.
        cwd: The folder in which it begins.
    """

    def __init__(self, worlds: Worlds, env: Mapping[str, str], cwd: str) -> None:
        super().__init__(worlds, env, cwd)
        self.seen: dict[str | None, None] = {}
        self.folders_made: set[str] = set()
        self.depth = 0

    def judge(self, command: str) -> None:
        """Judge the line.

        Raises:
            RefusedError: It may not run.
        """
        said = " ".join(command.split()[:2])
        try:
            root = parse(command)
            for _ in range(MAX_ROUNDS):
                before = self._state()
                self.begin()
                self.later = []
                self._sequence(root.children, (self.cwd,), None)
                for spot, text in self.later:
                    for folder in tuple(self.seen):
                        self.text(spot._replace(here=folder), text)
                if self._state() == before:
                    return
        except UnreadableError as error:
            self.unread(said, error.found, error.expected, error.row)
        except RecursionError:
            self.unread(said, "commands inside commands", "fewer of them", 1)
        self.unread(said, "variables that change without end", "a plain loop", 1)

    def _state(self) -> tuple[int, ...]:
        counted = (*self.values.values(), self.functions, self.seen)
        return len(self.values), sum(map(len, counted))

    def text(self, spot: Spot, text: str, feed: Feed = None) -> None:
        """Judge a command line inside the command line."""
        self.count("texts inside texts", spot.node)
        ends = self._sequence(parse(text).children, (spot.here,), feed)
        self.seen |= dict.fromkeys(ends.any)

    # -- statements --------------------------------------------------------------------------------------------------

    def _sequence(self, nodes: Sequence[Node], folders: Folders, feed: Feed) -> Ends:
        """Judge statements one after another."""
        ends = Ends(folders, ())
        for node in nodes:
            if not node.is_named or node.type == "comment":
                continue
            new = self._statement(node, ends.any, feed)
            after = node.next_sibling
            ends = Ends(ends.any, ()) if after is not None and after.type == "&" else new
        return ends

    def _statement(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        """Judge one statement."""
        row = self.STATEMENTS.get(node.type)
        if row is None or self.depth > MAX_DEPTH:
            raise UnreadableError(text_of(node)[:60], "a command, not too deep in others", row_of(node))
        if len(folders) > MAX_FOLDERS:
            folders = (None,)
        self.seen |= dict.fromkeys(folders)
        self.depth += 1
        try:
            return row(self, node, folders, feed) if folders else Ends((), ())
        finally:
            self.depth -= 1

    def _list(self, node: Node, folders: Folders, feed: Feed, outer: Node | None = None) -> Ends:
        """Judge `a && b` or `a || b`; the grammar puts the redirections of `b`, in `outer`, around both."""
        left, operator, right = [child for child in node.children if child.type != "comment"]
        first = self._statement(left, folders, feed)
        begin = first.done if operator.type == "&&" else first.failed
        second = self._statement(right, begin, feed) if outer is None else self._applied(outer, right, begin, feed)
        if operator.type == "&&":
            return Ends(second.done, _joined(first.failed, second.failed))
        return Ends(_joined(first.done, second.done), second.failed)

    def _pipeline(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        stages = [child for child in node.children if child.is_named and child.type != "comment"]
        for at, stage in enumerate(stages):
            fed = feed if at == 0 else self.written(stages[:at], {}, _only(folders))
            self._statement(stage, folders, fed)
        return Ends(folders, folders)

    def _group(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        if node.children[0].type == "((":
            return self._inner(node, folders, feed)
        return self._sequence(node.children, folders, feed)

    def _subshell(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        self._sequence(node.children, folders, feed)
        return Ends(folders, folders)

    def _negated(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        done, failed = self._sequence(node.children, folders, feed)
        return Ends(failed, done)

    def _if(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        """Judge `if`, `elif`, `else` or `case`: each part may follow every one before it, or none."""
        out = folders
        for child in node.children:
            for part in child.children if child.type == "case_item" else [child]:
                if part.type in {"elif_clause", "else_clause"} or part.type in self.STATEMENTS:
                    judge = self._statement if part.type in self.STATEMENTS else self._if
                    out = _joined(out, judge(part, out, feed).any)
                elif part.is_named:
                    self._inner(part, folders, feed)
        return Ends(out, out)

    def _loop(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        """Judge a loop until the folders in which a round may begin are all there."""
        if node.type == "c_style_for_statement":
            self._inner(node, folders, feed)
        parts = [child for child in node.children if child.is_named and child.type != "comment"]
        statements = [part for part in parts if part.type in self.STATEMENTS and part.type != "variable_assignment"]
        body = [child for part in parts if part.type == "do_group" for child in part.children]
        if node.type == "for_statement":
            given = [part for part in parts[1:] if part.type not in {"do_group", "compound_statement"}]
            name, counted = text_of(parts[0]), any(child.type == "in" for child in node.children)
            for part in given:
                self._inner(part, folders, feed)
            spot = Spot(node, _only(folders))
            self.named(name, None, spot)
            listed = counted and text_of(node.children[0]) != "select"
            for word in self.each_field(given, spot.here) if listed else [UNKNOWN]:
                self.bind(name, word)
        begin: Folders = ()
        while begin != folders:
            begin = folders
            folders = _joined(folders, self._sequence([*statements, *body], folders, feed).any)
        return Ends(folders, folders)

    def _function(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        """Note a function: what it does is judged with what is run later, in every folder of the line."""
        parts = [child for child in node.children if child.is_named]
        spot = Spot(node, _only(folders), feed)
        self._redirects(parts[2:], spot)
        self.functions.add(text_of(parts[0]))
        self.later.append((spot, text_of(parts[1])))
        return Ends(folders, ())

    def _assignments(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        for row in node.children if node.type == "variable_assignments" else [node]:
            self._inner(row, folders, feed)
            self.assign(row, _only(folders))
        return Ends(folders, folders)

    def _declaration(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        self._inner(node, folders, feed)
        self.declare(node, _only(folders))
        return Ends(folders, folders)

    def _inner(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        """Judge what stands inside words: the commands of substitutions, arithmetic, and `${NAME:=VALUE}`."""
        stack, here = [node], _only(folders)
        while stack:
            part = stack.pop()
            if part.type in {"command_substitution", "process_substitution"}:
                self._sequence([child for child in part.children if child.type != "file_redirect"], folders, feed)
                self._redirects([child for child in part.children if child.type == "file_redirect"], Spot(part, here))
                continue
            signs = {child.type for child in part.children} if part.type == "expansion" else set[str]()
            if part.type in {"arithmetic_expansion", "subscript", "test_command"} or ":" in signs:
                self.arithmetic(part, here)
            if not signs.isdisjoint({":=", "="}):
                self.set(text_of(part.children[1]), (UNKNOWN,), Spot(part, here))
            if part.type in {"compound_statement", "c_style_for_statement"}:
                self.arithmetic(part, here)
            stack += [child for child in part.children if child.type != "do_group"]
        return Ends(folders, folders)

    # -- redirections ------------------------------------------------------------------------------------------------

    def _redirected(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        body = node.children[0]
        return (
            self._list(body, folders, feed, node) if body.type == "list" else self._applied(node, body, folders, feed)
        )

    def _applied(self, node: Node, body: Node, folders: Folders, feed: Feed) -> Ends:
        """Judge what redirections apply to, and what stands behind the start of a here-document on its line."""
        redirects = [child for child in node.children if child.type.endswith("redirect")]
        inner = [child for row in redirects if row.type == "heredoc_redirect" for child in row.children]
        redirects += [child for child in inner if child.type.endswith("redirect")]
        behind = [child for child in inner if child.type in self.STATEMENTS]
        words = [child for child in inner if child.is_named and child not in behind and child.type not in _PARTS]
        for here in folders:
            for binding in bindings(redirects, self.values):
                self._redirects(redirects, Spot(node, here, feed, binding))
        fed, ends = self.fed(redirects, _only(folders), feed), Ends(folders, folders)
        if body.type == "command":
            ends = self._simple(body, folders, fed, words, redirects)
        elif body not in redirects:
            ends = self._statement(body, folders, fed)
        # A redirection that fails leaves the command out.
        ends = Ends(ends.done, _joined(folders, ends.failed))
        for child in behind:
            after = self._statement(child, ends.any, fed if text_of(body) == "cat" else [UNKNOWN])
            ends = Ends(_joined(ends.any, after.any), _joined(ends.any, after.any))
        return ends

    def _redirects(self, nodes: Sequence[Node], spot: Spot) -> None:
        """Judge the files that redirections write, and what stands in here-documents."""
        for node in nodes:
            if node.type != "file_redirect":
                self.mentions(spot, os.path.basename(text_of(spot.node).split()[0]), [Word(text_of(node))])
            quoted = is_quoted(node)
            for child in node.children:
                if child.type not in self.STATEMENTS and not (quoted and child.type == "heredoc_body"):
                    self._inner(child, (spot.here,), spot.feed)
            sign = next((child.type for child in node.children if "<" in child.type or ">" in child.type), "<")
            if ">" not in sign or sign in {">&-", "<&-"}:
                continue
            for word in self.fields(node.children[-1], spot):
                if sign != ">&" or not (word.text.rstrip("-").isdigit() or word.text == "-"):
                    self.files(spot, f"> {text_of(node.children[-1])}", [word], follow=True)
                    self.wrote |= not word.text.startswith("/dev/")

    # -- commands ----------------------------------------------------------------------------------------------------

    def _command(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        return self._simple(node, folders, feed, [], [])

    def _simple(
        self, node: Node, folders: Folders, feed: Feed, more: Sequence[Node], redirects: Sequence[Node]
    ) -> Ends:
        """Judge one simple command, wherever it may run and whatever its variables may hold."""
        own = [child for child in node.children if child.type.endswith("_redirect")]
        assigned = [child for child in node.children if child.type == "variable_assignment"]
        nodes = [child for child in node.children if child.is_named and child not in own and child not in assigned]
        nodes += more
        for child in (*assigned, *nodes):
            self._inner(child, folders, feed)
        for child in assigned:
            self.assign(child, _only(folders))
        feed = self.fed(own, _only(folders), feed)
        done: Folders = ()
        failed: Folders = ()
        for binding in bindings([*nodes, *own], self.values):
            for here in folders:
                self.count("commands", node)
                spot = Spot(node, here, feed, binding)
                self._redirects(own, spot)
                run = Run(self.expander.words(nodes, binding, here))
                self.program(spot, run)
                ends = self._moved(spot, run, plainly=not (own or assigned or redirects))
                done, failed = _joined(done, ends.done), _joined(failed, ends.failed)
                self.calm &= run.name in _CALM
        return Ends(done, failed)

    def _moved(self, spot: Spot, run: Run, *, plainly: bool) -> Ends:
        """Return where what comes after a command runs."""
        stay: Folders = (spot.here,)
        name, rest = run.name, run.words[1:]
        if name in self.functions:
            self.give(rest)
            return Ends(tuple(self.seen), tuple(self.seen))
        if name == "exit" and plainly and (not rest or (len(rest) == 1 and rest[0].text.isdigit())):
            return Ends((), ())
        if name == "mkdir" and spot.here is not None:
            self.folders_made |= {
                os.path.normpath(os.path.join(spot.here, word.text)) for word in plain(rest) if word.literal
            }
        if name not in {"cd", "pushd", "popd"}:
            return Ends(stay, stay)
        named = [word for word in plain(rest) if word.text[:1] != "+"]
        if name == "popd" or (not named and (name == "pushd" or rest)) or named[:1] == [Word("-")]:
            return Ends(tuple(self.seen), stay)
        target = named[0] if named else Word(self.env.get("HOME", "~"))
        if not target.literal or spot.here is None or "CDPATH" in self.values:
            return Ends((target.text if target.literal and os.path.isabs(target.text) else None,), stay)
        path = os.path.normpath(os.path.join(spot.here, target.text))
        sure = self.calm and (path in self.folders_made or os.path.isdir(path))
        return Ends((path,), () if sure else stay)

    STATEMENTS: ClassVar[dict[str, Callable[[Any, Node, Folders, Feed], Ends]]] = {
        "command": _command, "list": _list, "pipeline": _pipeline, "compound_statement": _group,
        "subshell": _subshell, "negated_command": _negated, "if_statement": _if, "for_statement": _loop,
        "c_style_for_statement": _loop, "while_statement": _loop, "case_statement": _if,
        "function_definition": _function, "redirected_statement": _redirected,
        "variable_assignment": _assignments, "variable_assignments": _assignments,
        "declaration_command": _declaration, "unset_command": _declaration, "test_command": _inner,
    }  # fmt: skip
    """Kind of a statement to what judges it; another kind is refused."""


def _joined(*rows: Folders) -> Folders:
    """Return folders of several ends, each once."""
    return tuple(dict.fromkeys(folder for row in rows for folder in row))


def _only(folders: Folders) -> str | None:
    return folders[0] if len(folders) == 1 else None
