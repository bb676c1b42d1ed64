"""Settings of the documentation: `make docs` builds it, with warnings as errors."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

import pages  # noqa: E402

import xcoexec  # noqa: E402

project = "xcoexec"
author = copyright = "The xcoexec developers"
version = release = xcoexec.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "generated/README.md"]
default_role = "code"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
nb_execution_mode = "force"
nb_execution_timeout = 170
nb_execution_raise_on_error = True
nb_merge_streams = True
html_theme = "pydata_sphinx_theme"
html_title = f"xcoexec {release}"
html_theme_options = {"show_prev_next": False, "navigation_depth": 2, "secondary_sidebar_items": ["page-toc"]}
html_show_sourcelink = False
linkcheck_anchors = False

# the kernel that runs the notebook says nothing but errors
config = ROOT / "out" / "ipython" / "profile_default" / "ipython_kernel_config.py"
config.parent.mkdir(parents=True, exist_ok=True)
config.write_text("c.IPKernelApp.log_level = 'ERROR'\n")
os.environ["IPYTHONDIR"] = str(config.parent.parent)

generated = HERE / "generated"
generated.mkdir(exist_ok=True)
for name, text in pages.all_pages().items():
    file = generated / name
    if not file.exists() or file.read_text() != text:
        file.write_text(text)
shutil.copyfile(ROOT / "examples" / "tour.ipynb", generated / "tour.ipynb")
shutil.copyfile(ROOT / "CHANGELOG.md", generated / "changelog.md")
