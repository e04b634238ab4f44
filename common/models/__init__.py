"""Models used by more than one task, one file each."""
