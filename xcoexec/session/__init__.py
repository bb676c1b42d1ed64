"""A function at one set of shapes: planned, compared, watched, planned again, reported.

Imports: codegen.native, codegen.program, codegen.runtime, codegen.segment, compat, config, cost, devices, errors,
frontend, guard, ir, lowering, measure, partition, planning, jax.
"""
