"""Threads that call one function with weights of their own."""

import threading

import jax.numpy as jnp
import numpy as np

import xcoexec

from .support import array


def test_a_call_never_gets_the_result_of_another_threads_weights() -> None:
    """The first thread is held up where it has just found its weights; meanwhile the second one's are packed."""
    a, b, x = array(40, 24, seed=1), array(40, 24, seed=2), array(3, 40)
    f = xcoexec.jit(lambda w, x: jnp.tanh(x @ w), strategy="host", strict=True)
    f(a, x)
    held, go_on = threading.Event(), threading.Event()

    class Held(list):
        """Weights whose comparison waits, once."""

        def __iter__(self):
            if threading.current_thread().name == "held" and not held.is_set():
                held.set()
                go_on.wait(120)
            return super().__iter__()

    (entry,) = f._entries.values()
    kept = entry._current
    entry._current = kept._replace(weights=Held(kept.weights))
    f._looks()
    f._forgets_stretch()
    f._last = None
    out = []
    t = threading.Thread(target=lambda: out.append(np.asarray(f(a, x))), name="held")
    t.start()
    assert held.wait(120)
    f(b, x)
    go_on.set()
    t.join()
    assert np.allclose(out[0], np.tanh(np.asarray(x) @ np.asarray(a)), atol=1e-5)
