"""`python -m benchmarks.peers [folder] [model ...]`: the same weights and input through other CPU runtimes.

ONNX Runtime and OpenVINO (f32) run the graph of `onnx_graphs` that is fastest there, PyTorch the layer list of the
traced model in channels-last memory under inference mode. All alternate in one process, with the same number of
threads, and their results are compared with float64 NumPy's. Without models a decoder beside llama.cpp follows (see
`llama_peers`).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from rich.progress import track

import xcoexec
from xcoexec import config, models
from xcoexec.ir.text import columns
from xcoexec.measure.timing import alternate
from xcoexec.papers.source import commit
from xcoexec.tools import bench
from xcoexec.tools.machine import environment
from xcoexec.tools.oracle import error, oracles

from . import llama_peers, networks, onnx_graphs

Call = Callable[[], Any]
RUNTIMES = ("xcoexec", "jax.jit", "onnxruntime", "openvino", "pytorch")
PEERS = ("onnxruntime", "openvino")  # whose better one is the mark
#: the flag that some versions of XLA:CPU need to use its faster kernels everywhere
XLA_OPTION = {"xla_cpu_experimental_ynn_fusion_type": ""}


def _xco(apply: Any, weights: Any, x: Any, threads: int) -> tuple[Call, Callable[[Any], Any]]:
    fast = xcoexec.jit(apply, threads=threads, wait=True).bind(weights)
    return lambda: jax.block_until_ready(fast(x)), lambda out: out


def _jit(apply: Any, weights: Any, x: Any, threads: int) -> tuple[Call, Callable[[Any], Any]]:
    """Plain `jax.jit`, with or without `XLA_OPTION`: whichever is faster here."""
    plain = {"plain": jax.jit(apply)}
    try:
        jax.block_until_ready(jax.jit(apply, compiler_options=XLA_OPTION)(weights, x))
        plain["option"] = jax.jit(apply, compiler_options=XLA_OPTION)
    except Exception:  # a version that does not know the flag
        pass
    calls = {k: (lambda f=f: jax.block_until_ready(f(weights, x))) for k, f in plain.items()}
    seconds = alternate(calls, 3, 0.1)
    return calls[min(seconds, key=lambda k: seconds[k])], lambda out: out


def ort_session(name: str, batch: int, threads: int) -> Any:
    """ONNX Runtime's session of a model on the CPU, of the graph that is fastest. Raises what it and the exporter
    raise.
    """
    made = lambda graph: ort_made(graph, threads)
    return onnx_graphs.fastest(name, batch, made, lambda session, leaves: session.run(None, ort_feeds(session, leaves)))


def ort_made(graph: bytes, threads: int, optimised: str = "") -> Any:
    """ONNX Runtime's session of a graph on the CPU; what it makes of the graph is written to the file `optimised`."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    options.optimized_model_filepath = optimised
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def ort_feeds(session: Any, leaves: Sequence[Any]) -> dict[str, Any]:
    """The inputs of a session by name."""
    return {i.name: np.asarray(v) for i, v in zip(session.get_inputs(), leaves, strict=True)}


def _ort(name: str, batch: int, x: Any, threads: int) -> tuple[Call, Callable[[Any], Any]]:
    session = ort_session(name, batch, threads)
    feeds = ort_feeds(session, jax.tree_util.tree_leaves(x))
    binding = session.io_binding()
    for key, value in feeds.items():
        binding.bind_cpu_input(key, value)
    for out in session.get_outputs():
        binding.bind_output(out.name)
    return lambda: session.run_with_iobinding(binding), lambda _: session.run(None, feeds)


def openvino_request(graph: bytes, threads: int, precision: str = "f32") -> Any:
    """OpenVINO's request of an ONNX graph on the CPU."""
    import openvino as ov

    options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision}
    core = ov.Core()
    return core.compile_model(core.read_model(io.BytesIO(graph)), "CPU", options).create_infer_request()


