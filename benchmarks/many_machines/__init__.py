"""Many machines in the hands of faults: workers that are killed, frozen and cut off, and what became of their runs."""
