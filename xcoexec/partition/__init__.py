"""The partitioner: a range of an output dimension becomes the operations that compute it.

Imports: codegen.program, codegen.rules, errors, ir.
"""
