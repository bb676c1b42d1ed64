"""Runs the tests of chex, optax and flax with `jax.jit` replaced by `xcoexec.jit`, and with plain `jax.jit` beside it.

Exits with 1 when a test that passes with plain `jax.jit` does not pass with ours. A run that was cut off goes on where it
stopped; results are kept under out/outside as long as neither the library nor any version changes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from typing import Any

from .results import causes, compare, read, reasons, table
from .sources import OUT, ROOT, SUITES, Suite, fetch

MODES = ("host", "auto", "device")
PLAIN = "plain"
VERSIONS = ("jax", "jaxlib", "numpy", "pytest")
TEST_SECONDS = 600  # a test that takes longer ends its process, and counts as failed
OURS = ("tests/outside/replaced.py", "xcoexec/**/*.py", "codegen/**/*.py", "models/**/*.py")
HARNESS = ("tests/outside/plugin.py", "tests/outside/sources.py")


def fingerprint(*patterns: str) -> str:
    """Changes with the text of any of these files."""
    digest = hashlib.sha256()
    for path in sorted(p for pattern in patterns for p in ROOT.glob(pattern)):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def identity(suite: Suite, mode: str) -> dict[str, Any]:
    """What results depend on: results of another identity are not taken up again."""
    versions = {name: version(name) for name in (*VERSIONS, suite.package)}
    files = HARNESS if mode == PLAIN else (*HARNESS, *OURS)
    return {"python": platform.python_version(), **versions, "files": fingerprint(*files)}


def commit() -> str:
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True)
    return (found.stdout.strip() or "unknown") + "+" * bool(changed.stdout.strip())


def machine() -> str:
    info = pathlib.Path("/proc/cpuinfo")
    names = [x.split(":")[1].strip() for x in info.read_text().splitlines() if x.startswith("model name")] if info.exists() else []
    return f"{names[0] if names else platform.machine()}, {len(os.sched_getaffinity(0))} cores"


def home(suite: Suite, mode: str, part: str) -> pathlib.Path:
    folder = OUT / f"python{sys.version_info[0]}.{sys.version_info[1]}-jax{version('jax')}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{suite.package}-{part}-{mode}.jsonl"


def run(suite: Suite, mode: str, part: str, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """One suite in pytest in a process of its own; what ran before under the same identity is not run again."""
    path, who = home(suite, mode, part), {"identity": identity(suite, mode)}
    first = path.read_text().splitlines()[:1] if path.exists() and not options.fresh else []
    if first != [json.dumps(who)]:
        path.write_text(json.dumps(who) + "\n")
    done = read(path)
    left = path.with_suffix(".done")
    left.write_text("\n".join(done))
    print(f"-- {suite.package} {suite.version}, {part}, jit={mode}: {len(done)} tests are done", flush=True)
    source = fetch(suite)
    pytest = [sys.executable, "-m", "pytest", "-p", "tests.outside.plugin", "-p", "no:cacheprovider", "-q", "--tb=short"]
    pytest += ["--rootdir", str(source), "--continue-on-collection-errors", f"--timeout={TEST_SECONDS}", "--timeout-method=thread"]
    pytest += ["-n", str(options.workers), "--dist", "loadfile", "-c", str(source / "pyproject.toml"), "--no-summary"]
    pytest += [x for f in suite.left_out for x in ("--ignore", str(source / f))]
    pytest += [str(source / t) for t in (suite.tests if part == "all" else suite.ci)]
    env = {
        "XCOEXEC_CACHE_DIR": str(OUT / "cache"),
        "XCOEXEC_ADAPT": "0",
        "XCOEXEC_THREADS": str(max(1, len(os.sched_getaffinity(0)) // options.workers)),
        "JAX_PLATFORMS": "cpu",
        **os.environ,
        **suite.settings,
        "PYTHONPATH": str(ROOT),
        "XCOEXEC_OUTSIDE_JIT": mode,
        "XCOEXEC_OUTSIDE_RESULTS": str(path),
        "XCOEXEC_OUTSIDE_DONE": str(left),
    }
    ended = subprocess.run(pytest, env=env, cwd=OUT).returncode
    if ended not in (0, 1, 5):  # passed, failed, or nothing was left to run
        raise SystemExit(f"tests.outside.suites: pytest ended with {ended} in {suite.package}; its results are not complete.")
    return read(path)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.outside.suites", description=__doc__)
    parser.add_argument("--part", choices=("all", "ci"), default="all", help="all tests, or those of the short run")
    parser.add_argument("--jit", choices=MODES, default="host", help="host: kernels wherever they exist; auto: as users get it; device: XLA alone")
    parser.add_argument("--suite", action="append", choices=[s.package for s in SUITES], help="only this one (may be given again)")
    parser.add_argument("--workers", type=int, default=2, help="processes that run tests")
    parser.add_argument("--fresh", action="store_true", help="run again what is done")
    options = parser.parse_args()
    began, verdicts = time.time(), []
    for suite in SUITES:
        if options.suite and suite.package not in options.suite:
            continue
        plain = run(suite, PLAIN, options.part, options)
        verdicts.append(compare(suite.package, run(suite, options.jit, options.part, options), plain))
    report = OUT / "report.jsonl"
    with report.open("a") as file:
        for v in verdicts:
            suite = next(s for s in SUITES if s.package == v.suite)
            facts = {"suite": v.suite, "part": options.part, "jit": options.jit, "commit": commit(), "machine": machine()}
            counts = {"tests": v.tests, "passed": len(v.passed), "fail with plain jax.jit": list(v.plain), "new failures": dict(v.new)}
            line = {**facts, **identity(suite, options.jit), **counts, "tests with kernels": v.exercised, "seen": dict(v.seen)}
            file.write(json.dumps(line) + "\n")
    print(f"\n{table(verdicts)}\n\nwhy functions or layers had no kernels:\n{reasons(verdicts)}")
    new = sum(len(v.new) for v in verdicts)
    print(f"\n{new} new failures{':' * bool(new)}\n{causes(verdicts)}")
    print(f"{time.time() - began:.0f} s; {report}")
    return int(new > 0)


if __name__ == "__main__":
    sys.exit(main())
