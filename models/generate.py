"""Text token by token: a prompt goes through the decoder in pieces of one size, then each token is a step of its own.
The cache is given away at every step, so that it is updated in place.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from flax.typing import VariableDict

from .decoder import Cache, Decoder, Step

WHO = "models.Generator"


@dataclasses.dataclass
class Stats:
    """Of one stream: tokens of the prompt, those of them whose keys and values were in the cache, tokens that came
    out, seconds to the first of them and from the first to the last.
    """

    prompt: int
    reused: int
    tokens: int = 0
    first_seconds: float = 0.0
    more_seconds: float = 0.0

    @property
    def tokens_per_second(self) -> float:
        """Of those behind the first token; 0 before the second one."""
        return (self.tokens - 1) / self.more_seconds if self.more_seconds else 0.0

    def __repr__(self) -> str:
        prompt = f"{self.prompt} tokens of prompt ({self.reused} from the cache)"
        speed = f"the first after {1e3 * self.first_seconds:.4g} ms, {self.tokens_per_second:.4g} a second"
        return f"<{prompt}, {self.tokens} tokens out; {speed}>"


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How a token is chosen: the likeliest with `temperature` 0, else drawn with `key` from scores over `temperature`,
    of the `top_k` likeliest (0: all), and of those the fewest whose probabilities sum to `top_p` (Holtzman et al.,
    2020).
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    key: jax.Array | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"{WHO}: got temperature={self.temperature!r}; valid are finite numbers from 0 on.")
        if not isinstance(self.top_k, int) or self.top_k < 0:
            raise ValueError(f"{WHO}: got top_k={self.top_k!r}; valid are whole numbers from 0 on (0: all tokens).")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"{WHO}: got top_p={self.top_p!r}; valid are numbers above 0 and up to 1.")
        if self.temperature and self.key is None:
            raise ValueError(f"{WHO}: got temperature={self.temperature!r} and no key; valid is key=jax.random.key(0).")


class Generator:
    """Streams of tokens from a decoder and its variables.

    `length`: positions of the cache (default: the module's). `jit`: `jax.jit`, or `xcoexec.jit`, whose functions keep
    the variables packed. `chunk`: tokens of the prompt that one step takes. `dtype`: of the cache. `ahead`: the next
    step begins before its token is known here, which takes a step more where a stream ends early (None: where JAX's
    default backend is a device of its own, whose calls return before they are over). One stream at a time: a new one
    takes the cache from the one before. A prompt that begins as the tokens before it reuses their keys and values.
    Raises `ValueError` that says what is valid.
    """

    def __init__(
        self,
        module: Decoder,
        variables: VariableDict,
        length: int | None = None,
        jit: Callable[..., Callable[..., tuple[jax.Array, Cache]]] = jax.jit,
        chunk: int = 64,
        dtype: jnp.dtype = jnp.float32,
        ahead: bool | None = None,
    ):
        self.module, self.length = module, module.length if length is None else length
        for name, value in (("length", self.length), ("chunk", chunk)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{WHO}: got {name}={value!r}; valid are whole numbers above 0.")
        self._chunk, self._dtype = chunk, dtype
        self._ahead = jax.default_backend() != "cpu" if ahead is None else ahead
        self.stats: Stats | None = None  # of the newest stream
        self._stream: object = None
        self._cache: Cache | None = None
        self._held: list[int] = []  # tokens whose keys and values the cache has
        step, variables = jit(functools.partial(_step, module), donate_argnums=1), jax.device_put(variables)
        bind = getattr(step, "bind", None)
        self._step = functools.partial(step, variables) if bind is None else bind(variables)

    def __call__(
        self,
        prompt: Sequence[int],
        tokens: int,
        *,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        key: jax.Array | None = None,
        stop: Iterable[int] = (),
    ) -> Iterator[int]:
        """Up to `tokens` token ids, each as soon as it is known; the last one is of `stop`, if one comes.

        Greedy without a `temperature`; `top_k`, `top_p` and `key` as `Sampling` says. Raises `ValueError` where the
        prompt is empty, has a token outside of the vocabulary, or does not fit the cache with `tokens` more, and
        `RuntimeError` from a stream whose cache a newer one has taken.
        """
        sampling = Sampling(temperature, top_k, top_p, key)
        known = self._checked(prompt)
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
            raise ValueError(f"{WHO}: got tokens={tokens!r}; valid are whole numbers above 0.")
        if len(known) + tokens > self.length:
            raise ValueError(
                f"{WHO}: got a prompt of {len(known)} tokens and {tokens} more for a cache of {self.length} positions;"
                f" valid are {self.length} in all, or a larger length."
            )
        return self._tokens(known, tokens, sampling, frozenset(stop))

    def _checked(self, prompt: Sequence[int]) -> list[int]:
        """The prompt's token ids."""
        ids = np.asarray(prompt)
        if ids.ndim != 1 or not ids.size or not np.issubdtype(ids.dtype, np.integer):
            raise ValueError(
                f"{WHO}: got a prompt of type {type(prompt).__name__} and shape {ids.shape}; valid is a sequence of one"
                " or more token ids."
            )
        outside = ids[(ids < 0) | (ids >= self.module.vocabulary)]
        if outside.size:
            raise ValueError(f"{WHO}: got token {outside[0]}; valid are 0 to {self.module.vocabulary - 1}.")
        return [int(t) for t in ids]

    def _tokens(self, prompt: list[int], tokens: int, sampling: Sampling, stop: frozenset[int]) -> Iterator[int]:
        began = time.perf_counter()
        me = self._stream = object()
        reused = self._common(prompt)
        stats = self.stats = Stats(len(prompt), reused)
        pick = functools.partial(_pick, sampling)
        scores = self._prefill(prompt, reused)
        position = len(prompt)
        while True:
            chosen = pick(scores, position)
            begun = self._ahead and stats.tokens + 1 < tokens
            if begun:
                scores = self._step_of(chosen, position, 0)
            token = int(chosen.item())
            if begun:
                self._held.append(token)
            stats.tokens += 1
            now = time.perf_counter()
            if stats.tokens == 1:
                stats.first_seconds = now - began
            else:
                stats.more_seconds = now - began - stats.first_seconds
            yield token
            if stats.tokens == tokens or token in stop:
                return
            if self._stream is not me:
                raise RuntimeError(f"{WHO}: got a stream whose cache a newer one has taken; valid is one at a time.")
            if not begun:
                scores = self._next([token], position, 0)
            position += 1

    def _common(self, prompt: list[int]) -> int:
        """Tokens at the prompt's beginning whose keys and values are in the cache, at most all but the last one."""
        same = (a == b for a, b in zip(self._held, prompt, strict=False))
        return next((i for i, equal in enumerate(same) if not equal), min(len(self._held), len(prompt) - 1))

    def _prefill(self, prompt: list[int], position: int) -> jax.Array:
        """Scores behind the prompt, whose first `position` tokens are in the cache."""
        del self._held[position:]
        while True:
            part = prompt[position : position + self._chunk]
            position += len(part)
            if len(part) == 1:
                scores = self._next(part, position - 1, 0)
            else:
                # what fills the last piece is overwritten before a later token sees it
                filled = part + [0] * (self._chunk - len(part))
                scores = self._next(filled, position - len(part), len(part) - 1)
            if position == len(prompt):
                return scores

    def _next(self, tokens: list[int], position: int, last: int) -> jax.Array:
        """Scores f32 [vocabulary] behind token `last` of those that begin at `position`."""
        scores = self._step_of(jnp.asarray([tokens]), position, last)
        self._held += tokens[: last + 1]
        return scores

    def _step_of(self, tokens: jax.Array, position: int, last: int) -> jax.Array:
        """The same for tokens [1, n] which may not be known here yet, and are not noted as held."""
        cache, self._cache = self._cache, None
        if cache is None:
            # room for a whole piece that begins at the last position
            self._held, cache = [], self.module.empty_cache(1, self.length + self._chunk - 1, self._dtype)
        held, self._held = self._held, []  # nothing is held if the step fails: the cache is gone with it
        scores, self._cache = self._step(cache, tokens, jnp.int32(position), jnp.int32(last))
        self._held = held
        return scores


def _step(
    module: Decoder, variables: VariableDict, cache: Cache, tokens: jax.Array, position: jax.Array, last: jax.Array
) -> tuple[jax.Array, Cache]:
    """Scores [vocabulary] behind token `last` of one step, and the next cache."""
    scores, after = cast(tuple[jax.Array, Cache], module.apply(variables, Step(tokens, cache, position), last))
    return scores[0, 0], after


def _pick(sampling: Sampling, scores: jax.Array, position: int) -> jax.Array:
    """The token that follows, s32 [1, 1]."""
    if not sampling.temperature:
        return _greedy(scores)
    s = sampling
    return _drawn(scores, s.key, position, s.temperature, s.top_p, top_k=min(s.top_k, len(scores)) or len(scores))


@jax.jit
def _greedy(scores: jax.Array) -> jax.Array:
    return jnp.argmax(scores).reshape(1, 1)


@functools.partial(jax.jit, static_argnames="top_k")
def _drawn(
    scores: jax.Array, key: jax.Array, position: jax.Array, temperature: jax.Array, top_p: jax.Array, *, top_k: int
) -> jax.Array:
    """A token drawn by the position's own key, so that a stream that goes on elsewhere draws the same."""
    best, index = jax.lax.top_k(scores / temperature, top_k)
    chances = jax.nn.softmax(best)
    before = jnp.cumsum(chances) - chances  # the likeliest token is always in
    kept = jnp.where(before < top_p, best, -jnp.inf)
    return index[jax.random.categorical(jax.random.fold_in(key, position), kept)].reshape(1, 1)


__all__ = ["Generator", "Sampling", "Stats"]
