"""What the runs of tasks and of tickets have in common: their folders, locks and index, and the journal's names."""
