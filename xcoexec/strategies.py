"""The strategies by name; `strategy=functools.partial(strategies.edgenn, intra=False)` takes one with other
parameters.
"""

from .planning.strategies import NAMES as NAMES
from .planning.strategies import STRATEGIES as STRATEGIES
from .planning.strategies import Strategy as Strategy
from .planning.strategies.algorithm1 import algorithm1 as algorithm1
from .planning.strategies.capacity import capacity as capacity
from .planning.strategies.codl import codl as codl
from .planning.strategies.edgenn import edgenn as edgenn
from .planning.strategies.layer_switch import layer_switch as layer_switch
from .planning.strategies.mu_layer import mu_layer as mu_layer
from .planning.strategies.single import device as device
from .planning.strategies.single import host as host
