"""The program that runs in an entry's process: it isolates the process, then runs the entry.

The evaluator copies this folder beside the entry's folder and starts `python -m inside FOLDER`. The
process cannot reach the rest of the kit. Therefore these modules import only each other, by
relative imports, the standard library and NumPy.
"""
