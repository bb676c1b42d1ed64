"""The networks that benches take beside the package's models are the published ones."""

import jax
import pytest

from benchmarks.networks import NETWORKS, get


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_as_many_parameters_as_published(name: str) -> None:
    entry = get(name)
    shapes = jax.eval_shape(entry.module.init, jax.random.key(0), entry.example())
    assert sum(x.size for x in jax.tree.leaves(shapes["params"])) == entry.parameters


def test_other_names_are_the_packages_models() -> None:
    assert get("lenet").parameters == 61_706
    with pytest.raises(ValueError, match=r"got 'nothing'; valid are fcnn"):
        get("nothing")
