"""The program that runs in an entry's process: it isolates the process, then runs the entry.

The evaluator copies this folder beside the entry's and starts `python -m inside FOLDER`. The kit
itself is out of the entry's reach. So these modules import each other by relative imports, and
besides only the standard library and NumPy.
"""
