"""From a function and its arguments to a graph of layers: trace, fold, cut into layers.

Imports: codegen.program, codegen.rules, codegen.runtime, compat, cost, errors, ir, partition, jax.
"""
