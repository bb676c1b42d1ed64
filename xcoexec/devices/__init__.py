"""The kinds of devices, one file each, behind one record and one registry.

Imports: codegen.native, codegen.runtime, codegen.target, config, ir, jax.
"""
