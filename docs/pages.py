"""Pages that are made of what is there: benchmarks of their records, messages of the sources."""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import pathlib
import statistics
import subprocess
from collections.abc import Iterator

import numpy as np

ROOT = pathlib.Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SOURCES = ("xcoexec", "codegen", "models")
RAISED = ("Error", "Unsupported")
WARNED = ("warnings.warn", "log.warning")
#: how a record's file name says the machine
MACHINES = {
    "zen5-2cores": "2-core AMD Zen 5",
    "zen4-2cores": "2-core AMD Zen 4",
    "zen3-2cores": "2-core AMD Zen 3",
    "xeon-2cores": "2-core Intel Xeon with AMX",
    "xeon-16cores-h100-slice": "16-core Intel Xeon, 8 multiprocessors of an H100",
    "xeon-16cores-h100": "16-core Intel Xeon, H100",
    "xeon-16cores-h200-slice": "16-core Intel Xeon, 8 multiprocessors of an H200",
    "xeon-16cores-h200": "16-core Intel Xeon, H200",
    "xeon-16cores": "16-core Intel Xeon",
    "xeon-16cores-h100-parts": "16-core Intel Xeon, 16 and 33 multiprocessors of an H100",
    "xeon-32cores-2h100": "32-core Intel Xeon, two H100",
    "xeon-32cores-2h200": "32-core Intel Xeon, two H200",
    "xeon-32cores-2h200-slice": "32-core Intel Xeon, 8 multiprocessors of each of two H200",
    "xeon-64cores-4h100": "64-core Intel Xeon, four H100",
    "xeon-64cores-4h200": "64-core Intel Xeon, four H200",
}


# -- messages ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Message:
    """A text that users may see: where it is made, as which exception ("" for a warning), and its words."""

    file: str
    kind: str
    text: str


