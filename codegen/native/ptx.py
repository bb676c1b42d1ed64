"""The device kernels of an asynchronous host call, generated as PTX through LLVM.

`cross` writes parts of operands into host-mapped memory and raises a flag there; then it waits for another flag, the
host's, and writes the host half's and the device half's part of results into one array each. Either may be left out. It
runs on XLA's own stream, so the order is the stream's: no events, no copies by engines, and a host call costs two small
launches, or one where the next call begins as the one before ends. Where arrays are copied by the copy engines instead,
`cross` (of nothing) only raises the flag behind the copy and `await` holds back the copy of the results.

A kernel that waits never gives up by itself while the host lives: a slow host is no fault. Where no answer can come any
more (the host has written `ABANDONED`, or `limit` nanoseconds have passed, which only a process that stands still lets
happen) it executes `trap`. That ends the kernel with an error which stays in the CUDA context: every later call and
every read of an array on that device raises, in this process, for good. It is the last resort, because a result that
cannot be had must not be read.

Sizes are in elements of 4 or 16 bytes; every parameter is 64 bits wide.
"""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

from .call_layout import ABANDONED, PARTS, SITE_RING, STAMP_BYTES, Page

BLOCK = 256  # threads
UNROLL = 4  # loads in flight of one thread: the way over PCIe is long
REFUSED = "the CUDA driver refused to launch a host call"  # what is said when a kernel of these cannot be launched

_HEAD = """
target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare i64 @llvm.nvvm.read.ptx.sreg.globaltimer()
declare void @llvm.nvvm.barrier0()
declare void @llvm.trap()
"""

_PLACE = """
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %cta = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %blocks = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %before = mul i32 %cta, %threads
  %first32 = add i32 %before, %tid
  %all32 = mul i32 %blocks, %threads
  %first = zext i32 %first32 to i64
  %all = zext i32 %all32 to i64
  %leader = icmp eq i32 %tid, 0
  %headblock = icmp eq i32 %cta, 0
  %master = and i1 %leader, %headblock
"""


def _stamps_of(name: str, flags: str, seq: str) -> str:
    """Where the stamps of a call lie, as `name`."""
    return f"""
  %{name}.slot = urem i64 {seq}, {SITE_RING}
  %{name}.shift = mul i64 %{name}.slot, {STAMP_BYTES}
  %{name}.shift2 = add i64 %{name}.shift, {Page.STAMPS}
  %{name} = getelementptr i8, ptr addrspace(1) {flags}, i64 %{name}.shift2
"""


# waits for the host's flag with one thread and tells all others; traps where it will not come
_AWAIT = f"""
  br i1 %master, label %ask, label %others
ask:
  %asked = call i64 @llvm.nvvm.read.ptx.sreg.globaltimer()
  %done = getelementptr i8, ptr addrspace(1) %flags, i64 {Page.DONE}
  br label %poll
poll:
  %seen = load atomic i64, ptr addrspace(1) %done acquire, align 8
  %there = icmp uge i64 %seen, %seq
  %now = call i64 @llvm.nvvm.read.ptx.sreg.globaltimer()
  %waited = sub i64 %now, %asked
  %late = icmp ugt i64 %waited, %limit
  %leave = or i1 %there, %late
  br i1 %leave, label %tell, label %poll
tell:
  %left = call i64 @llvm.nvvm.read.ptx.sreg.globaltimer()
  %given = icmp ult i64 %seen, {ABANDONED}
  %good = and i1 %there, %given
  br i1 %good, label %publish, label %lost
lost:
  call void @llvm.trap()
  unreachable
publish:
  store atomic i64 %seq, ptr addrspace(1) %published syncscope("device") release, align 8
  br label %gather
others:
  br i1 %leader, label %listen, label %gather
listen:
  %heard = load atomic i64, ptr addrspace(1) %published syncscope("device") acquire, align 8
  %told = icmp uge i64 %heard, %seq
  br i1 %told, label %gather, label %listen
gather:
  ; the barrier makes the leader's acquire everybody's:
  ; plain loads see what the host wrote (and, unlike volatile ones, overlap)
  %came = phi i64 [ %asked, %publish ], [ 0, %others ], [ 0, %listen ]
  %went = phi i64 [ %left, %publish ], [ 0, %others ], [ 0, %listen ]
  call void @llvm.nvvm.barrier0()
  %news = load atomic i64, ptr addrspace(1) %published syncscope("device") acquire, align 8
"""


def _clock(name: str) -> str:
    return f"""
  %{name} = call i64 @llvm.nvvm.read.ptx.sreg.globaltimer()
"""


def _stamps(at: str, **times: int) -> str:
    """Stores clock values at the end of a kernel: an earlier store to the host holds up every release behind it."""
    return "".join(
        f"""
  %{name}.p = getelementptr i64, ptr addrspace(1) %{at}, i64 {index}
  store volatile i64 %{name}, ptr addrspace(1) %{name}.p
"""
        for name, index in times.items()
    )


