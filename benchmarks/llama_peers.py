"""`python -m benchmarks.llama_peers [folder]`: a Llama-like decoder with random weights beside llama.cpp.

Both have the same weights, in bf16, in whole numbers of 8 bits and of 4 bits with a scale for each 32 of an output's
weights (llama.cpp's q8_0 and q4_0; in JAX `q * scale`), and the same threads. Embeddings are bf16. All alternate in one
process with threads that do nothing but read, so that each line stands beside the bandwidth of its own run:

    decode    one token behind 64 to 127 others; tokens a second, and bytes of the layers' and the head's weights
    prefill   `--prompt` tokens at once, scores of the last one

Where products are bf16 in llama.cpp they are here: dense layers narrow what they multiply. Keys and values are f32 here
and f16 there. llama.cpp quantises activations for q8_0 and q4_0 to 8 bits; here they stay f32 in a decode, and are
rounded to bf16 in a prefill (`precision="bf16"`). Both have a cache of `--context` positions: this decoder reads all of
them, llama.cpp those that are filled.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import math
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

import xcoexec
from xcoexec import config
from xcoexec.codegen.runtime import host, peaks
from xcoexec.ir.text import table
from xcoexec.measure.timing import alternate
from xcoexec.models.decoder import Cache, Decoder, Step
from xcoexec.papers.source import commit
from xcoexec.tools import lines
from xcoexec.tools.machine import environment

FORMS = ("bf16", "q8_0", "q4_0")
GROUP = 32  # weights of an output that have a scale of their own
BEFORE, TURNS = 64, 64  # tokens before those that are timed, and how many follow
READ_BYTES = 1 << 30  # more than any cache holds
HEAD = ("weights", "work", "who", "tokens/s", "GB/s of weights", "of the reads", "over llama.cpp")
#: the decoder's dense layers -> GGUF's names
NAMES = {"query": "attn_q", "key": "attn_k", "value": "attn_v", "out": "attn_output"}
MLP = {"gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}


def shapes(m: Decoder) -> Iterator[tuple[str, tuple[str, ...], int, int]]:
    """(GGUF's name, path in the variables, inputs, outputs) of every dense layer."""
    kv = m.groups * m.head_dim
    sides = {"query": (m.width, m.width), "key": (m.width, kv), "value": (m.width, kv), "out": (m.width, m.width)}
    for i in range(m.depth):
        for name, gguf in NAMES.items():
            yield f"blk.{i}.{gguf}.weight", (f"Attention_{i}", name, "kernel"), *sides[name]
        for name, gguf in MLP.items():
            k, n = (m.hidden, m.width) if name == "down" else (m.width, m.hidden)
            yield f"blk.{i}.{gguf}.weight", (f"{name}_{i}", "kernel"), k, n
    yield "output.weight", ("head", "kernel"), m.width, m.vocabulary


def _quantised(w: np.ndarray, form: str) -> tuple[Any, np.ndarray]:
    """Our form of f32 weights [out, in], and the bytes of GGUF's: the same numbers in both."""
    from gguf import quants
    from gguf.constants import GGMLQuantizationType as Kind

    n, k = w.shape
    if form == "bf16":
        narrow = w.astype(jnp.bfloat16)
        return jnp.asarray(np.ascontiguousarray(narrow.T)), narrow.view(np.uint16).view(np.uint8)
    raw = quants.quantize(w, Kind.Q8_0 if form == "q8_0" else Kind.Q4_0)
    blocks = raw.reshape(n, k // GROUP, -1)
    scale = np.ascontiguousarray(blocks[..., :2]).view(np.float16)
    if form == "q8_0":
        q = np.ascontiguousarray(blocks[..., 2:]).view(np.int8)
    else:
        q = np.concatenate([blocks[..., 2:] & 15, blocks[..., 2:] >> 4], -1).astype(np.int8) - 8
    turned = np.ascontiguousarray(q.transpose(1, 2, 0))
    kind = jnp.int8 if form == "q8_0" else jnp.int4
    return {"q": jnp.asarray(turned, kind), "scale": jnp.asarray(scale.transpose(1, 2, 0).copy())}, raw


def _halves_apart(w: np.ndarray, heads: int) -> np.ndarray:
    """Rows of queries or keys as llama.cpp turns them: neighbours, where the decoder turns halves of a head."""
    n, k = w.shape
    return w.reshape(heads, 2, n // heads // 2, k).swapaxes(1, 2).reshape(n, k)


def made(m: Decoder, form: str, path: pathlib.Path) -> tuple[dict[str, Any], int]:
    """Random variables of the decoder, and bytes of the dense layers' weights; writes the same as GGUF to `path`."""
    import gguf
    from gguf.constants import GGMLQuantizationType as Kind

    rng = np.random.default_rng(0)
    kind = {"bf16": Kind.BF16, "q8_0": Kind.Q8_0, "q4_0": Kind.Q4_0}[form]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(m.length)
    writer.add_embedding_length(m.width)
    writer.add_block_count(m.depth)
    writer.add_feed_forward_length(m.hidden)
    writer.add_head_count(m.heads)
    writer.add_head_count_kv(m.groups)
    writer.add_layer_norm_rms_eps(m.epsilon)
    writer.add_rope_freq_base(m.rope.theta)
    writer.add_rope_dimension_count(m.head_dim)
    writer.add_vocab_size(m.vocabulary)
    writer.add_tokenizer_model("no_vocab")
    variables: dict[str, Any] = {}

    def put(where: Sequence[str], value: Any) -> None:
        node = variables
        for name in where[:-1]:
            node = node.setdefault(name, {})
        node[where[-1]] = value

    embedding = rng.standard_normal((m.vocabulary, m.width), np.float32).astype(jnp.bfloat16)
    put(("Embed_0", "embedding"), jnp.asarray(embedding))
    writer.add_tensor("token_embd.weight", embedding.view(np.uint16).view(np.uint8), raw_dtype=Kind.BF16)
    norms = [f"blk.{i}.{name}.weight" for i in range(m.depth) for name in ("attn_norm", "ffn_norm")]
    for i, name in enumerate([*norms, "output_norm.weight"]):
        put((f"RMSNorm_{i}", "scale"), jnp.ones(m.width, jnp.float32))
        writer.add_tensor(name, np.ones(m.width, np.float32))
    nbytes = 0
    for name, where, k, n in shapes(m):
        w = rng.standard_normal((n, k), np.float32) / np.float32(math.sqrt(k))
        ours, raw = _quantised(w, form)
        turned = {"query": m.heads, "key": m.groups}.get(where[1] if len(where) > 2 else "", 0)
        if turned:
            raw = _halves_apart(raw, turned)
        put(where, ours)
        writer.add_tensor(name, raw, raw_dtype=kind)
        nbytes += raw.nbytes
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return {"params": variables}, nbytes


def _wide(variables: Any) -> Any:
    """Variables as the decoder has them: whole numbers times their scales."""
    scaled = lambda x: isinstance(x, dict) and set(x) == {"q", "scale"}

    def one(x: Any) -> Any:
        if not scaled(x):
            return x
        scale = x["scale"].astype(jnp.float32)
        return (x["q"].astype(jnp.float32) * scale).reshape(-1, scale.shape[-1])

    return jax.tree_util.tree_map(one, variables, is_leaf=scaled)


class Ours:
    """The decoder under `jit`; `kind`: `jax.jit` or `xcoexec.jit`."""

    def __init__(self, m: Decoder, variables: Any, kind: Callable[..., Any]):
        def step(variables: Any, cache: Cache, tokens: jax.Array, position: jax.Array) -> tuple[jax.Array, Cache]:
            last = jnp.int32(tokens.shape[1] - 1)
            scores, after = m.apply(_wide(variables), Step(tokens, cache, position), last)
            return scores[0, 0], after

        jitted = kind(step, donate_argnums=1)
        bind = getattr(jitted, "bind", None)
        self._step = bind(variables) if bind else lambda *args: jitted(variables, *args)
        self._cache = m.empty_cache(1)

    def __call__(self, tokens: Sequence[int], position: int) -> jax.Array:
        """Scores behind the last token."""
        scores, self._cache = self._step(self._cache, jnp.asarray([tokens]), jnp.int32(position))
        return jax.block_until_ready(scores)


def _load_backends(library: ctypes.CDLL, folder: pathlib.Path) -> None:
    """Loads the kernels for this CPU where llama.cpp was built with a library for each kind of CPU."""
    load = library.ggml_backend_load_all_from_path
    load.argtypes = [ctypes.c_char_p]
    load(str(folder).encode())


class Peer:
    """llama.cpp with a GGUF file."""

    def __init__(self, path: pathlib.Path, context: int, threads: int):
        import llama_cpp as c

        self._c = c
        self._quiet = c.llama_log_callback(lambda *_: None)
        c.llama_log_set(self._quiet, ctypes.c_void_p(0))
        c.llama_backend_init()
        _load_backends(c.llama_cpp._lib, pathlib.Path(c.__file__).parent / "lib")
        about = c.llama_model_default_params()
        about.n_gpu_layers = 0
        self._model = c.llama_model_load_from_file(str(path).encode(), about)
        how = c.llama_context_default_params()
        how.n_ctx = how.n_batch = how.n_ubatch = context
        how.n_threads = how.n_threads_batch = threads
        self._context = c.llama_init_from_model(self._model, how) if self._model else None
        if not self._context:
            raise RuntimeError(f"llama.cpp refuses {path}")
        self._words = c.llama_vocab_n_tokens(c.llama_model_get_vocab(self._model))
        self._batch = c.llama_batch_init(context, 0, 1)

    def __call__(self, tokens: Sequence[int], position: int) -> np.ndarray:
        """Scores behind the last token."""
        c, b = self._c, self._batch
        c.llama_memory_seq_rm(c.llama_get_memory(self._context), 0, position, -1)
        b.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            b.token[i], b.pos[i], b.n_seq_id[i], b.seq_id[i][0] = token, position + i, 1, 0
            b.logits[i] = i == len(tokens) - 1
        if c.llama_decode(self._context, b):
            raise RuntimeError("llama_decode failed")
        return np.ctypeslib.as_array(c.llama_get_logits_ith(self._context, len(tokens) - 1), (self._words,))

    def close(self) -> None:
        """Gives its memory back."""
        self._c.llama_batch_free(self._batch)
        self._c.llama_free(self._context)
        self._c.llama_model_free(self._model)


def decoding(who: Callable[[Sequence[int], int], Any], prompt: Sequence[int]) -> Callable[[], Any]:
    """Calls that each take one token further, over and over behind the same beginning."""
    who(prompt[:BEFORE], 0)
    count = 0

    def call() -> Any:
        nonlocal count
        position = BEFORE + count % TURNS
        count += 1
        return who([prompt[position % len(prompt)]], position)

    return call


def _difference(a: Any, b: Any) -> float:
    a, b = np.array(a, np.float64), np.array(b, np.float64)
    return float(np.abs(a - b).max() / np.abs(b).max())


def measure(form: str, args: argparse.Namespace) -> dict[str, Any]:
    """Median and 10th percentile seconds of a token and of a prompt for everyone, in one form of weights."""
    threads, folder = config.threads(args.threads), pathlib.Path(args.folder)
    m = Decoder(
        vocabulary=args.vocabulary,
        width=args.width,
        depth=args.layers,
        heads=args.heads,
        groups=args.groups,
        hidden=args.hidden,
        length=args.context,
        dtype=jnp.bfloat16 if form == "bf16" else None,
    )
    path = folder / f"decoder-{form}.gguf"
    variables, nbytes = made(m, form, path)
    prompt = np.random.default_rng(1).integers(0, m.vocabulary, args.prompt).tolist()
    peer = Peer(path, m.length, threads)
    plan = xcoexec.Plan.uniform(1.0) if args.host else None
    ours = lambda fn, **given: xcoexec.jit(fn, threads=threads, wait=True, plan=plan, **given)
    narrow = lambda fn, **given: ours(fn, precision="bf16", **given)
    others = {"llama.cpp": peer} | ({"jax.jit": Ours(m, variables, jax.jit)} if args.jit else {})
    one, many = Ours(m, variables, ours), Ours(m, variables, ours if form == "bf16" else narrow)
    first = {name: np.array(x(prompt, 0), np.float64) for name, x in {"xcoexec": many, **others}.items()}
    buffer = np.ones(READ_BYTES // 4, np.float32)
    reads = host.Call(peaks.reading(READ_BYTES, threads), [buffer], [])
    found: dict[str, Any] = {"form": form, "threads": threads, "weight_bytes": nbytes, "prompt": args.prompt}
    found["read_bytes"] = READ_BYTES
    found["differences"] = {name: _difference(x, first["llama.cpp"]) for name, x in first.items()}
    work = {
        "decode": {name: decoding(x, prompt) for name, x in {"xcoexec": one, **others}.items()},
        "prefill": {name: (lambda x=x: x(prompt, 0)) for name, x in {"xcoexec": many, **others}.items()},
    }
    for name, calls in work.items():
        samples: dict[str, list[float]] = {}
        medians = alternate({**calls, "reads": reads}, args.rounds, args.seconds, samples=samples)
        found[name] = {"median": medians, "p10": {k: float(np.percentile(v, 10)) for k, v in samples.items()}}
    peer.close()
    path.unlink()
    packages = ("llama-cpp-python", "gguf")
    versions = {name: importlib.metadata.version(name) for name in packages}
    shape = {k: getattr(args, k) for k in ("layers", "width", "hidden", "heads", "groups", "vocabulary")}
    return {**found, "shape": shape, "context": m.length, "commit": commit(), **environment(), "versions": versions}


def rows(record: Mapping[str, Any]) -> list[list[str]]:
    """Lines of the table, by 10th percentiles: whoever else uses the machine adds to times alone."""
    out = []
    for work, tokens in (("decode", 1), ("prefill", record["prompt"])):
        seconds = record[work]["p10"]
        read = record["read_bytes"] / seconds["reads"]
        for who in (k for k in seconds if k != "reads"):
            rate = record["weight_bytes"] / seconds[who]
            speed = [f"{rate / 1e9:.1f}", f"{rate / read:.0%}"] if work == "decode" else ["", ""]
            what = f"{work} at {BEFORE}" if work == "decode" else f"{work} {tokens}"
            share = f"{seconds['llama.cpp'] / seconds[who]:.2f}"
            out.append([record["form"], what, who, f"{tokens / seconds[who]:.1f}", *speed, share])
        out.append([record["form"], work, "reads", "", f"{read / 1e9:.1f}", "100%", ""])
    return out


def text(records: Sequence[Mapping[str, Any]]) -> Any:
    """The table of some records of one machine."""
    r = records[0]
    shape = ", ".join(f"{k} {v}" for k, v in r["shape"].items())
    differ = "; ".join(f"{x['form']} {x['differences']['xcoexec']:.1e}" for x in records)
    title = (
        f"{r['cpu']}, {r['threads']} threads, jax {r['jax']}, {r['versions']}, context {r['context']}\n"
        f"{shape}; scores from llama.cpp's: {differ}"
    )
    return table(title, HEAD, [line for x in records for line in rows(x)], right=range(3, len(HEAD)))


def parser() -> argparse.ArgumentParser:
    """Options of this module's command."""
    found = argparse.ArgumentParser("llama_peers", description=__doc__)
    found.add_argument("folder", nargs="?", default="out", help="where llama_peers.jsonl is written, and GGUF files")
    found.add_argument("--forms", nargs="+", default=FORMS, choices=FORMS)
    for name, value in {"layers": 22, "width": 2048, "hidden": 5632, "heads": 32, "groups": 4}.items():
        found.add_argument(f"--{name}", type=int, default=value)
    found.add_argument("--vocabulary", type=int, default=32000)
    found.add_argument("--prompt", type=int, default=512)
    found.add_argument("--context", type=int, default=512, help="positions of the cache")
    found.add_argument("--threads", type=int, default=None)
    found.add_argument("--rounds", type=int, default=6)
    found.add_argument("--seconds", type=float, default=0.5)
    found.add_argument("--host", action="store_true", help="all on the host half, without planning")
    found.add_argument("--jit", action=argparse.BooleanOptionalAction, default=True, help="plain jax.jit beside them")
    return found


def main(argv: Sequence[str] | None = None) -> None:
    args = parser().parse_args(argv)
    least = max(args.prompt, BEFORE + TURNS)
    if args.context < least:
        raise SystemExit(f"llama_peers: got --context {args.context}; valid for this work is {least} or more.")
    folder = pathlib.Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    records = []
    for form in args.forms:
        records.append(measure(form, args))
        lines.append(folder / "llama_peers.jsonl", records[-1])
    Console(width=150).print(text(records))


if __name__ == "__main__":
    main()
