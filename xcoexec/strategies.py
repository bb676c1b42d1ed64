"""The strategies by name; `strategy=functools.partial(strategies.edgenn, intra=False)` takes one with other
parameters.
"""

from .planning.strategies import NAMES as NAMES
from .planning.strategies import STRATEGIES as STRATEGIES
from .planning.strategies import Strategy as Strategy
from .planning.strategies import capacity as capacity
from .planning.strategies import codl as codl
from .planning.strategies import device as device
from .planning.strategies import edgenn as edgenn
from .planning.strategies import host as host
from .planning.strategies import layer_switch as layer_switch
