"""What is stored: records, the contract of a store, SQLite, and the events on their way into the journal."""

__all__: list[str] = []
