"""Native kernels of the host half: a straight-line program in, machine code and a step table out.

Imports: nothing.
"""
