"""What git is asked and made to do: changed paths, commits, and whose they are."""

__all__: list[str] = []
