"""Sealed gates: a command judges an export of the tree, not the tree that the agent edits. See docs/design/006."""
