"""One of each that `docs/extending.md` describes, each in one file."""
