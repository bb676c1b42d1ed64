"""What the command line takes: absl's flags, and the commands that argparse tells apart over them."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import importlib.util
import logging
import os
import pathlib
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from absl import app, flags
from absl.flags import argparse_flags

from .. import __version__

FLAGS = flags.FLAGS
WIDTH = 80  # columns of a message
WRONG, INTERRUPTED = 2, 130  # exit codes: what was given is not valid; Ctrl-C
#: what was got and what is valid, as the library's messages say it
GOT = re.compile(r"got (?:--)?(?:\w+[ =])*'?([\w.-]+)'?; valid (?:are|is) (.+?)\.?$")
flags.DEFINE_string(
    "model",
    "lenet",
    "Model of the zoo (an unknown name lists them). With --device or --costs=predicted also a folder with "
    "Transformers' config.json: a token of that decoder.",
)
flags.DEFINE_integer("batch", 1, "Batch size.", lower_bound=1)
flags.DEFINE_string(
    "strategy", "auto", "auto, device, host, edgenn, codl, codl_measured, layer_switch, items or capacity."
)
flags.DEFINE_integer("threads", None, "Host threads (default: the cores this process may use).", lower_bound=1)
flags.DEFINE_string(
    "device",
    "",
    "plan, simulate: a device that exists as numbers (an unknown name lists them), or a TOML file; plan: also several, "
    "such as h100,h100, over which the layers then lie.",
)
flags.DEFINE_string("memory", "auto", "With a GPU: how arrays cross between the halves, auto, mapped or copy.")
flags.DEFINE_string(
    "device_memory", None, "With a GPU: the most that may lie on it, such as 16GiB, or a share of it such as 0.5."
)
flags.DEFINE_string(
    "costs", "measured", "measured, or predicted by what `xcoexec profile` has learned (plan: then nothing is run)."
)
flags.DEFINE_boolean("json", False, "Print JSON instead of tables.")
flags.DEFINE_string("plot", "", "run: also draw the roofline with the layers on it into this PNG.")
flags.DEFINE_list(
    "affinity", None, "Cores to pin host threads to, such as 0,1 (the calling thread then stays out of the work)."
)
flags.DEFINE_string("suite", "", "bench: all strategies on a suite of networks (an unknown name lists them).")
flags.DEFINE_string("variants", "", "bench --suite: only these variants, separated by semicolons.")
flags.DEFINE_string("against", "", "bench --suite: an older run's JSON lines to compare with.")
flags.DEFINE_list("paper", [], "papers: only these, such as edgenn,codl (an unknown name lists them).")
flags.DEFINE_boolean("full", False, "papers: the papers' sizes; goes on where an earlier run stopped.")
flags.DEFINE_string("out", "out", "Folder for the files that demo, bench and papers write.")
flags.DEFINE_string("shapes", "", "explain: the arguments, such as 'f32[1,28,28,1];i32[8]'.")
flags.DEFINE_string("word", "", "cache: clear. explain: FILE.py:function.")


@dataclasses.dataclass(frozen=True)
class Word:
    """A word behind a command: how the help shows it, what it means, and the flag that takes it."""

    shown: str
    help: str
    flag: str


MODEL = Word("MODEL", "a model of the zoo, as --model (default: lenet)", "model")


@dataclasses.dataclass(frozen=True)
class Command:
    """A command: its name, what does it, one line of help, its flags, and the word that may stand behind it."""

    name: str
    run: Callable[[], None]
    help: str
    flags: tuple[str, ...] = ()
    word: Word | None = None


EXAMPLES = {
    "": """
  xcoexec demo                               see it work
  xcoexec run resnet18                       where each layer ran, and how long
  xcoexec bench mobilenet_v2                 against jax.jit, on this machine
  xcoexec explain train.py:step              what of your function can run where
  xcoexec doctor                             is this machine set up well?""",
    "demo": """
  xcoexec demo --out=out                     writes out/plan.png and a timeline""",
    "run": """
  xcoexec run lenet
  xcoexec run resnet18 --batch=8 --threads=2
  xcoexec run resnet18 --plot=roofline.png   (pip install "xcoexec[plot]")""",
    "plan": """
  xcoexec plan squeezenet
  xcoexec plan resnet50 --costs=predicted    nothing is run; see xcoexec profile
  xcoexec plan alexnet --device=jetson-agx-xavier""",
    "bench": """
  xcoexec bench mobilenet_v2
  xcoexec bench --suite=smoke                every strategy, 2 minutes, one page""",
    "profile": """
  xcoexec profile                            learns for --costs=predicted
  xcoexec profile lenet                      the times of one model's layers""",
    "simulate": """
  xcoexec simulate vgg16 --device=khadas-vim3""",
    "papers": """
  xcoexec papers --paper=edgenn,codl --out=out/papers""",
    "explain": """
  xcoexec explain net.py:predict --shapes='f32[1,784];f32[784,10]'
  xcoexec explain net.py:predict             net.py has a function example()
                                             that returns the arguments""",
    "info": """
  xcoexec info
  xcoexec info --json                        for a bug report""",
    "doctor": """
  xcoexec doctor""",
    "cache": """
  xcoexec cache
  xcoexec cache clear""",
}


def hint(word: str, valid: Iterable[str]) -> str:
    """A question behind a message where a known word is near."""
    near = difflib.get_close_matches(word, list(valid), 1, 0.55)
    return f" Did you mean {near[0]}?" if near else ""


def end(message: str) -> NoReturn:
    """Ends the process because of what it was given: `message` on standard error, and exit code 2."""
    print(textwrap.fill(message, WIDTH, break_long_words=False, break_on_hyphens=False), file=sys.stderr)
    sys.exit(WRONG)


