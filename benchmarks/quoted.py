"""What the papers print: `xcoexec.papers.quoted`, by the name that benchmarks use."""

from xcoexec.papers.quoted import KEYS, KINDS, Paper, Quoted, QuotedError, load, papers

__all__ = ["KEYS", "KINDS", "Paper", "Quoted", "QuotedError", "load", "papers"]
