"""The kinds of devices, one file each, behind one record and one registry.

Imports: codegen.native, codegen.program, codegen.runtime, codegen.target, compat, config, ir, jax.
"""