class Parser(argparse_flags.ArgumentParser):
    """argparse over absl's flags, whose errors name the nearest word that is valid."""

    def error(self, message: str) -> NoReturn:
        """Ends the process with one sentence."""
        unknown = re.search(r"unrecognized arguments: (\S+)", message)
        choice = re.search(r"invalid choice: '([^']*)'", message)
        help_word = f"`{self.prog} --help` lists what there is."
        if choice:
            names = ", ".join(EXAMPLES_OF)
            got = choice.group(1)
            end(f"xcoexec: got {got}; valid commands are {names}.{hint(got, EXAMPLES_OF)} {help_word}")
        if unknown:
            got = unknown.group(1)
            known = [f"--{name}" for name in FLAGS]
            end(f"xcoexec: got {got}.{hint(got.split('=')[0], known)} {help_word}")
        end(f"xcoexec: {message}. {help_word}")


EXAMPLES_OF = tuple(name for name in EXAMPLES if name)


def parser(commands: Sequence[Command]) -> Parser:
    """The parser of all commands."""
    shape = argparse.RawDescriptionHelpFormatter
    told = "Runs Flax and JAX models on the CPU and the accelerator at the same time."
    top = Parser(
        prog="xcoexec",
        description=told,
        epilog=f"examples:{EXAMPLES['']}\n\n`xcoexec COMMAND --help` has the flags and more examples.",
        formatter_class=shape,
        allow_abbrev=False,
    )
    version = f"xcoexec {__version__}"
    top.add_argument("--version", action="version", version=version)
    below = top.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    for command in commands:
        one = below.add_parser(
            command.name,
            help=command.help,
            description=command.help[0].upper() + command.help[1:] + ".",
            epilog=f"examples:{EXAMPLES[command.name]}",
            formatter_class=shape,
            allow_abbrev=False,
            inherited_absl_flags=_flags_of(command),
        )
        one.add_argument("--version", action="version", version=version)
        if command.word:
            one.add_argument(command.word.flag, nargs="?", metavar=command.word.shown, help=command.word.help)
    return top


def _flags_of(command: Command) -> flags.FlagValues:
    """All flags, of which the command's help shows those that it uses."""
    found = flags.FlagValues()
    for name in FLAGS:
        if name == FLAGS[name].name:  # a short name comes with its flag
            found[name] = FLAGS[name]
    shown = (*command.flags, *((command.word.flag,) if command.word and command.word.flag != "word" else ()))
    for name in shown:
        found.register_key_flag_for_module(sys.argv[0], FLAGS[name])
    return found


def parsed(commands: Sequence[Command], argv: Sequence[str]) -> Command:
    """The command of `argv`, with the flags set. Raises `SystemExit` for what is not valid."""
    top = parser(commands)
    words = [*argv[2:], "--help"] if argv[1:2] == ["help"] else argv[1:]
    try:
        given = top.parse_args(words)
    except flags.Error as e:
        number = re.match(r"flag (--\S+): invalid literal for int", str(e))
        told = f"got {number.group(1)}; valid is a whole number" if number else str(e).removesuffix(".")
        end(f"xcoexec: {told}.")
    if given.command is None:
        top.print_usage(sys.stderr)
        end(f"xcoexec: got no command; valid commands are {', '.join(EXAMPLES_OF)}.")
    command = next(c for c in commands if c.name == given.command)
    word = getattr(given, command.word.flag, None) if command.word else None
    if command.word and word is not None:
        FLAGS[command.word.flag].parse(word)
        FLAGS[command.word.flag].using_default_value = False
    own = {*command.flags, *((command.word.flag,) if command.word else ())}
    ours = {f.name for f in FLAGS.get_flags_for_module(__name__)}
    for name in sorted(ours - own):
        if FLAGS[name].present:
            valid = ", ".join(f"--{n}" for n in sorted(own - {"word"})) or "none"
            end(f"xcoexec {command.name}: got --{name}, which it does not use; valid are {valid}.")
    return command


def run_command(commands: Sequence[Command]) -> None:
    """Parses this process's arguments and runs their command; what is not valid is one sentence and an exit."""

    def run(command: Command) -> None:
        for name in ("jax", "xcoexec"):  # absl shows all that is logged, such as what backends JAX has not found
            log = logging.getLogger(name)
            log.setLevel(log.level or logging.WARNING)
        try:
            command.run()
        except ValueError as e:
            got = GOT.search(str(e))
            end(str(e) + (hint(got.group(1), re.split(r"[ ,]+", got.group(2))) if got else ""))
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)

    app.run(run, flags_parser=lambda argv: parsed(commands, argv))


def wanted(module: str, extra: str, what: str) -> None:
    """Before anything is computed: raises `ValueError` that says what to install where a module is not there."""
    if importlib.util.find_spec(module) is None:
        raise ValueError(f"xcoexec {what}: got no module {module!r}; install it with: pip install 'xcoexec[{extra}]'")


def writable(path: str | os.PathLike[str], flag: str) -> None:
    """Before anything is computed: makes a folder. Raises `ValueError` where nothing can be written to it."""
    try:
        pathlib.Path(path).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as e:
        reason = e.strerror or type(e).__name__
        raise ValueError(f"xcoexec: got --{flag}={os.fspath(path)} ({reason}); valid is a folder of yours.") from None


__all__ = ["FLAGS", "MODEL", "Command", "Word", "end", "hint", "parsed", "parser", "run_command", "wanted", "writable"]
