"""From a graph and its costs to a plan: strategies, memory, the simulator, devices as numbers. Pure: no native code.

Imports: codegen.program, codegen.rules, codegen.store, cost, errors, ir, partition, scipy.
"""