Source = tuple[str, str, str, str]  # names of (pointer, inner size, row stride, offset)
Sink = tuple[str, str, str]  # names of (pointer, row stride, offset)


def _copy(name: str, typ: str, nbytes: int, way: tuple[str, str], outer: str, source: Source, target: Sink) -> str:
    """A grid-stride loop over `[outer, inner]` elements, `UNROLL` of them in flight; `way`: the blocks before and
    behind it.
    """
    enter, leave = way
    elements = range(UNROLL)
    loads = "".join(_load(name, u, typ, nbytes, source, target) for u in elements)
    stores = "".join(_store(name, u, typ, nbytes, target[0]) for u in elements)
    inner = source[1]
    return f"""
  %{name}.n = mul i64 {outer}, {inner}
  br label %{name}.head
{name}.head:
  %{name}.i = phi i64 [ %first, %{enter} ], [ %{name}.next, %{name}.tail ]
  %{name}.more = icmp ult i64 %{name}.i, %{name}.n
  br i1 %{name}.more, label %{name}.body, label %{leave}
{name}.body:{loads}{stores}
  br label %{name}.tail
{name}.tail:
  %{name}.hop = mul i64 %all, {UNROLL}
  %{name}.next = add i64 %{name}.i, %{name}.hop
  br label %{name}.head
"""


def _load(name: str, u: int, typ: str, nbytes: int, source: Source, target: Sink) -> str:
    """Loads element `u` of those in flight, and finds where it goes.

    One beyond the end is the first one again: the same value, stored twice.
    """
    (pointer, inner, stride, offset), (_, to_stride, to_offset) = source, target
    q = f"%{name}.{u}"
    return f"""
  {q}.step = mul i64 %all, {u}
  {q}.raw = add i64 %{name}.i, {q}.step
  {q}.in = icmp ult i64 {q}.raw, %{name}.n
  {q}.at = select i1 {q}.in, i64 {q}.raw, i64 %{name}.i
  {q}.row = udiv i64 {q}.at, {inner}
  {q}.whole = mul i64 {q}.row, {inner}
  {q}.rest = sub i64 {q}.at, {q}.whole
  {q}.from = mul i64 {q}.row, {stride}
  {q}.from1 = add i64 {q}.from, {q}.rest
  {q}.from2 = add i64 {q}.from1, {offset}
  {q}.p = getelementptr {typ}, ptr addrspace(1) {pointer}, i64 {q}.from2
  {q}.v = load {typ}, ptr addrspace(1) {q}.p, align {nbytes}
  {q}.to = mul i64 {q}.row, {to_stride}
  {q}.to1 = add i64 {q}.to, {q}.rest
  {q}.to2 = add i64 {q}.to1, {to_offset}"""


def _store(name: str, u: int, typ: str, nbytes: int, pointer: str) -> str:
    q = f"%{name}.{u}"
    return f"""
  {q}.tp = getelementptr {typ}, ptr addrspace(1) {pointer}, i64 {q}.to2
  store {typ} {q}.v, ptr addrspace(1) {q}.tp, align {nbytes}"""


def _sends(typ: str, nbytes: int) -> str:
    """`dst[outer, inner] = src[outer, stride][:, offset:]` for each operand; leads from "entry" to "sent"."""
    loops = []
    for k in range(PARTS):
        way = (f"c{k}", f"c{k + 1}" if k + 1 < PARTS else "sent")
        source, target = (f"%src{k}", f"%inner{k}", f"%stride{k}", f"%offset{k}"), (f"%dst{k}", f"%inner{k}", "0")
        loops.append(f"c{k}:" + _copy(f"c{k}", typ, nbytes, way, f"%outer{k}", source, target))
    return "".join(loops)


def _brings(name: str, typ: str, nbytes: int, leave: str) -> str:
    """`out[rows, nh + nd] = host[rows, nh] | dev[rows, nd]` for each result, one half of it; `name`: "d" or "h"."""
    loops = []
    for k in range(PARTS):
        way = (f"{name}{k}", f"{name}{k + 1}" if k + 1 < PARTS else leave)
        pointer, mine, first = (f"%dev{k}", f"%nd{k}", f"%nh{k}") if name == "d" else (f"%host{k}", f"%nh{k}", "0")
        source, target = (pointer, mine, mine, "0"), (f"%out{k}", f"%both{k}", first)
        loops.append(f"{name}{k}:" + _copy(f"{name}{k}", typ, nbytes, way, f"%rows{k}", source, target))
    return "".join(loops)


