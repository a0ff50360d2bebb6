"""A sealed gate judges an export of the base with only the files in scope laid over it."""
