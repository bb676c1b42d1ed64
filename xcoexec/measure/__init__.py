"""What layers, transfers and both halves together take on this machine, kept on disk.

Imports: codegen.kernels, codegen.native, codegen.program, codegen.rules, codegen.runtime, codegen.segment,
codegen.store, compat, cost, devices, errors, frontend, ir, lowering, partition, jax.
"""
