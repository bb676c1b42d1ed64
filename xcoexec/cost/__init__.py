"""What layers cost by rule and by equation: FLOP and bytes, EdgeNN's equations, the predictor.

Imports: codegen.program, codegen.rules, ir, scipy.
"""
