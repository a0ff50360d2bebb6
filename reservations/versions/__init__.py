"""Held work survives: each hook looks at all held files, and what others did to one is undone."""