def _words(node: ast.AST) -> str | None:
    """A literal text, with what is filled in as names in braces."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = (str(v.value) if isinstance(v, ast.Constant) else _name(v.value) for v in node.values)  # type: ignore
        return "".join(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (_words(node.left) or "...") + (_words(node.right) or "...")
    return None


def _name(node: ast.expr) -> str:
    text = ast.unparse(node)
    if text in ("WHERE", "WHO"):
        return text
    return f"<{text}>" if text.isidentifier() else "<...>"


def _constants(tree: ast.Module) -> dict[str, str]:
    """Texts that a module names once, as `WHERE = "xcoexec.task"`."""
    return {
        n.targets[0].id: n.value.value
        for n in tree.body
        if isinstance(n, ast.Assign)
        and isinstance(n.targets[0], ast.Name)
        and isinstance(n.value, ast.Constant)
        and isinstance(n.value.value, str)
    }


@functools.cache
def messages() -> tuple[Message, ...]:
    """All warnings and errors of the sources, by file."""
    return tuple(sorted(_messages(), key=lambda m: (m.file, m.text)))


def _messages() -> Iterator[Message]:
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text())
            known = _constants(tree)
            for node in ast.walk(tree):
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                what, text = ast.unparse(node.func), _words(node.args[0])
                if text and what.endswith((*RAISED, *WARNED)):
                    for word in ("WHERE", "WHO"):
                        text = text.replace(word, known.get(word, word))
                    kind = "" if what.endswith(WARNED) else what.rpartition(".")[2]
                    yield Message(str(path.relative_to(ROOT)), kind, " ".join(text.split()))


#: beginning of an error's text -> where it comes up, and the page that helps
TOPICS = {
    "xcoexec.jit": ("`xcoexec.jit`", "../jit_table"),
    "xcoexec.compile": ("`xcoexec.compile`", "../everything"),
    "bind": ("`.bind`", "../quickstart"),
    "xcoexec.ready": ("`.ready`", "../guides/planning"),
    "xcoexec.models": ("`models.get`", "../everything"),
    "xcoexec: got": ("settings and options", "../guides/planning"),
    "XCOEXEC_ISA": ("settings", "../guides/planning"),
    "report": ("`.report`", "../guides/reports"),
    "Plan": ("`Plan`", "../guides/planning"),
    "plan": ("`Plan`", "../guides/planning"),
    "device_memory": ("`device_memory=`", "../guides/large_weights"),
    "split": ("plans", "../guides/strategies"),
    "simulate": ("`xcoexec simulate`", "../guides/command_line"),
    "codl": ("`strategies.codl`", "../guides/strategies"),
    "devices": ("devices that exist as numbers", "../guides/command_line"),
    "suite": ("`xcoexec bench --suite`", "../guides/command_line"),
    "papers": ("`xcoexec papers`", "../papers"),
    "quoted": ("`xcoexec papers`", "../papers"),
    "xcoexec.fleet": ("`xcoexec.fleet`", "../guides/several_gpus"),
    "xcoexec.optim": ("`xcoexec.optim.offload`", "../guides/training"),
    "xcoexec.pipeline": ("`xcoexec.pipeline`", "../guides/streams"),
    "xcoexec.streams.datasets": ("`streams.datasets`", "../guides/deadlines"),
    "xcoexec.streams.duo": ("`streams.duo`", "../guides/deadlines"),
    "xcoexec.streams.replicas": ("`streams.replicas`", "../guides/several_gpus"),
    "xcoexec.streams": ("`xcoexec.streams`", "../guides/streams"),
    "xcoexec.task": ("`xcoexec.task`", "../guides/deadlines"),
    "xcoexec.Scheduler": ("`xcoexec.Scheduler`", "../guides/deadlines"),
    "xcoexec explain": ("`xcoexec explain`", "../guides/command_line"),
    "xcoexec demo": ("the command line", "../guides/command_line"),
    "xcoexec <what>": ("the command line", "../guides/command_line"),
    "models.Generator": ("`models.Generator`", "../guides/language_models"),
    "models.generate": ("`models.Generator`", "../guides/language_models"),
    "models.llama": ("`models.llama`", "../guides/language_models"),
    "models.Decoder": ("`models.decoder`", "../guides/language_models"),
    "models.load": ("`models.load`", "../guides/pretrained"),
    "models.convert": ("`models.convert`", "../guides/pretrained"),
}


def topic(message: Message) -> tuple[str, str]:
    """Where an error comes up, and the page that helps; what names no public function comes up inside of others."""
    found = [start for start in TOPICS if message.text.startswith(start)]
    return TOPICS[max(found, key=len)] if found else ("inside of the library", "../troubleshooting")


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(f"| {' | '.join(r)} |" for r in rows)]
    return "\n".join(lines) + "\n"


def messages_page() -> str:
    """Every error by its text, and why layers stay with XLA."""
    refused = sorted({m.text for m in messages() if m.kind == "Unsupported"})
    errors: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for m in messages():
        if m.kind and m.kind != "Unsupported":
            errors.setdefault(topic(m), set()).add((m.kind, m.text))
    parts = [
        "# Every message\n",
        "This page is made of the sources. Words in angle brackets stand for what is filled in. Errors say what was got"
        " and what is valid; [troubleshooting](../troubleshooting.md) says what to do about warnings.\n",
        "## Why a layer stays with XLA\n",
        "`fast.graph()` and `xcoexec explain` show these reasons. The result is right; the layer runs on the device"
        " half. Nothing has to be done. If the layer takes much of the time, another way of writing it may help.\n",
        _table(("reason",), [(f"`{_escaped(t)}`",) for t in refused]),
    ]
    for (where, page), found in sorted(errors.items()):
        link = f"See [the guide]({page}.md)." if "troubleshooting" not in page else "Please report it if you see one."
        parts += [f"## Errors: {where}\n", f"{link}\n"]
        parts += [_table(("error", "text"), [(f"`{k}`", f"`{_escaped(t)}`") for k, t in sorted(found)])]
    return "\n".join(parts)


DEVICE_HALF = ("folded", "channels first", "as read")


# -- benchmarks --------------------------------------------------------------------------------------


def records(name: str) -> list[dict]:
    """The records of a file of `benchmarks/results`."""
    return [json.loads(line) for line in (RESULTS / name).read_text().splitlines()]


def machine(name: str) -> str:
    """The machine that a file's name says."""
    return MACHINES[max((m for m in MACHINES if name.startswith(m)), key=len)]