def openvino_run(request: Any, leaves: Sequence[Any]) -> list[np.ndarray]:
    """The results of a request, for inputs that stay set."""
    import openvino as ov

    for i, v in enumerate(leaves):
        request.set_input_tensor(i, ov.Tensor(np.array(v)))
    request.infer()
    return [request.get_output_tensor(i).data.copy() for i in range(len(request.model_outputs))]


def _openvino(name: str, batch: int, x: Any, threads: int) -> tuple[Call, Callable[[Any], Any]]:
    request = onnx_graphs.fastest(name, batch, lambda graph: openvino_request(graph, threads), openvino_run)
    return lambda: request.infer(), lambda _: openvino_run(request, jax.tree_util.tree_leaves(x))


def _torch(apply: Any, weights: Any, x: Any, threads: int) -> tuple[Call, Callable[[Any], Any]]:
    from .torch_layers import compiled

    return compiled(apply, weights, x, threads)


def contestants(
    name: str, batch: int, threads: int, wanted: Sequence[str]
) -> tuple[dict[str, Call], dict[str, Any], dict[str, str]]:
    """(calls, first results as lists of arrays, why a runtime is missing) by runtime."""
    entry = networks.get(name)
    weights, x = entry.variables(bench.SEED), entry.example(batch, bench.SEED)
    apply = entry.module.apply
    makers: Mapping[str, Callable[[], tuple[Call, Callable[[Any], Any]]]] = {
        "xcoexec": lambda: _xco(apply, weights, x, threads),
        "jax.jit": lambda: _jit(apply, weights, x, threads),
        "onnxruntime": lambda: _ort(name, batch, x, threads),
        "openvino": lambda: _openvino(name, batch, x, threads),
        "pytorch": lambda: _torch(apply, weights, x, threads),
    }
    calls, results, missing = {}, {}, {}
    for runtime in wanted:
        try:
            call, result = makers[runtime]()
            results[runtime] = [np.asarray(o) for o in jax.tree_util.tree_leaves(result(call()))]
            calls[runtime] = call
        except Exception as e:
            if runtime in ("xcoexec", "jax.jit"):
                raise
            missing[runtime] = f"{type(e).__name__}: {str(e).splitlines()[0][:200]}" if str(e) else type(e).__name__
    return calls, results, missing


def measure(
    name: str, batch: int = 1, threads: int | None = None, wanted: Sequence[str] = RUNTIMES, rounds: int = 8
) -> dict[str, Any]:
    """Median and 10th percentile seconds of every runtime, and the error of each against float64 NumPy (jax.jit for
    batches, where that takes minutes).
    """
    n, began = config.threads(threads), time.strftime("%Y-%m-%dT%H:%M:%S")
    entry = networks.get(name)
    calls, results, missing = contestants(name, batch, n, wanted)
    spread: dict[str, list[float]] = {}
    seconds = alternate(calls, rounds, 0.2, samples=spread)
    wants = (
        results["jax.jit"]
        if batch > 1
        else oracles(entry.module.apply, entry.variables(bench.SEED), entry.example(batch, bench.SEED))
    )
    errors = {k: max(error(a, b) for a, b in zip(v, wants, strict=True)) for k, v in results.items()}
    best = min((seconds[k] for k in PEERS if k in seconds), default=None)
    return {
        "model": name,
        "batch": batch,
        "threads": n,
        "seconds": seconds,
        "p10": {k: float(np.percentile(v, 10)) for k, v in spread.items()},
        "quartiles": {k: [float(q) for q in np.percentile(v, (25, 75))] for k, v in spread.items()},
        "errors": errors,
        "missing": missing,
        "ratio": seconds["xcoexec"] / best if best else None,
        **environment(),
        "versions": versions(),
        "commit": commit(),
        "began": began,
    }


