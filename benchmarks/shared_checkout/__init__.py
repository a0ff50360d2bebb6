"""Measures what happens in a shared checkout to the work that one agent holds and others' commands reach."""
