"""The disk cache, and schemas of what it may hold.

Imports: codegen.environment.
"""
