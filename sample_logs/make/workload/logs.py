"""How the sample program logs: one function, several line formats that real training programs use."""

from __future__ import annotations

import logging
import os
import sys

STYLES = {
    "comma": ("%(asctime)s %(levelname)s [%(name)s] %(message)s", None),
    "rank": ("[%(asctime)s] [rank %(rank)s] [%(levelname)s] %(message)s", "%Y-%m-%d %H:%M:%S"),
    "pipe": (
        "%(asctime)s.%(msecs)03d | %(levelname)-8s | %(name)s:%(funcName)s:%(lineno)d - %(message)s",
        "%Y-%m-%d %H:%M:%S",
    ),
    "iso": ("%(asctime)s.%(msecs)03d%(zone)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S"),
    "titan": ("[titan] %(asctime)s - %(name)s - %(levelname)s - %(message)s", None),
    "short": ("%(asctime)s %(message)s", "%H:%M:%S"),
    "bare": ("%(message)s", None),
}


class _Fields(logging.Filter):
    """Adds the rank and the zone to each record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.rank = os.environ.get("RANK", "0")
        record.zone = "+00:00"
        return True


def get_logger(style: str, everyone: bool) -> logging.Logger:
    """The program's logger; ranks other than 0 stay at WARNING unless `everyone` speaks."""
    layout, dates = STYLES[style]
    handler = logging.StreamHandler(sys.stdout if style in {"bare", "titan"} else sys.stderr)
    handler.setFormatter(logging.Formatter(layout, dates))
    handler.addFilter(_Fields())
    log = logging.getLogger("train")
    log.handlers[:] = [handler]
    log.propagate = False
    quiet = not everyone and os.environ.get("RANK", "0") != "0"
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    return log
