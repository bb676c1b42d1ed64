"""What users call: jit, bind, compile, and the signature of a call.

Imports: compat, config, devices, errors, frontend, guard, ir, lowering, measure, planning, session, jax.
"""
