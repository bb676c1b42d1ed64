"""The disk cache: files of this user alone, each with a header of its own, and never used unseen.

A file is named by what it holds and by the format's version. Its first line says of which kind it is and carries a
hash over kind, name and content, so that no file is taken for another. What others could have written is not read: a
file has to be regular, no link, this user's own and closed to the writes of others, and so has the folder. The folders
above it may belong to others, as /tmp does: who exchanges the folder there puts one of his own in its place, which is
refused. The hash finds damage; it is no signature. Nothing on disk is ever unpickled.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
import os
import pathlib
import stat
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar

from ..environment import cache_folder
from .schema import Misfit, Schema, parse

T = TypeVar("T")
FORMAT = 2  # of the files; a new one is a new name
MOST = {"object": 1 << 24}  # bytes of a file by its kind
MOST_RECORD = 1 << 25
LONGEST = 120  # characters of a name that are kept; file systems take 255
OTHERS = stat.S_IWGRP | stat.S_IWOTH
log = logging.getLogger("xcoexec")
_told: set[tuple[str, str]] = set()  # (folder, fault) that a warning has named


class Refused(Exception):
    """A file that is there and is not read; the text says why."""


def folder() -> pathlib.Path | None:
    """`$XCOEXEC_CACHE_DIR`, else ~/.cache/xcoexec; None where it is empty, unwritable or open to others."""
    root = cache_folder()
    if not root:
        return None
    path = pathlib.Path(root)
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        fault = _foreign(path.stat()) or ("is a link that belongs to another user" if _another(path.lstat()) else "")
    except OSError:
        return None
    if fault:
        _tell(
            root,
            f"{fault}, so that it is not used; valid is a folder that only its owner may write to",
        )
        return None
    return path if os.access(path, os.W_OK) else None


def contents(path: str | os.PathLike[str], most: int, ours: bool = False) -> bytes:
    """The bytes of a regular file of at most `most` bytes. `ours`: a file of this user alone, and no link.

    It is opened once and looked at before it is read, so that neither a pipe nor a device holds the reader up. Raises
    `OSError` where it cannot be opened or read, and `Refused` for a file that is something else or larger.
    """
    names = ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY", *(("O_NOFOLLOW",) if ours else ()))
    if ours and not hasattr(os, "O_NOFOLLOW") and os.path.islink(path):
        raise Refused("is a link")
    try:
        descriptor = os.open(path, sum(getattr(os, name, 0) for name in names) | os.O_RDONLY)
    except OSError:
        if ours and os.path.islink(path):
            raise Refused("is a link") from None
        raise
    try:
        found = os.fstat(descriptor)
        fault = "" if stat.S_ISREG(found.st_mode) else "is no regular file"
        fault = fault or (_foreign(found) if ours else "")
        if fault:
            raise Refused(fault)
        with open(descriptor, "rb", closefd=False) as f:
            data = f.read(most + 1) if found.st_size <= most else b""
        if found.st_size > most or len(data) > most:
            raise Refused(f"has more than {most} bytes")
        return data
    finally:
        os.close(descriptor)


def _another(found: os.stat_result) -> bool:
    """Whether a file is neither this user's nor the administrator's. Without owners, files are the user's."""
    return hasattr(os, "geteuid") and found.st_uid not in (os.geteuid(), 0)


def _foreign(found: os.stat_result) -> str:
    """Why others could have written a file or folder; empty where only this user could."""
    if not hasattr(os, "geteuid"):
        return ""
    if found.st_uid != os.geteuid():
        return "belongs to another user"
    return f"may be written by others (mode {stat.S_IMODE(found.st_mode):o})" if found.st_mode & OTHERS else ""


def _tell(root: str, fault: str) -> None:
    """One warning for each fault of a folder."""
    if (root, fault) not in _told:
        _told.add((root, fault))
        log.warning("xcoexec: the cache folder %s %s.", root, fault)


def path_of(kind: str, name: str, root: pathlib.Path) -> pathlib.Path:
    """Where something is kept in the folder `root`; the end of a long name is a hash."""
    if len(name) > LONGEST:
        name = f"{name[:LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return root / f"{name}.v{FORMAT}.{'o' if kind == 'object' else 'json'}"


def _header(kind: str, name: str, payload: bytes) -> bytes:
    return f"xcoexec {FORMAT} {kind} {hashlib.sha256(f'{kind} {name} '.encode() + payload).hexdigest()}\n".encode()


def read(kind: str, name: str, root: pathlib.Path | None = None) -> bytes | None:
    """The bytes that are kept under a kind and a name, or None; one line in the log says why a file that is there is
    not used.
    """
    root = root or folder()
    if root is None:
        return None
    path = path_of(kind, name, root)
    try:
        data = contents(path, MOST.get(kind, MOST_RECORD), ours=True)
        head, _, payload = data.partition(b"\n")
        if head + b"\n" != _header(kind, name, payload):
            raise Refused("is damaged or of another kind")
    except Refused as e:
        unused(path, str(e))
        return None
    except OSError:
        return None
    return payload


def unused(path: pathlib.Path, why: str) -> None:
    """A file that does not fit goes, with a line in the log: what is made anew is not always worth keeping."""
    log.warning("xcoexec: the cache file %s %s; it is made anew.", path, why)
    with contextlib.suppress(OSError):  # a folder, or one that cannot be written
        path.unlink()


def write(kind: str, name: str, payload: bytes, root: pathlib.Path | None = None) -> None:
    """Keeps bytes under a kind and a name: owner-only, whole or not at all. Neither a full disk nor a missing folder is
    an error.
    """
    root = root or folder()
    if root is None:
        return
    try:
        descriptor, part = tempfile.mkstemp(prefix=".part-", dir=root)
    except OSError as e:
        _tell(str(root), f"cannot be written ({e.strerror})")
        return
    try:
        with open(descriptor, "wb") as f:
            f.write(_header(kind, name, payload) + payload)
        os.replace(part, path_of(kind, name, root))
    except OSError as e:
        _tell(str(root), f"cannot be written ({e.strerror})")
    finally:  # also of a write that is interrupted; of a whole one no part is left
        with contextlib.suppress(OSError):
            os.unlink(part)


@dataclasses.dataclass(frozen=True)
class Record:
    """A kind of JSON records, and what fits one."""

    kind: str
    schema: Schema

    def load(self, name: str) -> Any:
        """The record of a name; None where there is none, or where it does not fit (one line in the log says so)."""
        return self.read(name, lambda value: value)

    def read(self, name: str, make: Callable[[Any], T]) -> T | None:
        """`make` of the record of a name; None where there is none, it does not fit, or `make` raises `ValueError`."""
        payload = read(self.kind, name)
        if payload is None:
            return None
        try:
            value = parse(payload, MOST_RECORD)
            self.schema.check(value)
            return make(value)
        except ValueError as e:
            root = folder()
            unused(path_of(self.kind, name, root) if root else pathlib.Path(name), f"does not fit ({e})")
            return None

    def forget(self, name: str) -> None:
        """Keeps a record no longer."""
        root = folder()
        if root is not None:
            with contextlib.suppress(OSError):
                path_of(self.kind, name, root).unlink()

    def store(self, name: str, value: object) -> None:
        """Keeps a record. One that would not fit when it is read is not written; a line in the log says so."""
        try:
            text = json.dumps(value)
            self.schema.check(json.loads(text))
        except (Misfit, TypeError, ValueError) as e:
            log.warning("xcoexec: the record %s is not kept (%s).", name, str(e))
            return
        write(self.kind, name, text.encode())


__all__ = ["Record", "Refused", "contents", "folder", "path_of", "read", "unused", "write"]
