"""`python -m xcoexec`: the command line."""

from .cli import main

main()
