"""Tries a test gate on the repositories of other people: honest work, none, and cheats."""
