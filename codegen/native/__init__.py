"""Precompiled native code that kernels and calls share: team, relay, XLA's call frame, PTX.

Imports: codegen.store, codegen.target, llvmlite.
"""
