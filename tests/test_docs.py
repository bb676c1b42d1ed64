"""The docs: snippets run, links resolve, tasks are near the front page, and every warning has its section."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import json
import pathlib
import re
import subprocess
import sys
import types

import jax
import pytest

import xcoexec

from .support import quick_process

ROOT = pathlib.Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted(p for p in (README, *DOCS.rglob("*.md")) if "generated" not in p.parts)
GENERATED = {"generated/messages.md", "generated/benchmarks.md", "generated/tour.ipynb", "generated/changelog.md"}
pytestmark = pytest.mark.usefixtures("quick_xla")
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.S | re.M)
WITH_SNIPPETS = [p for p in PAGES if "```python" in p.read_text() and p.name not in ("extending.md", "architecture.md")]
#: the words that tell each example to be short
EXAMPLES = {
    "camera.py": ("--frames=3",),
    "classify.py": ("--steps=1", "--model=squeezenet"),
    "deadlines.py": ("--seconds=0.3",),
    "generate.py": ("--steps=3",),
    "nnx_model.py": ("--steps=1",),
    "pretrained.py": (),
    "distributed.py": ("--images=40",),
    "ray_data.py": ("--images=40",),
    "train_digits.py": ("--steps=3",),
    "train_nnx.py": ("--steps=3",),
}


def _pages() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("docs_pages", DOCS / "pages.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["docs_pages"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _snippets(page: pathlib.Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M)


def _name(page: pathlib.Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=_name)
def test_the_snippets_of_a_page_run_in_their_order(
    page: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each in the names of those before it."""
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {"__name__": "snippets"}
    for text in _snippets(page):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, f"{page.name} (snippet)", "exec"), space)


def _target(page: pathlib.Path, link: str) -> pathlib.Path:
    return (page.parent / link.partition("#")[0]).resolve() if not link.startswith("#") else page.resolve()


def _links(page: pathlib.Path) -> list[str]:
    return [x for x in LINK.findall(FENCE.sub("", page.read_text())) if "://" not in x]


def _anchors(page: pathlib.Path) -> set[str]:
    """Anchors of headings, as the site makes them."""
    heads = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in heads}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_and_pictures_resolve(page: pathlib.Path) -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", page.read_text())
    for link in [*_links(page), *pictures]:
        target = _target(page, link)
        made = target.is_relative_to(DOCS) and str(target.relative_to(DOCS)) in GENERATED
        assert made or target.exists(), f"{page.name}: {link}"
        if "#" in link and not made:
            assert link.partition("#")[2] in _anchors(target), f"{page.name}: {link}"


def test_forty_tasks_are_at_most_two_clicks_from_the_front_page() -> None:
    clicks = {(DOCS / "index.md").resolve(): 0}
    for far in (1, 2):
        for page in [p for p, n in clicks.items() if n == far - 1 and p.suffix == ".md" and p.exists()]:
            for link in _links(page):
                clicks.setdefault(_target(page, link), far)
    rows = re.findall(r"^\| (.+?) \| \[.+?\]\((.+?)\) \| (\d) \|$", (DOCS / "tasks.md").read_text(), re.M)
    assert len(rows) == 40 and len({task for task, _, _ in rows}) == 40
    for task, link, said in rows:
        assert clicks[_target(DOCS / "tasks.md", link)] == int(said) <= 2, task


def test_every_page_is_reached_from_the_front_page() -> None:
    text = (DOCS / "index.md").read_text() + (DOCS / "guides" / "index.md").read_text()
    for page in PAGES:
        if page.is_relative_to(DOCS) and page.name != "index.md":
            assert page.stem in text, page


def test_every_warning_has_a_section_of_troubleshooting() -> None:
    sections = re.findall(r"^### (.*)$", (DOCS / "troubleshooting.md").read_text(), re.M)
    known = [re.escape(s.removesuffix("...").strip()).replace(re.escape("..."), ".*") for s in sections]
    warned = [m for m in _pages().messages() if not m.kind]
    assert len(warned) >= 11
    for message in warned:
        assert any(re.match(k, message.text) for k in known), message
    for section in known:
        assert any(re.match(section, m.text) for m in warned), f"no warning begins like {section}"


def test_every_error_is_on_a_page_and_those_of_public_names_have_a_guide() -> None:
    pages = _pages()
    text = pages.messages_page()
    found = [m for m in pages.messages() if m.kind]
    assert len(found) > 200 and any("valid are" in m.text for m in found)
    for m in found:
        assert pages._escaped(m.text) in text
    for m in found:
        if m.text.startswith(("xcoexec.", "models.")) and m.kind != "AttributeError":
            assert "troubleshooting" not in pages.topic(m)[1], m
    for _, page in pages.TOPICS.values():
        assert (DOCS / "generated" / f"{page}.md").resolve().exists(), page


def test_benchmarks_are_made_of_records() -> None:
    pages = _pages()
    page = pages.benchmarks_page()
    for name in ("zen5-2cores-jax0.12-peers.jsonl", "zen3-2cores-peers.jsonl"):
        first = pages.records(name)[0]
        rows = [line for line in page.splitlines() if line.startswith(f"| {first['model']} |")]
        assert any(f"{1e3 * first['seconds']['xcoexec']:.3g}" in row for row in rows)
    assert all(p.name in page for p in pages.RESULTS.glob("*.jsonl")) and "2-core AMD Zen 5" in page


def test_all_knobs_are_on_the_page_of_everything() -> None:
    page = (DOCS / "everything.md").read_text()
    sources = "".join((ROOT / f).read_text() for f in ("xcoexec/config.py", "codegen/environment.py"))
    for knob in set(re.findall(r"XCOEXEC_[A-Z]+(?:_[A-Z]+)*", sources)):
        assert f"`{knob}`" in page, knob


def test_all_parameters_of_jit_are_in_the_table() -> None:
    page = (DOCS / "jit_table.md").read_text()
    for name in inspect.signature(jax.jit).parameters:
        assert f"`{name}`" in page, name
    for name in inspect.signature(xcoexec.jit).parameters:
        assert name in ("fn", "given") or f"`{name}`" in page, name
    for fn in (jax.jit(abs), xcoexec.jit(abs)):
        for name in (n for n in dir(fn) if not n.startswith("_")):
            assert f"`.{name}`" in page, name


def test_each_example_is_listed_and_named() -> None:
    there = {p.name for p in (ROOT / "examples").glob("*.py")}
    assert there == set(EXAMPLES)
    page = (DOCS / "examples.md").read_text()
    assert all(f"examples/{name}" in page for name in there)


#: tests of training and of language models run the others
@pytest.mark.parametrize("name", [n for n in EXAMPLES if not n.startswith(("train", "generate"))])
def test_an_example_runs(name: str, tmp_path: pathlib.Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / name), *EXAMPLES[name]]
    done = subprocess.run(command, env=quick_process(), capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() and "Traceback" not in done.stderr


def test_the_notebook_has_no_results_and_its_code_compiles() -> None:
    """The docs run it from top to bottom."""
    book = json.loads((ROOT / "examples" / "tour.ipynb").read_text())
    code = ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]
    assert len(code) > 8 and all(c["outputs"] == [] for c in book["cells"] if c["cell_type"] == "code")
    for text in code:
        compile(text, "tour.ipynb", "exec")
