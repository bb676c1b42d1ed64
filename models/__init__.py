"""The model zoo: name -> Flax module and example input. Weights are random unless you train them or load them."""

from . import llama as llama
from . import moe as moe
from .generate import Generator as Generator
from .weights import convert as convert
from .weights import load as load
from .zoo import NAMES as NAMES
from .zoo import Entry as Entry
from .zoo import get as get
from .zoo import random_variables as random_variables
