"""A file that keeps a stream while it is passed on. A disk that fills ends the keeping, never the stream."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType


class Kept:
    """Bytes of one stream in a file, as they came or with the time of arrival in front of each line.

    `lost` says why the file is not complete, None while it is. Bytes are in the file once `write` returns.
    """

    def __init__(self, path: Path, stamped: bool = False) -> None:
        self.path, self.lost = path, None
        self._stamped, self._begins = stamped, True
        self._file = path.open("wb", buffering=0)

    lost: str | None

    def write(self, data: bytes) -> None:
        """Keep these bytes."""
        if self.lost is not None or not data:
            return
        view = memoryview(self._with_stamps(data) if self._stamped else data)
        try:
            while view:
                view = view[self._file.write(view) or 0 :]
        except OSError as error:
            self.lost = f"{self.path}: {error.strerror or error}; what came after is not kept"

    def _with_stamps(self, data: bytes) -> bytes:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z ").encode()
        ended = data.endswith(b"\n")
        body = data[:-1] if ended else data
        out = (now if self._begins else b"") + body.replace(b"\n", b"\n" + now) + (b"\n" if ended else b"")
        self._begins = ended
        return out

    def close(self) -> None:
        """Close the file; an error of the last bytes counts as lost."""
        try:
            self._file.close()
        except OSError as error:
            self.lost = self.lost or f"{self.path}: {error.strerror or error}"

    def __enter__(self) -> Kept:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
