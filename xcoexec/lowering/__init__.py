"""From a plan to one JAX function and one executable: host calls, their start and their merge.

Imports: codegen.program, codegen.rules, codegen.runtime, codegen.segment, compat, devices, errors, frontend, ir,
partition, jax.
"""
