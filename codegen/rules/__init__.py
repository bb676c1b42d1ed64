"""What primitives are, as data and pure functions.

Imports: codegen.program.
"""
