"""Commands of the kit, run as `python -m tools.NAME`, and what they share."""
