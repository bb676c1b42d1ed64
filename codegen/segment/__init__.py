"""Neighbouring host layers as one call: steps as data, their storage, the choice of algorithms.

Imports: codegen.native, codegen.program, codegen.rules, codegen.store, codegen.target.
"""
