"""What git is asked and told: changed paths, commits, and whose they are."""

__all__: list[str] = []