@functools.cache
def made(name: str) -> str:
    """When a file was recorded, of which code: what the records say, else the file's date and commit."""
    began = [r["began"][:10] for r in records(name) if "began" in r]
    asked = ["git", "-C", str(ROOT), "log", "-1", "--format=%cs, commit %h", "--", str(RESULTS / name)]
    done = subprocess.run(asked, capture_output=True, text=True)
    kept = done.stdout.strip() if done.returncode == 0 else ""
    date, _, commit = kept.partition(", ")
    named = dict.fromkeys(r["commit"][:7] for r in records(name) if r.get("commit"))
    commit = f"commit {', '.join(named)}" if named else commit
    return ", ".join(filter(None, (began[-1] if began else date, commit))) or "date not kept"


def _source(name: str, command: str) -> str:
    jax = {r.get("jax") for r in records(name)} - {None}
    version = f", jax {', '.join(sorted(jax))}" if jax else ""
    return f"Machine: {machine(name)}{version}. Recorded: {made(name)}. Record: `benchmarks/results/{name}`. Command: `{command}`.\n"  # noqa: E501


def _peers(name: str) -> str:
    others = ("jax.jit", "onnxruntime", "openvino", "pytorch")
    rows = []
    gains = []
    for r in records(name):
        ours = r["seconds"]["xcoexec"]
        gains.append(r["seconds"]["jax.jit"] / ours)
        ms = [f"{1e3 * s:.3g}" if (s := r["seconds"].get(n)) else "-" for n in ("xcoexec", *others)]
        rows.append((r["model"], *ms, f"{gains[-1]:.2f}x", f"{r['errors']['xcoexec']:.0e}"))
    head = ("model", "xcoexec ms", "jax.jit ms", "ONNX Runtime ms", "OpenVINO ms", "PyTorch ms", "gain", "error")
    mean = statistics.geometric_mean(gains)
    told = f"The gain over `jax.jit` is {mean:.2f}x as a geometric mean over {len(gains)} models.\n"
    return "\n".join((_source(name, "make bench-peers"), told, _table(head, rows)))


def _both_ways(name: str) -> str:
    """A table for each device of a file."""
    head = ("model", "jax.jit ms, waiting", "xcoexec ms", "gain", "jax.jit ms, in flight", "xcoexec ms", "gain")
    parts = [_source(name, "python -m benchmarks.both_ways")]
    for device in dict.fromkeys(r["device"] for r in records(name)):
        rows = [_both(r) for r in records(name) if r["device"] == device]
        parts += [] if device == "cpu" else [f"{device} multiprocessors:\n"]
        parts.append(_table(head, rows))
    return "\n".join(parts)


def _both(record: dict) -> tuple[str, ...]:
    cells = [record["model"]]
    for way in ("waiting", "in flight"):
        plain, ours = (np.array(record[way][k]) for k in ("jit", "ours"))
        low, gain, high = np.percentile(plain / ours, (25, 50, 75))
        cells += [f"{1e3 * np.median(x):.3g}" for x in (plain, ours)]
        cells.append(f"{gain:.2f}x ({low:.2f} to {high:.2f})")
    return tuple(cells)


FIRST_CALLS = {
    "jax.jit's first call": "jit_first_seconds",
    "first call": "cold_first_seconds",
    "co-executed after": "cold_until_seconds",
    "all planned after": "cold_whole_seconds",
    "the next process: first call": "warm_first_seconds",
    "co-executed after ": "warm_until_seconds",
}


def _first_calls(name: str) -> str:
    """Seconds from the first call's start, with an empty cache and with the one that it left."""
    rows = []
    for r in records(name):
        where = "" if r["device"] == "cpu" else f", {r['device']} multiprocessors"
        lost = f"{r['cold_planning_lost']:.0%}" if "cold_planning_lost" in r else "-"
        seconds = [f"{r[k]:.2f}" if k in r else "-" for k in FIRST_CALLS.values()]
        ran = "jax.jit stays" if r["cold_ran"] == "jit" else r["cold_ran"].replace("xco", "co-executed")
        rows.append((f"{r['model']}{where}", *seconds, lost, ran))
    table = _table(("model", *FIRST_CALLS, "calls lose meanwhile", "in the end"), rows)
    return "\n".join((_source(name, "python -m benchmarks.first_calls"), table))


