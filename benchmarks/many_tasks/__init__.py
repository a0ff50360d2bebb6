"""Many tasks at once, measured: from a clean project to landed, killed anywhere, best of three, acts of agents."""
