"""The walk over the tree of a command line: in which folders its commands may run.

Nothing is run, so that what may happen counts. Where a command runs is followed as far as `cd` and what joins commands
say it: `a && b` runs `b` only after `a`. A line is walked again until it gives no variable a new value.
"""

import os.path
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from interlock.reservations.guard import listings
from interlock.reservations.guard.commands import Commands
from interlock.reservations.guard.effects import Checkouts
from interlock.reservations.guard.judge import Feed, Spot
from interlock.reservations.guard.prefilter import JUDGED, WRAPPERS, names
from interlock.reservations.guard.programs import Run, plain
from interlock.reservations.guard.syntax import Node, UnreadableError, is_quoted, parse, text_of
from interlock.reservations.guard.words import UNKNOWN, Word, bindings

MAX_FOLDERS: Final = 16
"""With more folders than these, the folder is not known."""
MAX_ROUNDS: Final = 5
_HARMLESS: Final = names("cd pushd popd echo printf pwd ls cat mkdir test [ true : set export source . which")
"""Programs after which a folder that was there still is."""
_PARTS: Final = names("heredoc_start heredoc_body heredoc_end file_redirect herestring_redirect comment")
_WORDS: Final = names(
    "word number string raw_string ansi_c_string concatenation simple_expansion expansion command_substitution "
    "process_substitution brace_expression arithmetic_expansion extglob_pattern"
)
_NUMBERS: Final = names("arithmetic_expansion subscript test_command c_style_for_statement")
SPECIAL: Final = JUDGED | WRAPPERS
"""Names that a function may have only where it runs the program of that name, which is judged."""
_SAME: Final = r"\{\s*(?:command\s+)?command\s+%s\b[^;&|<>`\n]*;?\s*\}"

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
    """Judges one command line."""

    def __init__(self, checkouts: Checkouts, env: Mapping[str, str], cwd: str) -> None:
        super().__init__(checkouts, env, cwd)
        self.seen: dict[str | None, None] = {}
        self.folders_made: set[str] = set()

    def judge(self, command: str) -> None:
        """Judge the line."""
        said = " ".join(command.split()[:2])
        try:
            root = parse(command)
            for _ in range(MAX_ROUNDS):
                before = self._state()
                self.made, self.fetched, self.undisturbed, self.later = "", False, True, []
                self._parts(root, (self.cwd,), None)
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
        counted = (*self.values.values(), self.functions, self.seen, self.links, self.run.intersection(self.scripts))
        return len(self.values), sum(map(len, counted))

    def text(self, spot: Spot, text: str, feed: Feed = None) -> None:
        """Judge a command line inside the command line."""
        self.count("texts inside texts", spot.node)
        self.seen |= dict.fromkeys(self._parts(parse(text), (spot.here,), feed).any)

    def _visit(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        if len(folders) > MAX_FOLDERS:
            folders = (None,)
        self.seen |= dict.fromkeys(folders)
        return self.ROWS.get(node.type, Walk._parts)(self, node, folders, feed) if folders else Ends((), ())

    def _parts(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        """Judge the parts of a node in order; an `else` or a `case` may follow each before it."""
        signs = {child.type for child in node.children}
        if node.type in _NUMBERS or "((" in signs or (node.type == "expansion" and ":" in signs):
            self.arithmetic(node, _only(folders))
        if node.type == "expansion" and not signs.isdisjoint({":=", "="}):
            self.set(Spot(node, _only(folders)), text_of(node.children[1]), UNKNOWN)
        ends, now, out = Ends(folders, ()), folders, folders
        for child in node.children:
            if child.is_named and child.type != "comment":
                begin = out if child.type in {"elif_clause", "else_clause", "case_item"} else now
                ends, after = self._visit(child, begin, feed), child.next_sibling
                ends = Ends(begin, ()) if after is not None and after.type == "&" else ends
                now, out = ends.any, _joined(out, ends.any)
        return ends if node.type in {"program", "compound_statement", "subshell"} else Ends(out, out)

    def _list(self, node: Node, folders: Folders, feed: Feed, outer: Node | None = None) -> Ends:
        """Judge `a && b` or `a || b`; the grammar puts the redirections of `b`, in `outer`, around both."""
        left, operator, right = [child for child in node.children if child.type != "comment"]
        first = self._visit(left, folders, feed)
        begin = first.done if operator.type == "&&" else first.failed
        second = self._visit(right, begin, feed) if outer is None else self._applied(outer, right, begin, feed)
        if operator.type == "&&":
            return Ends(second.done, _joined(first.failed, second.failed))
        return Ends(_joined(first.done, second.done), second.failed)

    def _pipeline(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        stages = [child for child in node.children if child.is_named and child.type != "comment"]
        for at, stage in enumerate(stages):
            # A loop may take its time, and a holder may write meanwhile: there, what git lists may be any file.
            self.asks = not stage.type.startswith("while")
            fed = feed if at == 0 else self.written(stages[:at], {}, _only(folders))
            self.asks = True
            self._visit(stage, folders, fed)
        return Ends(folders, folders)

    def _apart(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        self._parts(node, folders, feed)
        return Ends(folders, folders)

    def _negated(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        done, failed = self._visit(node.children[1], folders, feed)
        return Ends(failed, done)

    def _loop(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        """Judge a loop until the folders in which a round may begin are all there."""
        if node.type == "for_statement":
            name, *given = [child for child in node.children if child.is_named and child.type != "do_group"]
            spot = Spot(node, _only(folders))
            listed = [child.type for child in node.children[:3:2]] == ["for", "in"]
            for word in self.each_field(given, spot.here) if listed else [UNKNOWN]:
                self.set(spot, text_of(name), word)
        begin: Folders = ()
        while begin != folders:
            begin, folders = folders, _joined(folders, self._parts(node, folders, feed).any)
        return Ends(folders, folders)

    def _function(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        """Note a function: what it does is judged with what is run later, in every folder of the line."""
        name, body, *redirects = [child for child in node.children if child.is_named]
        for redirect in redirects:
            self._visit(redirect, folders, feed)
        if text_of(name) in SPECIAL and re.fullmatch(_SAME % re.escape(text_of(name)), text_of(body)) is None:
            self.plainly(Spot(node, _only(folders), feed), text_of(name), "a function with a name of its own")
        self.functions.add(text_of(name))
        self.later.append((Spot(node, _only(folders), feed), text_of(body)))
        return Ends(folders, ())

    def _assignment(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        self._parts(node, folders, feed)
        self.assign(node, _only(folders))
        return Ends(folders, folders)

    def _declaration(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        for child in node.children:
            self._parts(child, folders, feed)
        self.declare(node, _only(folders))
        return Ends(folders, folders)

    def _redirected(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        body = node.children[0]
        is_list = body.type == "list"
        return self._list(body, folders, feed, node) if is_list else self._applied(node, body, folders, feed)

    def _applied(self, node: Node, body: Node, folders: Folders, feed: Feed) -> Ends:
        """Judge redirections, what they apply to, and what follows the start of a here-document."""
        redirects = [child for child in node.children if child.type.endswith("redirect")]
        inner = [child for row in redirects if row.type == "heredoc_redirect" for child in row.children]
        redirects += [child for child in inner if child.type.endswith("redirect")]
        for child in redirects:
            self._redirect(child, folders, feed)
        fed, ends = self.fed(redirects, _only(folders), feed), Ends(folders, folders)
        if body.type == "command":
            words = [child for child in inner if child.type in _WORDS]
            ends = self._simple(body, folders, fed, words, redirects)
        elif body not in redirects:
            ends = self._visit(body, folders, fed)
        for part in (body, *body.children):
            if part.type == "command":
                self.keep_output(part, redirects, _only(folders), fed)
        # A redirection that fails leaves the command out.
        ends = Ends(ends.done, _joined(folders, ends.failed))
        for child in inner:
            if child.is_named and child.type not in _WORDS | _PARTS:
                is_piped = text_of(body) == "cat" and child.children[0].type == "|"
                after = self._visit(child, ends.any, fed if is_piped else [UNKNOWN])
                ends = Ends(_joined(ends.any, after.any), _joined(ends.any, after.any))
        return ends

    def _redirect(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        quoted = is_quoted(node)
        for child in node.children:
            if child.type in _WORDS or (child.type == "heredoc_body" and not quoted):
                self._visit(child, folders, feed)
        sign = next((child.type for child in node.children if "<" in child.type or ">" in child.type), "<")
        for here in folders:
            for binding in bindings([node], self.values):
                spot = Spot(node, here, feed, binding)
                if node.type != "file_redirect" and node.parent is not None:
                    self.mentions(spot, os.path.basename(text_of(node.parent).split()[0]), [Word(text_of(node))])
                for word in self.fields(node.children[-1], spot) if ">" in sign and sign not in {">&-", "<&-"} else ():
                    if sign != ">&" or not (word.text.rstrip("-").isdigit() or word.text == "-"):
                        self.files(spot, f"> {text_of(node.children[-1])}", [word], follow=True)
                        self.undisturbed &= word.text.startswith("/dev/")
        return Ends(folders, folders)

    def _command(self, node: Node, folders: Folders, feed: Feed) -> Ends:
        return self._simple(node, folders, feed, [], [])

    def _simple(
        self, node: Node, folders: Folders, feed: Feed, more: Sequence[Node], redirects: Sequence[Node]
    ) -> Ends:
        for child in (*node.children, *more):
            if child.is_named:
                self._visit(child, folders, feed)
        own = [child for child in node.children if child.type.endswith("_redirect")]
        assigned = [child for child in node.children if child.type == "variable_assignment"]
        nodes = [child for child in node.children if child.is_named and child not in own and child not in assigned]
        feed = self.fed(own, _only(folders), feed)
        self.keep_output(node, own, _only(folders), feed)
        done: Folders = ()
        failed: Folders = ()
        for binding in bindings([*nodes, *more], self.values):
            for here in folders:
                self.count("commands", node)
                spot = Spot(node, here, feed, binding)
                words = self.expander.words([*nodes, *more], binding, here)
                run = Run(words)
                self.program(spot, run)
                is_called = run.name in self.functions and words[0].text != "command"
                ends = self._moved(spot, run, plainly=not (own or assigned or redirects), is_called=is_called)
                done, failed = _joined(done, ends.done), _joined(failed, ends.failed)
                self.undisturbed &= run.name in _HARMLESS or listings.only_lists(run.words)
        return Ends(done, failed)

    def _moved(self, spot: Spot, run: Run, *, plainly: bool, is_called: bool) -> Ends:
        stay: Folders = (spot.here,)
        name, rest = run.name, run.words[1:]
        if is_called:
            self.give(spot, rest)
            return Ends(tuple(self.seen), tuple(self.seen))
        if name == "exit" and plainly and (not rest or (len(rest) == 1 and rest[0].text.isdigit())):
            return Ends((), ())
        if name == "mkdir" and spot.here is not None:
            made = (os.path.join(spot.here, word.text) for word in plain(rest) if word.literal)
            self.folders_made.update(map(os.path.normpath, made))
        if name not in {"cd", "pushd", "popd"}:
            return Ends(stay, stay)
        named = [word for word in plain(rest) if word.text[:1] != "+"]
        if name == "popd" or (not named and (name == "pushd" or rest)) or named[:1] == [Word("-")]:
            return Ends(tuple(self.seen), stay)
        target = named[0] if named else Word(self.env.get("HOME", "~"))
        if not target.literal or spot.here is None or "CDPATH" in self.values:
            return Ends((target.text if target.literal and os.path.isabs(target.text) else None,), stay)
        path = os.path.normpath(os.path.join(spot.here, target.text))
        if spot.here.endswith(f"/{target.text}") and not os.path.isdir(path):
            return Ends(stay, stay)  # a second `cd` into the same folder fails
        sure = self.undisturbed and (path in self.folders_made or os.path.isdir(path))
        return Ends((path,), () if sure else stay)

    ROWS: ClassVar[dict[str, Callable[[Any, Node, Folders, Feed], Ends]]] = {
        "command": _command, "list": _list, "pipeline": _pipeline, "subshell": _apart, "command_substitution": _apart,
        "process_substitution": _apart, "negated_command": _negated, "for_statement": _loop,
        "c_style_for_statement": _loop, "while_statement": _loop, "function_definition": _function,
        "redirected_statement": _redirected, "file_redirect": _redirect, "heredoc_redirect": _redirect,
        "herestring_redirect": _redirect, "variable_assignment": _assignment, "declaration_command": _declaration,
        "unset_command": _declaration,
    }  # fmt: skip
    """Kind of a node to what judges it; of the others, the parts are judged."""


def _joined(*rows: Folders) -> Folders:
    return tuple(dict.fromkeys(folder for row in rows for folder in row))


def _only(folders: Folders) -> str | None:
    return folders[0] if len(folders) == 1 else None
