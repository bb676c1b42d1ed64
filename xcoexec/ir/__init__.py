"""The records that pass between the rooms: layers, placements, plans and costs, their text, and the geometry of ranges.

Imports: codegen.program, codegen.rules, codegen.store, errors.
"""
