"""The modules behind quickstart.py, which imports them if its Python is new enough.

No package is installed yet when the quickstart starts. Its modules import only the standard
library, and modules of the kit that need nothing else.
"""
