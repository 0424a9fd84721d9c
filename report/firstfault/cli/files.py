"""Writing result files: complete or not there at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from firstfault.cli.messages import CommandError, Status


def replace_file(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there in one step."""
    from firstfault.timeline.place import put

    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        put(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def check_place(path: Path, option: str) -> None:
    """Say clearly where a file cannot be put, before the work is done."""
    folder = path.parent
    if not folder.is_dir():
        raise CommandError(f"{option} {path}: there is no folder {folder}")
    if path.is_dir():
        raise CommandError(f"{option} {path}: this is a directory; give the file to write", Status.USAGE)
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{option} {path}: no permission to write in {folder}")
