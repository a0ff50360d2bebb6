"""Messages between agents, and negotiations about leases."""

__all__: list[str] = []
