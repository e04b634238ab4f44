"""What quickstart.py does, once a Python that is new enough runs it.

The quickstart uses only the standard library, and imports from the kit only what does the same:
nothing is installed yet.
"""
