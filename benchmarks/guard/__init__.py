"""Measurements of the guard of shell commands, and the lists that it judges."""
