"""The five papers' tables and figures, rerun: what they print, rows, records of runs, the page of them.

Imports: anything.
"""