def _two_plans(name: str) -> str:
    """Milliseconds of a call with both plans, and how many times as long the first one takes."""
    rows = []
    for r in records(name):
        behind, waited = (np.array(r["seconds"][kind]) for kind in ("behind", "wait"))
        low, times, high = np.percentile(behind / waited, (25, 50, 75))
        ms = (f"{1e3 * np.median(x):.3g}" for x in (behind, waited))
        rows.append((r["model"], *ms, f"{times:.3f} ({low:.3f} to {high:.3f})"))
    head = ("model", "found behind calls, ms", "found alone, ms", "times as long")
    return "\n".join((_source(name, "python -m benchmarks.two_plans"), _table(head, rows)))


def _device_half(name: str) -> str:
    rows = []
    for r in records(name):
        part = f"{r['slice_percent']} %" if r["slice_percent"] < 100 else "whole"
        ms = [f"{1e3 * r['seconds'][k]:.3f}" if k in r["seconds"] else "-" for k in ("jax.jit", *DEVICE_HALF)]
        rows.append(
            (r["model"], r["precision"], part, *ms, f"{r['seconds']['jax.jit'] / r['seconds']['as read']:.2f}x")
        )
    head = ("model", "precision", "GPU", "jax.jit ms", *(f"{k} ms" for k in DEVICE_HALF), "gain over jax.jit")
    return "\n".join((_source(name, "python -m benchmarks.device_half"), _table(head, rows)))


def _training(name: str) -> str:
    rows = []
    for r in records(name):
        seconds = {k: statistics.median(v) for k, v in r["seconds"].items() if v}
        others = [seconds[k] for k in ("eager", "channels_last", "compile") if k in seconds]
        torch = f"{1e3 * min(others):.4g}" if others else "-"
        ms = [f"{1e3 * seconds[k]:.4g}" for k in ("ours", "jit")]
        rows.append((r["model"], str(r["batch"]), *ms, torch, f"{seconds['jit'] / seconds['ours']:.2f}x"))
    head = ("step", "batch", "xcoexec ms", "jax.jit ms", "PyTorch's fastest ms", "gain over jax.jit")
    return "\n".join((_source(name, "make bench-train"), _table(head, rows)))


def _llama(name: str) -> str:
    rows = []
    for r in records(name):
        for work, tokens in (("decode", 1), ("prefill", r["prompt"])):
            seconds = r[work]["p10"]
            ours, theirs = seconds["xcoexec"], seconds["llama.cpp"]
            read = f"{r['weight_bytes'] / ours * seconds['reads'] / r['read_bytes']:.0%}" if work == "decode" else "-"
            rates = [f"{tokens / s:.4g}" for s in (ours, theirs)]
            rows.append(
                (
                    *(r["form"], f"{work} {tokens}", str(r["threads"]), str(r["shape"]["layers"])),
                    *(*rates, f"{theirs / ours:.2f}x", read),
                )
            )
    head = (
        *("weights", "work", "threads", "layers", "xcoexec tokens/s", "llama.cpp tokens/s"),
        *("over llama.cpp", "of plain reads"),
    )
    return "\n".join((_source(name, "python -m benchmarks.llama_peers --host --no-jit"), _table(head, rows)))


def _oversize(name: str) -> str:
    rows = []
    for r in records(name):
        ms = {k: f"{1e3 * v:.4g}" for k, v in r["seconds"].items()}
        gains = (f"{r['seconds'][k] / r['seconds']['xcoexec']:.2f}x" for k in ("pinned_host", "host"))
        size = f"{r['weight_bytes'] / 1e9:.2f}", f"{r['resident_bytes'] / r['weight_bytes']:.0%}"
        rows.append(
            (r["case"], *size, ms["pinned_host"], ms["host"], ms["xcoexec"], *gains, f"{r['share_of_limit']:.0%}")
        )
    head = (
        *("case", "weights GB", "resident", "pinned_host ms", "host half ms", "xcoexec ms"),
        *("over pinned_host", "over host", "of CPU and bus at once"),
    )
    return "\n".join((_source(name, "python -m benchmarks.weights"), _table(head, rows)))


