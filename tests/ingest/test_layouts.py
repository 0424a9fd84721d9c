"""Layouts that launchers and people leave behind, each with the host, rank and local rank of its files or lines."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest

STEP = "2025-05-12 10:11:13,345 INFO step 1 loss 2.1\n"
WHO = "SELECT host, rank, local_rank FROM sources WHERE path = $1"


def who(made: Any, path: str) -> tuple[Any, ...]:
    found: tuple[Any, ...] = made.connection.execute(WHO, [path]).fetchone()
    return found


def lines_of(made: Any, path: str) -> dict[int, tuple[Any, ...]]:
    query = (
        "SELECT l.line, l.host, l.rank, l.local_rank FROM line_rows l JOIN sources s USING (source_id) WHERE path = $1"
    )
    return {line: tuple(rest) for line, *rest in made.connection.execute(query, [path]).fetchall()}


@pytest.mark.parametrize(
    "pattern",
    [
        "{h}/rank{r}.log", "{h}_rank{r:02d}.log", "rank-{r}@{h}.log", "{h}__r{r}.log", "{r}_{h}.log", "{h}.{r}.log",
        "train-4242-{h}-{r}.out", "{h}/local_rank{l}.log", "{h}/gpu{l}.log", "{h}-gpu{l}.log", "{h}/worker{l}.log",
        "run/{h}/log.{l}", "{h}/{l}.out",
    ],
)  # fmt: skip
def test_names_of_files_whose_lines_say_nothing(read: Any, pattern: str) -> None:
    """Two hosts of two ranks; only the launchers say how many there are, and which node is which."""
    places = [(f"node-0{7 + rank // 2}", rank, rank % 2) for rank in range(4)]
    files = {pattern.format(h=host, r=rank, l=local): STEP * 2 for host, rank, local in places}
    for number, host in enumerate(("node-07", "node-08")):
        command = f"+ torchrun --nnodes=2 --nproc_per_node=2 --node_rank={number} train.py\n"
        files[f"{host}/launch.log" if "{h}/" in pattern else f"launch-{host}.txt"] = command
    made = read(files)
    for host, rank, local in places:
        assert who(made, pattern.format(h=host, r=rank, l=local)) == (host, rank, local)


@pytest.mark.parametrize("pattern", ["{r}.out", "4242/{r}.out", "p{r:02d}.txt", "trainer_{r}_of_4.log", "out.{r}"])
def test_names_of_files_whose_first_line_names_the_writer(read: Any, pattern: str) -> None:
    files = {}
    for rank in range(4):
        start = f"starting rank {rank} of 4 on node-0{7 + rank // 2} local_rank {rank % 2}"
        files[pattern.format(r=rank)] = f"2025-05-12 10:11:12,345 INFO {start}\n{STEP}"
    made = read(files)
    for rank in range(4):
        assert who(made, pattern.format(r=rank)) == (f"node-0{7 + rank // 2}", rank, rank % 2)


def test_two_agents_that_share_one_folder(read: Any) -> None:
    """Nothing in the paths names a host; the tables of both agents stand in the file of the job."""

    def table(host: str, rank: int) -> str:
        rule = "=" * 60
        name = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"
        item = (
            f"[0]:\n  time      : 2025-05-12_10:11:12\n  host      : {host}\n  rank      : {rank} (local_rank: 1)\n"
            "  exitcode  : 1 (pid: 501)\n  error_file: <N/A>\n  traceback : To enable traceback see: x\n"
        )
        return f"{name}: \n{rule}\ntrain.py FAILED\nRoot Cause (first observed failure):\n{item}{rule}\n"

    files = {"slurm-4242.out": table("node-07.cluster.local", 1) + table("node-08.cluster.local", 5)}
    for tree, first in (("none_abcdefgh", 0), ("none_ijklmnop", 4)):
        for local in range(4):
            files[f"{tree}/attempt_0/{local}/stdout.log"] = STEP
            files[f"{tree}/attempt_0/{local}/stderr.log"] = f"[rank{first + 1}]: boom\n" if local == 1 else ""
    made = read(files)
    for local in range(4):
        assert who(made, f"none_abcdefgh/attempt_0/{local}/stdout.log") == ("node-07", local, local)
        assert who(made, f"none_ijklmnop/attempt_0/{local}/stdout.log") == ("node-08", 4 + local, local)


def test_a_tee_whose_role_is_called_rank(read: Any) -> None:
    """`--role rank --tee 3` prints local ranks in the words of global ones; two nodes cannot both have rank 0."""
    files = {}
    for number, host in enumerate(("h100-a", "h100-b")):
        front = "[titan] 2025-05-12 10:11:12,345 - root - INFO - step:"
        said = [f"[rank{local}]:{front} {step}\n" for step in range(3) for local in range(4)]
        files[f"{host}.log"] = "".join(said) + f"[rank2]:[rank{4 * number + 2}]: RuntimeError: boom\n"
    made = read(files)
    assert lines_of(made, "h100-b.log")[3] == ("h100-b", 6, 2)
    assert lines_of(made, "h100-a.log")[4] == ("h100-a", 3, 3)


def test_a_pod_over_the_runtime_over_the_tee_over_the_rank(read: Any) -> None:
    lines = []
    for number, pod in enumerate(("ft-master-0", "ft-worker-0")):
        front = f"[pod/{pod}/pytorch] 2025-05-12T10:11:12.3456Z"
        lines += [
            f"{front} + torchrun --nnodes=2 --nproc_per_node=2 --node_rank={number} --tee 3 train.py",
            f"{front} stderr F [default1]:[rank{2 * number + 1}]: RuntimeError: boom",
            f"{front} [default0]:step 3 loss 2",
        ]
    found = lines_of(read({"all.txt": "\n".join(lines) + "\n"}), "all.txt")
    assert (found[2], found[3]) == (("ft-master-0", 1, 1), ("ft-master-0", 0, 0))
    assert (found[5], found[6]) == (("ft-worker-0", 3, 1), ("ft-worker-0", 2, 0))


def test_labels_of_srun_count_ranks(read: Any) -> None:
    ranks = [f"{task:2d}: step {step} loss 2.1" for step in range(3) for task in range(12)]
    ranks += ["srun: error: node-08: task 7: Killed", "srun: error: node-07: tasks 0-5: Terminated"]
    found = lines_of(read({"slurm-991.out": "\n".join(ranks) + "\n"}), "slurm-991.out")
    assert (found[1][:2], found[8][:2]) == (("node-07", 0), ("node-08", 7))


def test_labels_of_srun_count_nodes(read: Any) -> None:
    nodes = []
    for number, host in enumerate(("cn-1", "cn-2")):
        comm = f"comm 0x5 rank {4 * number} nranks 8 cudaDev 0 busId 4e000 commId 0x7a - Init COMPLETE"
        nodes += [
            f"{number}: + torchrun --nnodes=2 --nproc_per_node=4 --node_rank={number} train.py",
            f"{number}: {host}:{500 + number}:600 [0] NCCL INFO {comm}",
            f"{number}: [rank{4 * number + 3}]: RuntimeError: boom",
        ]
    found = lines_of(read({"job.out": "\n".join(nodes) + "\n"}), "job.out")
    assert (found[2][:2], found[3][:2], found[6][:2]) == (("cn-1", 0), ("cn-1", 3), ("cn-2", 7))


def test_an_archive_of_each_node_names_its_host(read: Any) -> None:
    files = {}
    for number, host in enumerate(("gpu-a01", "gpu-a02")):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w:gz") as archive:
            for local in range(2):
                text = f"[rank{2 * number + local}]: RuntimeError: boom\n".encode()
                member = tarfile.TarInfo(f"tmp/none_abcdefg{number}/attempt_0/{local}/stderr.log")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text))
        files[f"{host}.tar.gz"] = made.getvalue()
    assert who(read(files), "gpu-a02.tar.gz!/tmp/none_abcdefg1/attempt_0/1/stderr.log") == ("gpu-a02", 3, 1)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["mpirun -np 4 -H tf-a:2,tf-b:2 python train.py", "[1,0]<stderr>:step 1", "[1,3]<stderr>:step 1"],
            {2: ("tf-a", 0), 3: ("tf-b", 3)},
        ),
        (["[1,3][n1x:803]<stdout>: step 1"], {1: ("n1x", 3)}),
        (
            [*[f"[{rank}] step 1" for rank in (3, 2, 1, 0)] * 4, "=   RANK 2 PID 4711 RUNNING AT node-08"],
            {1: (None, 3), 2: ("node-08", 2)},
        ),
        (
            [
                "w-1: [2025-05-12 10:11:12,346] [INFO] [launch.py:163:main] "
                "global_rank_mapping=defaultdict(<class 'list'>, {'w-1': [0, 1], 'w-2': [2, 3]})",
                *["w-1: [rank0]: RuntimeError: boom", "w-2: [rank3]: RuntimeError: boom"] * 4,
            ],
            {2: ("w-1", 0), 3: ("w-2", 3)},
        ),
        (
            [
                "(T pid=40) - (node_id=aa, ip=10.0.0.7, pid=41) world_rank=0, local_rank=0, node_rank=0",
                "(T pid=40) - (node_id=bb, ip=10.0.0.8, pid=43) world_rank=1, local_rank=0, node_rank=1",
                "\x1b[36m(RayTrainWorker pid=43, ip=10.0.0.8)\x1b[0m boom [repeated 3x across cluster]",
            ],
            {3: ("10.0.0.8", 1)},
        ),
        (
            ["2025-05-12 10:11:12,345 [WARNING] [node-07] [workload:11(3) infra:1(0)] file.py:210 msg"],
            {1: ("node-07", 11)},
        ),
        (["May 12 10:11:12 gpu-n2 train[47]: [rank2]: RuntimeError: boom"], {1: ("gpu-n2", 2)}),
        (
            [f"ft-worker-{pod} pytorch [rank{pod}]: RuntimeError: boom" for pod in (0, 1)] * 4,
            {1: ("ft-worker-0", 0), 2: ("ft-worker-1", 1)},
        ),
    ],
    ids=["mpirun", "prrte", "hydra", "deepspeed", "ray", "nvrx", "journal", "stern"],
)
def test_lines_of_launchers(read: Any, lines: list[str], expected: dict[int, tuple[Any, ...]]) -> None:
    found = lines_of(read({"job.log": "\n".join(lines) + "\n"}), "job.log")
    assert {line: found[line][:2] for line in expected} == expected
