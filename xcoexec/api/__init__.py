"""What users call: jit, bind, compile, and the signature of a call.

Imports: compat, devices, errors, frontend, guard, ir, lowering, measure, planning, session, jax.
"""
