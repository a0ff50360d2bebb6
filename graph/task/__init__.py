"""Tasks: the pure status machine, its LangGraph form with a checkpoint on disk, and the runs that are driven."""