def versions() -> dict[str, str]:
    """Versions of the peers that are installed."""
    import importlib.metadata

    out = {}
    for package in ("onnxruntime", "openvino", "torch", "jax2onnx", "onnxscript"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            out[package] = importlib.metadata.version(package)
    return out


def text(records: Sequence[dict[str, Any]]) -> str:
    """Milliseconds of every runtime, one line a model; the ratio is xcoexec's to the better of ONNX Runtime and
    OpenVINO.
    """
    rows = [["model", "batch", *RUNTIMES, "xcoexec / best peer", "jax.jit / xcoexec"]]
    for r in records:
        s = r["seconds"]
        cells = [f"{s[k] * 1e3:.3f}" if k in s else "-" for k in RUNTIMES]
        rows.append(
            [
                r["model"],
                str(r["batch"]),
                *cells,
                f"{r['ratio']:.2f}" if r["ratio"] else "-",
                f"{s['jax.jit'] / s['xcoexec']:.2f}" if "jax.jit" in s else "-",
            ]
        )
    ratios = [r["ratio"] for r in records if r["ratio"]]
    e = records[0]
    tail = f"\ngeometric mean of the ratios to the better peer: {np.exp(np.mean(np.log(ratios))):.3f}" if ratios else ""
    notes = "".join(f"\n{r['model']}: no {k} ({why})" for r in records for k, why in r["missing"].items())
    return (
        columns(rows, tuple(range(1, len(rows[0]))))
        + tail
        + notes
        + f"\n{e['cpu']}, {e['threads']} threads, f32, medians in ms; jax {e['jax']}, {e['versions']}"
    )


def picture(records: Sequence[dict[str, Any]], path: pathlib.Path) -> None:
    """How many times faster than jax.jit each runtime is, grouped by model."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [k for k in RUNTIMES if k != "jax.jit" and any(k in r["seconds"] for r in records)]
    colours = dict(zip(RUNTIMES, ("#1f6fb4", "#888888", "#8cbf88", "#e0a458", "#b58db6"), strict=True))
    fig, ax = plt.subplots(figsize=(max(7.0, 0.75 * len(records) + 2), 4.2))
    width = 0.8 / len(shown)
    for i, runtime in enumerate(shown):
        values = [r["seconds"]["jax.jit"] / r["seconds"][runtime] if runtime in r["seconds"] else 0 for r in records]
        ax.bar(
            [m + (i - (len(shown) - 1) / 2) * width for m in range(len(records))],
            values,
            width,
            label=runtime,
            color=colours[runtime],
        )
    ax.axhline(1.0, color="#888888", linewidth=1)
    ax.set_yscale("log")
    ax.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
    names = [r["model"] + (f" x{r['batch']}" if r["batch"] > 1 else "") for r in records]
    ax.set_xticks(range(len(records)), names, rotation=40, ha="right")
    ax.set_ylabel("times faster than jax.jit")
    e = records[0]
    ax.set_title(f"{e['cpu']}, {e['threads']} threads, f32, jax {e['jax']}", fontsize=10)
    ax.legend(frameon=False, ncols=len(shown), fontsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    fig.tight_layout()
    fig.savefig(path, dpi=150)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default="out", help="where peers.jsonl and peers.png are written")
    parser.add_argument("models", nargs="*", help="models of the zoo, and networks outside of it (all)")
    parser.add_argument("--batch", type=int, nargs="*", default=[1])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--runtimes", nargs="*", default=RUNTIMES, choices=RUNTIMES)
    args = parser.parse_args(argv)
    folder = pathlib.Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    records = []
    names = args.models or (*models.NAMES, *networks.NETWORKS)
    for name, batch in track([(n, b) for n in names for b in args.batch], "peers"):
        records.append(measure(name, batch, args.threads, args.runtimes, args.rounds))
        with open(folder / "peers.jsonl", "a") as f:
            f.write(json.dumps(records[-1]) + "\n")
    print(text(records))
    picture(records, folder / "peers.png")
    print(f"written: {folder / 'peers.jsonl'}, {folder / 'peers.png'}")
    if not args.models:
        llama_peers.main([args.folder, "--threads", str(args.threads), "--rounds", str(args.rounds)])


if __name__ == "__main__":
    main()
