"""LLVM text of kernels, one family a file.

Imports: codegen.native, codegen.program, codegen.rules, codegen.segment, codegen.store, codegen.target, llvmlite.
"""
