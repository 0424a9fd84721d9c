"""Owns the small vocabularies of headers: words, letters and numbers of levels, and which fields are numbers."""

from __future__ import annotations

from functools import cache

LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""Levels of a timeline, the lowest first; the number of a level is its place here."""

_WORDS = {
    "TRACE": ("TRACE", "CALL", "FINEST"),
    "DEBUG": (
        "DEBUG",
        "DEBUG1",
        "DEBUG2",
        "DEBUG3",
        "DEBUG4",
        "DEBUG5",
        "DBG",
        "VERBOSE",
        "FINE",
        "FINER",
        "DIAG",
        "V",
        "D",
    ),
    "INFO": ("INFO", "NOTICE", "INFORMATION", "INFORMATIONAL", "NORMAL", "SUCCESS", "DEFAULT", "I", "N"),
    "WARN": ("WARN", "WARNING", "W"),
    "ERROR": ("ERROR", "ERR", "SEVERE", "E"),
    "FATAL": ("FATAL", "CRITICAL", "CRIT", "ALERT", "EMERG", "EMERGENCY", "PANIC", "F", "C", "X"),
}
LEVEL_OF = {word: level for level, words in _WORDS.items() for word in words}
PRIORITY = ("FATAL", "FATAL", "FATAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG")
"""Levels of the severities of syslog; the facility is in the bits above."""

_PRIORITIES = frozenset(str(number) for number in range(192))
LEVEL_GROUPS = ("level", "sev", "pri")

INT_FIELDS = frozenset((
    "rank", "local_rank", "task", "pid", "tid", "gpu", "src_line", "pg_rank", "pg_id", "node_rank", "infra_rank",
    "comm_rank", "comm_nranks", "nvml_dev", "tp_rank", "dp_rank", "pp_rank", "ep_rank", "peer_rank", "seq", "next_seq",
    "peer_seq", "numel_in", "numel_out", "timeout_ms", "timeout_s", "elapsed_ms", "last_enqueued", "last_completed",
    "stuck_s", "src_rank", "exitcode", "signal_no", "child_pid", "victim_pid", "joined", "expected", "peer_port",
    "port", "code", "local_id", "status", "opcode", "rank_a", "rank_b", "group", "idx", "op_n", "n", "xid", "sxid",
    "link",
    "nvswitch",
    "hsa_node", "secs", "lpid", "lline", "jobid", "het_group", "repeated", "dead_task", "attempt", "step",
    "total", "gai",
))  # fmt: skip
FLOAT_FIELDS = frozenset(("loss", "ep_num"))


def level_of(group: str, text: str) -> str | None:
    """The level that a header's word, letter or syslog priority stands for."""
    if group == "pri":
        return PRIORITY[int(text) & 7] if text in _PRIORITIES else None
    return LEVEL_OF.get(text.upper()) if text in (text.upper(), text.lower(), text.capitalize()) else None


@cache
def base_name(group: str) -> str:
    """Field that a group fills: `rank2` is a second place where `rank` may stand."""
    return group[:-1] if len(group) > 1 and group[-1] in "23456789" and not group[-2].isdigit() else group
