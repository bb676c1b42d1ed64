"""Segments at work: calls of the team, the relay to a device, clocks and faults.

Imports: codegen.kernels, codegen.native, codegen.program, codegen.rules, codegen.segment, codegen.store,
codegen.target.
"""
