"""One sealed gate of a run, with everything that it goes by, as it was when the run began; and how that is frozen."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from interlock.envelope.protocol import GateSpec
from interlock.gates.heldout import load_held_out
from interlock.gates.sealed.environment import (
    Environment,
    accept_places,
    find_environment,
    held,
    installed,
    known_places,
    made_by_setup,
    question,
)
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.sandbox import is_below
from interlock.gates.sealed.settings import Seal
from interlock.gates.sealed.store import Base, Entry, Store, place_of

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Frozen:
    """What the sealed gates of a run go by; JSON values only.

    Args:
        base: The tree of the base.
        top: The checkout that it is of, absolute.
        root: The project's root relative to it, or empty.
        environments: Gate id to what its commands find beside the export, as `Environment` has it.
        records: Each place to the record of it that was accepted.
        heldout: Gate id to the digest of its held-out checks.
    """

    base: str
    top: str = ""
    root: str = ""
    environments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    records: Mapping[str, str] = field(default_factory=dict[str, str])
    heldout: Mapping[str, str] = field(default_factory=dict[str, str])


def freeze(
    root: Path,
    gates: Sequence[tuple[GateSpec, Seal]],
    *,
    base: str = "",
    path: str = "",
    trust: bool = False,
    note: Note = lambda _line: None,
) -> Frozen:
    """Freeze what sealed gates need.

    Args:
        root: The project's root.
        gates: The gates, each with how it is sealed.
        base: The tree of the base; by default the checkout as it is now.
        path: PATH of the commands; by default that of this process.
        trust: Accept dependencies as they are now.
        note: Takes what is done, since it may take a while.

    Raises:
        CollectorError: The tree cannot be stored, dependencies differ (`SEAL201`), or held-out checks cannot be used.
    """
    top, relative = place_of(root)
    store = Store(top)
    note("storing the tree")
    # Also where the base is a commit: the snapshot's index is what `ignored` and later snapshots go by.
    present = store.snapshot(relative, [name for _, seal in gates for name in seal.keep])
    tree = base or present
    ignored, tracked = store.ignored(), store.files(tree)
    environments: dict[str, Mapping[str, Any]] = {}
    records: dict[str, str] = {}
    heldout: dict[str, str] = {}
    for gate, seal in gates:
        made = made_by_setup(store, tree, relative, seal, path, note)
        commands = [gate.command, *seal.setup, *seal.prepare]
        # A call of a held-out table needs an interpreter that the gate's own command may not name.
        commands += [("python3",), ("node",)] if seal.heldout else []
        found = find_environment(top, relative, seal, commands, ignored, tracked, made, path)
        found = _known(store, _name(gate, seal), found, tree, trust=trust)
        for place in found.recorded:
            records[place] = held(store, place, found.hidden, trust=trust, note=note)
        files = {place: store.files(records[place]) for place in found.recorded}
        environments[gate.id] = asdict(installed(found, files))
        if seal.heldout:
            place = os.path.realpath(Path(os.path.realpath(root)) / seal.heldout)
            heldout[gate.id] = load_held_out(Path(place), checkout=top).digest
            # Held-out checks get a record as dependencies do, so that an agent who finds them cannot change them
            # unseen.
            held(store, place, trust=trust)
    return Frozen(tree, os.fspath(top), relative, environments, records, heldout)


def _name(gate: GateSpec, seal: Seal) -> str:
    """Return the name under which the places of a gate are accepted: another configuration is accepted anew."""
    return repr((gate.id, gate.command, seal))


def _known(store: Store, name: str, found: Environment, tree: str, *, trust: bool) -> Environment:
    """Return what commands find, where there is nothing new since the base could last be judged.

    A new place of dependencies is a question to a person. Of ignored files beside modules those are seen that the rules
    of the base ignore and that were there.
    """
    known = known_places(store, name)
    if trust:
        accept_places(store, name, found.recorded)
    # The store's own folder is accepted always: what `setup` made lies there, under another name for each state of
    # the base.
    accepted = found.recorded if known is None or trust else (*known, os.fspath(store.folder))
    inside = {path: os.path.relpath(path, store.top) for path in found.generated}
    ruled = store.ignored_by(tree, inside.values())
    generated = [path for path in inside if inside[path] in ruled and path in accepted]
    kept = {target: place for target, place in found.kept.items() if target in generated or target not in inside}
    found = replace(found, kept=kept, generated=generated)
    for place in found.recorded:
        if not is_below(place, accepted):
            raise question(place)
    return found


@dataclass(frozen=True)
class GateCase:
    """A sealed gate with everything that it goes by; `root` is without symbolic links."""

    gate: GateSpec
    seal: Seal
    frozen: Frozen
    root: Path

    @cached_property
    def store(self) -> Store:
        """The store that holds the trees."""
        return Store(Path(self.frozen.top))

    @cached_property
    def environment(self) -> Environment:
        """What its commands find beside the export."""
        return Environment(**self.frozen.environments[self.gate.id])

    @cached_property
    def base(self) -> Base:
        """The tree of the base."""
        return Base(self.store, self.frozen.base, self.frozen.root)

    @cached_property
    def files(self) -> dict[str, Entry]:
        """The files of the base below the project's root, relative to it."""
        return self.base.below(self.base.files)

    @property
    def cwd(self) -> str:
        """Where its commands run, absolute, as seen in a sandbox."""
        return os.path.normpath(f"{self.root}/{self.seal.cwd}")

    @property
    def programs_folder(self) -> str:
        """The folder of the program in a kept environment, whose other programs are found first; else nothing."""
        program = self.gate.command[0]
        folder = os.path.dirname(os.path.normpath(os.path.join(self.cwd, program))) if "/" in program else ""
        return folder if is_below(folder, (*self.environment.kept, *self.environment.links)) else ""

    def content(self, path: str) -> bytes | None:
        """Return the content of a file of the base, by its path relative to the root; None where it has none."""
        return self.base.content(self.base.inside(path))

    def accept_places(self) -> None:
        """Accept where dependencies lie now, since the base could be judged with them."""
        accept_places(self.store, _name(self.gate, self.seal), self.environment.recorded)

    def check_dependencies(self) -> None:
        """Refuse dependencies that are not as they were accepted when the run began: `SEAL201`."""
        for place in self.environment.recorded:
            if held(self.store, place, self.environment.hidden) != self.frozen.records[place]:
                raise SealError("SEAL201", f"{place} is not what it was when the run began.", "Start a new run.")

    @cached_property
    def digest(self) -> str:
        """Over the commands and their settings, the environment and its records: what a verdict is bound to."""
        # Where held-out checks lie says nothing about the tests of the base, whose result is kept under this digest.
        settings = {name: value for name, value in asdict(self.seal).items() if name != "heldout"}
        variables = {name: os.environ.get(name, "") for name in self.seal.pass_env}
        parts = [
            self.gate.command,
            settings,
            variables,
            self.frozen.environments[self.gate.id],
            dict(self.frozen.records),
        ]
        return f"sha256:{sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()}"
