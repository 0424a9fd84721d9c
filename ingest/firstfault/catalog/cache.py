"""Keeps what is slow to derive from the catalog under XDG_CACHE_HOME/firstfault, readable by its owner alone.

A cache that is missing, damaged, foreign or not writable is the same as no cache: nothing here raises for it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

_KEEP = 8  # files of one kind; older ones belong to catalogs that are no longer in use


def cache_root(cache_dir: Path | None = None) -> Path | None:
    """The cache folder, made if needed; None where none can be trusted."""
    if cache_dir is None:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):
            home = os.path.expanduser("~")
            if not os.path.isabs(home):
                return None
            base = os.path.join(home, ".cache")
        cache_dir = Path(base) / "firstfault"
    try:
        cache_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = cache_dir.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return None
        if status.st_mode & 0o077:
            cache_dir.chmod(0o700)
    except OSError:
        return None
    return cache_dir


def read(root: Path | None, kind: str, key: str) -> bytes | None:
    """What was kept under this key, None where nothing was or where it is damaged."""
    if root is None:
        return None
    try:
        content = (root / f"{kind}-{key}").read_bytes()
    except OSError:
        return None
    digest, payload = content[:32], content[32:]
    return payload if hashlib.sha256(payload).digest() == digest else None


def write(root: Path | None, kind: str, key: str, payload: bytes) -> None:
    """Keeps `payload`, whole or not at all."""
    if root is None:
        return
    try:
        handle, name = tempfile.mkstemp(prefix=".new-", dir=root)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(payload).digest() + payload)
            os.replace(name, root / f"{kind}-{key}")
        except OSError:
            os.unlink(name)
            return
        _forget_old(root, kind)
    except OSError:
        return


def _forget_old(root: Path, kind: str) -> None:
    aged = sorted(((path.stat().st_mtime_ns, path) for path in root.glob(f"{kind}-*")), reverse=True)
    for _, path in aged[_KEEP:]:
        path.unlink(missing_ok=True)
