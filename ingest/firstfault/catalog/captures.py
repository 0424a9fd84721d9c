"""The closed set of capture names, and what a numbered alternative of one counts as. docs/captures.md explains them."""

from __future__ import annotations

NAMES = frozenset(
    (
        *("rank", "ranks"),
        *("local_rank", "node_rank", "task", "tasks", "world_size"),
        *("pg_rank", "pg_ranks", "pg_id", "pg_name", "pg_desc", "pg_guid"),
        *("comm", "comm_id", "comm_rank", "comm_ranks", "comm_size"),
        *("tp_rank", "dp_rank", "pp_rank", "process_index"),
        *("host", "hosts", "ip", "pod", "container", "node", "instance", "alias"),
        *("pid", "tid", "child_pid", "victim_pid", "process", "thread"),
        *("gpu", "nvml_dev", "bus_id", "uuid", "xid", "sxid", "link", "hsa_node", "device"),
        *("hca", "port", "ifname", "gid", "lid"),
        *("peer", "peer_port", "peer_rank", "peer_host", "peer_ip", "server"),
        *("seq", "op", "peer_op", "peer_seq", "numel_in", "numel_out", "shape", "dtype"),
        *("timeout_ms", "timeout_s", "elapsed_ms", "elapsed_s"),
        *("last_enqueued", "last_started", "last_completed", "index"),
        *(
            "exitcode",
            "signal",
            "signal_no",
            "errno",
            "status",
            "status_name",
            "vendor_err",
            "opcode",
            "code",
            "result",
        ),
        *("path", "key", "url", "name", "library", "symbol", "function", "src_file", "src_line"),
        *("bytes", "tried", "total", "free", "used", "limit", "count", "joined", "expected"),
        *("version", "version_a", "version_b"),
        *("step", "epoch", "total_steps", "loss", "seconds"),
        *("exception", "reason", "event", "state", "text", "user", "jobid", "stepid", "cgroup"),
        *("offset_s", "boot_epoch", "epoch_s"),
    )
)


def base_name(name: str) -> str | None:
    """The name that a group counts as: `peer2` is `peer`. None for a name outside the set."""
    if name in NAMES:
        return name
    return name[:-1] if name[-1:] in ("2", "3") and name[:-1] in NAMES else None
