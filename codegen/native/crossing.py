"""What crosses between the halves in one launch of the device kernel `cross`, as native code: operands and results are
collected, and launched when there are `PARTS` of a kind, or no more.

Only imported when the native code is not in the cache (see `build.native_address`).
"""

from __future__ import annotations

from .call_layout import (
    BROUGHT_BYTES,
    CROSS_PARAMETERS,
    CROSS_WORDS,
    PARTS,
    SENT_BYTES,
    Brought,
    Cross,
    Operand,
    Relay,
    Result,
    Sent,
    Site,
)
from .enqueue import launch
from .words import ld, st


def clear(values):
    """Nothing is collected yet."""
    for i in range(CROSS_WORDS):
        st(values + 8 * i, 0)


def count(values, which, row_wide, elements):
    """One more part of so many elements of 4 bytes; `which`: the operands' number or the results'."""
    st(values + which, ld(values + which) + 1)
    st(values + Cross.ELEMENTS, ld(values + Cross.ELEMENTS) + elements)
    if row_wide == 0:
        st(values + Cross.NARROW, 1)


def collect_operand(values, row):
    """One more operand, by its row in the site's table."""
    at = values + Cross.OPERANDS + SENT_BYTES * ld(values + Cross.SENT)
    st(at + Sent.SOURCE, ld(row + Operand.SOURCE))
    st(at + Sent.MAPPED, ld(row + Operand.MAPPED))
    st(at + Sent.OUTER, ld(row + Operand.OUTER))
    st(at + Sent.INNER, ld(row + Operand.INNER))
    st(at + Sent.STRIDE, ld(row + Operand.STRIDE))
    st(at + Sent.OFFSET, ld(row + Operand.OFFSET))
    count(values, Cross.SENT, ld(row + Operand.WIDE), ld(row + Operand.OUTER) * ld(row + Operand.INNER))


def collect_result(values, row, out, part):
    """One more result, by its row: `part` is the device half's, `out` what both are put together in."""
    at = values + Cross.RESULTS + BROUGHT_BYTES * ld(values + Cross.BROUGHT)
    st(at + Brought.OUT, out)
    st(at + Brought.MAPPED, ld(row + Result.MAPPED))
    st(at + Brought.PART, part)
    st(at + Brought.OUTER, ld(row + Result.OUTER))
    st(at + Brought.HOST, ld(row + Result.HOST))
    st(at + Brought.DEVICE, ld(row + Result.DEVICE))
    elements = ld(row + Result.OUTER) * (ld(row + Result.HOST) + ld(row + Result.DEVICE))
    count(values, Cross.BROUGHT, ld(row + Result.WIDE), elements)


def raise_flag(values, site, seq):
    """The site's flag is raised once the operands are there that are collected."""
    st(values + Cross.READY_PAGE, ld(site + Site.PAGE))
    st(values + Cross.READY_WORK, ld(site + Site.WORK))
    st(values + Cross.READY_SEQ, seq)


def await_host(values, site, relay, first):
    """The results that are collected wait for the site's host half."""
    st(values + Cross.PAGE, ld(site + Site.PAGE))
    st(values + Cross.WORK, ld(site + Site.WORK))
    st(values + Cross.SEQ, ld(site + Site.SEQ))
    st(values + Cross.LIMIT_NS, ld(relay + Relay.LIMIT_NS))
    st(values + Cross.FIRST, first)


def widen(values):
    """Sizes in elements of 16 bytes, not 4."""
    for i in range(PARTS):
        at = values + Cross.OPERANDS + SENT_BYTES * i
        st(at + Sent.INNER, ld(at + Sent.INNER) // 4)
        st(at + Sent.STRIDE, ld(at + Sent.STRIDE) // 4)
        st(at + Sent.OFFSET, ld(at + Sent.OFFSET) // 4)
        at = values + Cross.RESULTS + BROUGHT_BYTES * i
        st(at + Brought.HOST, ld(at + Brought.HOST) // 4)
        st(at + Brought.DEVICE, ld(at + Brought.DEVICE) // 4)
    st(values + Cross.ELEMENTS, ld(values + Cross.ELEMENTS) // 4)


def cross(values, relay, stream):
    """Launches what is collected, after which nothing is; the driver's code (0: none)."""
    function = ld(relay + Relay.CROSS4)
    if ld(values + Cross.NARROW) == 0:
        widen(values)
        function = ld(relay + Relay.CROSS16)
    # a side stream may still have to run what this one waits for: who waits leaves room on every multiprocessor
    most = ld(relay + Relay.BLOCKS) if ld(values + Cross.SEQ) == 0 else ld(relay + Relay.WAITERS)
    code = launch(relay, function, ld(values + Cross.ELEMENTS), most, values, CROSS_PARAMETERS, stream)
    clear(values)
    return code
