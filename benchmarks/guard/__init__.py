"""Measurements of the guard of shell commands, and the two lists that they judge."""