def benchmarks_page() -> str:
    """Times of whole networks, made of the records that are kept in the repository."""
    kept = [
        (f"`{p.name}`", machine(p.name), made(p.name), str(len(records(p.name))))
        for p in sorted(RESULTS.glob("*.jsonl"))
    ]
    return "\n".join(
        (
            "# Benchmarks from records\n",
            "Each table is made of a file of records. All ways alternate in one process.\n",
            "## Against other runtimes, batch 1, f32\n",
            "ONNX Runtime and OpenVINO run what is fastest for each of the graphs that the exporter and its rewriting"
            " make; in records of 2026-11-21 the exporter's graph as it is.\n",
            *(_peers(p.name) + "\n" for p in sorted(RESULTS.glob("*-peers.jsonl"), reverse=True)),
            "## Callers that wait, and calls in flight\n",
            "Gains are medians of the rounds' ratios, with their quartiles.\n",
            *(_both_ways(p.name) for p in sorted(RESULTS.glob("*-both-ways.jsonl"))),
            "## First calls, seconds\n",
            "Calls go on while the plan is made. A negative loss: they were faster than `jax.jit`'s in the mean.\n",
            *(_first_calls(p.name) for p in sorted(RESULTS.glob("*-first-calls.jsonl"))),
            "## Plans found behind calls\n",
            "Both with an empty cache: one while calls go on, the other while its caller waits.\n",
            *(_two_plans(p.name) for p in sorted(RESULTS.glob("*-two-plans.jsonl"))),
            "## Whole training steps\n",
            *(_training(f"{machine}-train.jsonl") + "\n" for machine in ("zen5-2cores", "zen4-2cores", "xeon-16cores")),
            "## Language models beside llama.cpp\n",
            "Tokens a second by 10th percentiles of times. Both have the same weights, threads and cache length.\n",
            *(_llama(p.name) + "\n" for p in sorted(RESULTS.glob("*-llama.jsonl"))),
            "## The device half alone\n",
            "XLA on the folded graph, then with exact convolutions that have channels first, then with weights as the"
            " kernels read them, which is what plans use.\n",
            *(_device_half(p.name) + "\n" for p in sorted(RESULTS.glob("*-device-half.jsonl"))),
            "## Weights larger than the GPU's share\n",
            *(_oversize(p.name) + "\n" for p in sorted(RESULTS.glob("*-weights.jsonl"))),
            "## All records\n",
            _table(("file", "machine", "recorded", "records"), kept),
        )
    )


def all_pages() -> dict[str, str]:
    """File name -> text."""
    return {"messages.md": messages_page(), "benchmarks.md": benchmarks_page()}


# -- picture -----------------------------------------------------------------------------------------

PEERS = "zen5-2cores-jax0.12-peers.jsonl"
SHOWN = ("mobilenet_v2", "mobilenet_v1", "posenet", "lenet", "vgg16", "resnet18", "squeezenet", "resnet50", "vit_s16")


def picture(path: pathlib.Path) -> None:
    """Draws two bars a network, `jax.jit`'s time and ours beside it, of the records of `PEERS`."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    seconds = {r["model"]: r["seconds"] for r in records(PEERS)}
    fig, ax = plt.subplots(figsize=(8.0, 4.4))
    for i, name in enumerate(SHOWN):
        plain, ours = seconds[name]["jax.jit"], seconds[name]["xcoexec"]
        ax.barh(3 * i, 1.0, color="#8c8c8c", label=None if i else "jax.jit")
        ax.barh(3 * i + 1, ours / plain, color="#e8883a", label=None if i else "xcoexec")
        ax.text(1.01, 3 * i, f"{1e3 * plain:.3g} ms", va="center", fontsize=8)
        ax.text(ours / plain + 0.01, 3 * i + 1, f"{1e3 * ours:.3g} ms ({plain / ours:.1f}x)", va="center", fontsize=8)
    ax.set_yticks([3 * i + 0.5 for i in range(len(SHOWN))], SHOWN)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.12)
    ax.set_xticks([])
    ax.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, 0.02))
    ax.set_title(f"One call, batch 1, f32: shorter is faster ({machine(PEERS)}, 2026-11-21)", loc="left", fontsize=10)
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)
    fig.tight_layout()
    fig.savefig(path, dpi=110)


if __name__ == "__main__":
    picture(ROOT / "docs" / "images" / "calls.png")
