"""Programs around the library: bench, suite, demo, pictures and pages.

Imports: anything.
"""
