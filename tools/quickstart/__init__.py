"""What quickstart.py does, once a Python that is new enough runs it.

No package is installed yet when the quickstart starts. Its modules import only the standard
library, and modules of the kit that need nothing else.
"""
