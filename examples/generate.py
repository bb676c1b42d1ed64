"""Writes a text on from a prompt, once with `jax.jit` and once with `xcoexec.jit`.

    python examples/generate.py --prompt "Once upon a time"                       # a small model with random weights
    pip install 'xcoexec[text]'
    python examples/generate.py --model FOLDER --prompt "The capital of France is" --temperature 0.7

FOLDER is what Transformers saves: config.json, model.safetensors (or its parts and their index) and tokenizer.json. Of
a model with random weights the tokens are bytes, and the text is none.
"""

from __future__ import annotations

import argparse
import functools
import pathlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import jax

import xcoexec
from xcoexec import models

#: without `wait` the first tokens are jax.jit's, while the plan is made beside them: this run is too short for that
JITS: dict[str, Callable[..., Any]] = {"jax.jit": jax.jit, "xcoexec.jit": functools.partial(xcoexec.jit, wait=True)}
SMALL = {
    **{"model_type": "llama", "vocab_size": 256, "hidden_size": 256, "intermediate_size": 704},
    **{"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 2048},
}


class Tokens(Protocol):
    """Text to token ids and back."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: list[int]) -> str: ...


class Bytes:
    """Each byte is a token."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: list[int]) -> str:
        return bytes(ids).decode(errors="replace")


class FromFile:
    """A tokenizer.json, read by the package tokenizers."""

    def __init__(self, path: pathlib.Path):
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise SystemExit("A tokenizer file needs the package tokenizers; install xcoexec[text].") from None
        self._tokenizer = Tokenizer.from_file(str(path))

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text).ids

    def decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids)


def model(folder: pathlib.Path | None, length: int) -> tuple[Any, Any]:
    """(module, variables) of a folder, or a small model with random weights."""
    if folder is not None:
        return models.llama.load(folder, length)
    module = models.llama.from_config(SMALL, length)
    return module, models.random_variables(module, models.llama.example(module))


def words(tokens: Tokens, ids: Iterator[int]) -> Iterator[str]:
    """What each token adds to the text: nothing while it ends within a character."""
    known: list[int] = []
    shown = ""
    for token in ids:
        known.append(token)
        text = tokens.decode(known)
        if not text.endswith("\N{REPLACEMENT CHARACTER}"):
            yield text[len(shown) :]
            shown = text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, help="folder with config.json and safetensors files")
    parser.add_argument("--tokenizer", type=pathlib.Path, help="tokenizer.json; the folder's by default")
    parser.add_argument("--prompt", default="Once upon a time")
    parser.add_argument("--steps", type=int, default=100, help="tokens, at most")
    parser.add_argument("--length", type=int, default=1024, help="positions of the cache")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--top-k", type=int, default=0)
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stop", type=int, nargs="*", default=(), help="token ids that end the text")
    given = parser.parse_args()
    file = given.tokenizer or (given.model and given.model / "tokenizer.json")
    tokens: Tokens = FromFile(file) if file else Bytes()
    module, variables = model(given.model, given.length)
    variables = jax.device_put(variables)
    sampling = {"temperature": given.temperature, "top_k": given.top_k, "top_p": given.top_p}
    sampling |= {"key": jax.random.key(given.seed)}
    prompt = tokens.encode(given.prompt)
    for name, jit in JITS.items():
        generator = models.Generator(module, variables, jit=jit)
        list(generator(prompt, min(2, given.steps), **sampling))  # compiles and plans what a stream needs
        ids = generator(prompt, given.steps, **sampling, stop=given.stop)
        print(f"{name}: {given.prompt}", end="", flush=True)
        for word in words(tokens, ids):
            print(word, end="", flush=True)
        s = generator.stats
        print(
            f"\n{name}: first token after {1e3 * s.first_seconds:.1f} ms ({s.reused} of {s.prompt} tokens of the prompt"
            f" were in the cache), then {s.tokens_per_second:.1f} tokens a second"
        )


if __name__ == "__main__":
    main()