def _cross(name: str, typ: str, nbytes: int) -> str:
    """The operands; the last block to end raises READY to `ready_seq` (not for 0). Then the results, the host's part
    after DONE has reached `seq` (none for 0). `leads`: 0 for the further results of a call, which leave the stamps of
    its waiting as they are.
    """
    p = "ptr addrspace(1)"
    sent = [
        f"{p} %src{k}, {p} %dst{k}, i64 %outer{k}, i64 %inner{k}, i64 %stride{k}, i64 %offset{k}" for k in range(PARTS)
    ]
    brought = [f"{p} %out{k}, {p} %host{k}, {p} %dev{k}, i64 %rows{k}, i64 %nh{k}, i64 %nd{k}" for k in range(PARTS)]
    flags = f"{p} %ready_flags, {p} %ready_work, i64 %ready_seq"
    last = f"{p} %flags, {p} %work, i64 %seq, i64 %limit, i64 %leads"
    sums = "".join(f"\n  %both{k} = add i64 %nh{k}, %nd{k}" for k in range(PARTS))
    return f"""
define ptx_kernel void @{name}({", ".join([*sent, flags, *brought, last])}) {{
entry:{_PLACE}{_stamps_of("ready_stamps", "%ready_flags", "%ready_seq")}{_stamps_of("stamps", "%flags", "%seq")}{sums}
  %published = getelementptr i8, {p} %work, i64 64
{_clock("start_begin")}
  br label %c0
{_sends(typ, nbytes)}
sent:
  %sends = icmp ne i64 %outer0, 0
  %speaks = icmp ne i64 %ready_seq, 0
  %visible = or i1 %sends, %speaks
  br i1 %visible, label %flush, label %results
flush:
  fence seq_cst
  call void @llvm.nvvm.barrier0()
  %counts = and i1 %leader, %speaks
  %alone = icmp eq i32 %blocks, 1
  br i1 %counts, label %how, label %results
how:
  br i1 %alone, label %raise, label %count
count:
  %old = atomicrmw add {p} %ready_work, i32 1 syncscope("device") acq_rel
  %most = sub i32 %blocks, 1
  %last = icmp eq i32 %old, %most
  br i1 %last, label %reset, label %results
reset:
  store volatile i32 0, {p} %ready_work
  br label %raise
raise:
  %ready = getelementptr i8, {p} %ready_flags, i64 {Page.READY}
  store atomic i64 %ready_seq, {p} %ready release, align 8{_clock("start_end")}
  {_stamps("ready_stamps", start_begin=0, start_end=1)}
  br label %results
results:
  %waits = icmp ne i64 %seq, 0
  br i1 %waits, label %near, label %end
near:{_clock("begin")}
  br label %d0
{_brings("d", typ, nbytes, "mine")}
mine:{_AWAIT}  br label %h0
{_brings("h", typ, nbytes, "mark")}
mark:
  br i1 %master, label %late_stamp, label %end
late_stamp:{_clock("ended")}{_stamps("stamps", ended=5)}
  %heads = icmp ne i64 %leads, 0
  br i1 %heads, label %head_stamp, label %end
head_stamp:{_stamps("stamps", begin=2, came=3, went=4)}  br label %end
end:
  ret void
}}
"""


def _await() -> str:
    """Waits until DONE has reached `seq`."""
    p = "ptr addrspace(1)"
    return f"""
define ptx_kernel void @await({p} %flags, {p} %work, i64 %seq, i64 %limit) {{
entry:{_PLACE}{_stamps_of("stamps", "%flags", "%seq")}
  %published = getelementptr i8, {p} %work, i64 64
{_clock("begin")}
  br label %mine
mine:{_AWAIT}
  br i1 %master, label %late_stamp, label %end
late_stamp:{_stamps("stamps", begin=2, came=3, went=4)}  br label %end
end:
  ret void
}}
"""


_STAMP = """
define ptx_kernel void @stamp(ptr addrspace(1) %target) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %leader = icmp eq i32 %tid, 0
  br i1 %leader, label %read, label %end
read:
  %now = call i64 @llvm.nvvm.read.ptx.sreg.globaltimer()
  store volatile i64 %now, ptr addrspace(1) %target
  br label %end
end:
  ret void
}
"""

#: "4" and "16" are the bytes of an element
KERNELS = ("cross4", "cross16", "stamp", "await")


def module_text() -> str:
    """LLVM IR of all device kernels."""
    text = _HEAD + _STAMP + _await()
    for typ, nbytes in (("i32", 4), ("<4 x i32>", 16)):
        text += _cross(f"cross{nbytes}", typ, nbytes)
    return text.replace("RING", str(SITE_RING)).replace("STAMPS", str(Page.STAMPS)).replace("STAMP", str(STAMP_BYTES))


@functools.lru_cache
def ptx(capability: int = 70) -> str:
    """PTX for a compute capability (70: Volta, the first with system-wide acquire and release) and later ones.

    Raises `RuntimeError` where this llvmlite has no NVPTX target.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    machine = target.create_target_machine(cpu=f"sm_{capability}", features="+ptx64", opt=3)
    module = llvm.parse_assembly(module_text())
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return str(machine.emit_assembly(module))
