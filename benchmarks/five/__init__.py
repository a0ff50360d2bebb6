"""Five agents in one checkout: the processes, the course that they run, and what came of it."""
