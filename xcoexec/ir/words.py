"""The words of plans and costs: halves, kinds of placements, dimensions, engines, and ways of arrays."""

from __future__ import annotations

HOST, DEVICE, SPLIT = "host", "device", "split"
HALVES = (DEVICE, HOST)  # what computes: a layer runs on one of them or on both
PLACES = (DEVICE, HOST, SPLIT)  # where a placement puts a layer
AXES = ("channel", "rows", "items")  # of a layer's result, along which it is split
SUMS = "sums"  # a product split along what it sums over: each half adds up a part of each sum
DIMS = (*AXES, SUMS)  # along which a layer is split
ENGINES = ("xco", "jit", "local")
WAYS = ("", "mapped", "copy")  # of an array between the halves; "" where it does not cross
PLAN_VERSION = 8  # of the JSON text; older ones that are read as well: `plan_json.BEFORE`
