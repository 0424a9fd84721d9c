"""Jobs in which something goes wrong on one rank."""

from __future__ import annotations

from hosts import HostSpec
from jobs import ALL, Find, Job, Truth, When, kill_loader_worker, remove, shorten, two

JOBS: tuple[Job, ...] = (
    Job(
        "healthy-pair",
        "two hosts, eight ranks, everything goes well",
        two("cn-0417", "cn-0418"),
        Truth("none"),
        train=f"--steps 25 {ALL} --checkpoints /srv/ckpt",
    ),
    Job(
        "batch-width-rank5",
        "rank 5 gets a batch with too few columns",
        two("trn-17", "trn-18"),
        Truth(
            "python-exception",
            (5,),
            ("trn-18",),
            (Find(r"mat1 and mat2 shapes cannot be multiplied"),),
            trap=(
                "seven ranks print 'Connection closed by peer' in the same second, and the other host's "
                "launcher names one of its own ranks as root cause"
            ),
        ),
        train=f"--steps 40 {ALL}",
        faults="width rank=5 step=14 columns=96",
    ),
    Job(
        "kill9-rank2-tee",
        "rank 2 is killed by SIGKILL",
        two("lx-node-03", "lx-node-04"),
        Truth(
            "process-killed",
            (2,),
            ("lx-node-03",),
            (Find(r"exitcode\s*: -9\b"), Find(r"Signal 9 \(SIGKILL\)")),
            trap=(
                "rank 2 prints nothing; a peer that loses its connections aborts (SIGABRT), and the launcher "
                "names that peer as root cause"
            ),
        ),
        train=f"--steps 40 --log-style rank {ALL}",
        faults="kill rank=2 step=11",
        layout="tee",
        rendezvous="static",
    ),
    Job(
        "mute-rank6",
        "rank 6 stops without a word",
        two("v100-r2n5", "v100-r2n6"),
        Truth(
            "collective-rank-absent", (6,), ("v100-r2n6",), trap="seven ranks print time-outs, rank 6 prints nothing"
        ),
        train=f"--steps 40 --log-style pipe --timeout 15 {ALL}",
        faults="hang rank=6 step=9",
    ),
    Job(
        "handles-rank7-loader",
        "the data loader of rank 7 keeps its shards open and meets a low limit of open files",
        two("mlw-1", "mlw-2"),
        Truth(
            "open-files-exhausted",
            (7,),
            ("mlw-2",),
            (Find(r"\[Errno 24\] Too many open files|Too many open files\. Communication"),),
            trap=(
                "rank 7 ends with a bare EOFError, which is all that its error file says; the cause stands "
                "above it, and the other host's launcher names a rank of its own"
            ),
        ),
        train=f"--steps 80 --workers 2 --keep-open --pause 0.03 {ALL}",
        faults="nofile rank=7 limit=48",
        shards=1024,
        samples=16,
    ),
    Job(
        "small-shm-second-host",
        "/dev/shm of the second host is far too small for its data-loader workers",
        two("ws-dock-a", "ws-dock-b", shm="1M"),
        Truth(
            "shm-exhausted",
            (4, 5, 6, 7),
            ("ws-dock-b",),
            (Find(r"unable to allocate shared memory", "ws-dock-b.log"),),
            also_ranks=((5, 6, 7),),
            trap="'No space left on device' reads like a full disk",
        ),
        train="--steps 40 --workers 2 --log-style iso --width 1024",
        layout="tee",
        samples=512,
        width=1024,
    ),
    Job(
        "segfault-stale-restart",
        (
            "rank 3 dies of a segmentation fault; after the restart the second host's workers still read "
            "addresses of the first attempt"
        ),
        two("epyc-01", "epyc-02"),
        Truth(
            "process-segfault",
            (3,),
            ("epyc-01",),
            (Find(r"exitcode\s*: -11\b"), Find("Segmentation fault")),
            trap=(
                "the launchers end with the second attempt: connections refused on every rank, and the first "
                "ranks in the list named as root cause"
            ),
        ),
        train=f"--steps 40 --checkpoints /srv/ckpt --save-every 6 {ALL}",
        faults="segfault rank=3 step=9 attempt=0",
        torchrun="--max-restarts=1",
        env={"PYTHONFAULTHANDLER": "1"},
        deadline=150,
    ),
    Job(
        "segfault-both-attempts",
        "rank 3 dies of a segmentation fault, is restarted with all others, and dies of it again",
        two("epyc-05", "epyc-06"),
        Truth(
            "process-segfault",
            (3,),
            ("epyc-05",),
            (Find(r"Signal 11 \(SIGSEGV\)"), Find(r"exitcode\s*: -11\b"), Find("Segmentation fault")),
            trap="the other launcher never sees the fault: its ranks lose their connections, in both attempts",
        ),
        train=f"--steps 40 --checkpoints /srv/ckpt --save-every 6 {ALL}",
        faults="segfault rank=3 step=9",
        torchrun="--max-restarts=1 --monitor-interval=2",
        env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
        deadline=150,
    ),
    Job(
        "segfault-then-completed",
        "rank 1 dies of a segmentation fault in the first attempt; the second attempt resumes and completes",
        two("epyc-03", "epyc-04"),
        Truth(
            "none", trap="a segmentation fault and seven broken connections, but the restarted workers finish the job"
        ),
        train=f"--steps 25 --checkpoints /srv/ckpt --save-every 5 --log-style titan {ALL}",
        faults="segfault rank=1 step=12 attempt=0",
        torchrun="--max-restarts=2 --monitor-interval=2",
        layout="tee",
        env={"LOGLEVEL": "INFO", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
        deadline=150,
    ),
    Job(
        "saver-too-slow",
        "rank 0 writes a checkpoint for longer than the others wait at the barrier",
        two("nvl-08", "nvl-09"),
        Truth(
            "collective-rank-absent",
            (0,),
            ("nvl-08",),
            (Find(r"saving checkpoint /srv/ckpt/step_000019"),),
            also=("checkpoint-save-failed", "filesystem-io-error"),
            trap="seven ranks time out in a barrier; rank 0, which is busy writing, prints no error before it is ended",
        ),
        train="--steps 40 --checkpoints /srv/ckpt --save-every 20 --timeout 10",
        faults="slow-write rank=0 seconds=60",
        layout="tee",
    ),
    Job(
        "quiet-leave-rank5",
        "rank 5 leaves with exit status 0 in the middle of the training",
        two("bw-host1", "bw-host2"),
        Truth(
            "collective-rank-absent",
            (5,),
            ("bw-host2",),
            trap="rank 5's launcher counts it as succeeded and never lists it; the others print connection errors",
        ),
        train=f"--steps 40 --log-style rank {ALL}",
        faults="exit rank=5 step=13",
    ),
    Job(
        "short-shard-list",
        "61 shards on 8 ranks: ranks 5, 6 and 7 have one shard less and reach the end of the epoch first",
        two("rec-1", "rec-2"),
        Truth(
            "uneven-inputs",
            (5, 6, 7),
            ("rec-2",),
            (Find(r"epoch 0 done after 28 batches"),),
            also=("collective-desync", "collective-rank-absent"),
            also_ranks=((7,),),
            trap=(
                "rank 7 aborts in native code on a size that it did not expect, and its launcher names it; "
                "the epoch that ended early on three ranks is the cause"
            ),
        ),
        train=f"--steps 90 --evaluate --pause 0.05 --timeout 12 {ALL}",
        shards=61,
    ),
    Job(
        "detail-shapes",
        "rank 3 reduces a tensor of another size, with TORCH_DISTRIBUTED_DEBUG=DETAIL",
        two("dbg-n1", "dbg-n2"),
        Truth(
            "collective-desync",
            (3,),
            ("dbg-n1",),
            (Find(r"Rank 3 is running collective"),),
            trap=(
                "every rank raises a mismatch with one other rank; rank 3 is in all pairs, and the launchers "
                "name ranks of their own"
            ),
        ),
        train=f"--steps 40 --evaluate --timings {ALL}",
        faults="extra-metric rank=3",
        env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
        layout="tee",
        shards=32,
    ),
    Job(
        "detail-debug-crash",
        "TORCH_DISTRIBUTED_DEBUG=DETAIL makes every rank crash while the model is wrapped",
        two("dbg-n3", "dbg-n4"),
        Truth(
            "process-segfault",
            (),
            (),
            (Find(r"Fatal Python error: Segmentation fault"), Find(r"exitcode\s*: -11\b")),
            also_ranks=(tuple(range(8)),),
            trap="all ranks of both hosts crash alike; the one that a launcher lists first did not begin it",
        ),
        train=f"--steps 40 {ALL}",
        env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
        layout="tee",
    ),
    Job(
        "guard-names-absentee",
        "rank 4 hangs; a monitored barrier on rank 0 says so",
        two("mb-a1", "mb-a2"),
        Truth(
            "collective-rank-absent",
            (4,),
            ("mb-a2",),
            (Find(r"Ranks? 4 failed to pass monitoredBarrier"),),
            trap="the only rank with a clear error is rank 0, which is innocent",
        ),
        train=f"--steps 40 --guard-every 5 --timeout 10 {ALL}",
        faults="hang rank=4 step=15",
        layout="plain",
    ),
    Job(
        "survived-then-fatal",
        "ranks 2 and 6 cannot reach the tracking server and say so with tracebacks, to no harm; rank 1 stops for real",
        two("wb-04", "wb-05"),
        Truth(
            "loss-nan-or-diverged",
            (1,),
            ("wb-04",),
            (Find(r"FloatingPointError: loss is nan"),),
            trap=(
                "the first tracebacks of the job, of ranks 2 and 6, are of errors that the program caught and survived"
            ),
        ),
        train=f"--steps 40 --tracker --check-loss local {ALL}",
        faults="not-finite rank=1 step=22",
    ),
    Job(
        "two-faults-at-once",
        "rank 1 misses a file and, within the same second, rank 6 of the other host fails for a reason of its own",
        (HostSpec("dual-x1", data="data-x1"), HostSpec("dual-x2")),
        Truth(
            "unknown",
            determined=False,
            collateral=(0, 2, 3, 4, 5, 7),
            trap="each launcher names its own rank, and neither error is a consequence of the other",
            missing_fact="which of the two errors came first: both bear the same second and no finer time",
        ),
        train=f"--steps 40 {ALL}",
        faults="width rank=6 step=12 columns=64; sleep rank=6 step=12 seconds=0.4; "
        "sleep rank=0+2+3+4+5+7 step=12 seconds=5",
        prepare=(remove("data-x1", 25),),
    ),
    Job(
        "two-faults-apart",
        "rank 1 misses a file; two seconds later, before anyone could tell it, rank 6 fails for a reason of its own",
        (HostSpec("dual-y1", data="data-y1"), HostSpec("dual-y2")),
        Truth(
            "data-missing",
            (1,),
            ("dual-y1",),
            (Find(r"FileNotFoundError: .*shard-00025"),),
            trap="two independent errors: rank 6's shape error comes later and is not a consequence of rank 1's",
        ),
        train=f"--steps 40 {ALL}",
        faults="width rank=6 step=12 columns=64; sleep rank=6 step=12 seconds=2; "
        "sleep rank=0+2+3+4+5+7 step=12 seconds=9",
        torchrun="--monitor-interval=4",
        prepare=(remove("data-y1", 25),),
    ),
    Job(
        "address-space-rank4",
        "rank 4 meets a limit of its address space",
        two("mem-p1", "mem-p2"),
        Truth(
            "host-oom-kill",
            (4,),
            ("mem-p2",),
            (Find(r"^(\[.*\]: ?)?MemoryError|\"MemoryError|MemoryError\\b"),),
            also=("python-exception",),
        ),
        train=f"--steps 40 --log-style pipe {ALL}",
        faults="address-space rank=4 step=5 spare=220; grow rank=4 mb=20 step=6",
        layout="plain",
    ),
    Job(
        "nan-everywhere",
        "the learning rate makes the loss infinite on all ranks at the same step",
        two("num-1", "num-2"),
        Truth(
            "loss-nan-or-diverged",
            (),
            (),
            (Find(r"FloatingPointError: loss is nan"),),
            also_ranks=(tuple(range(8)),),
            trap="every rank raises the same error, and each launcher names one of its own as root cause",
        ),
        train=f"--steps 40 --check-loss mean --lr 1e19 --log-style rank {ALL}",
    ),
    Job(
        "loader-worker-killed",
        "a data-loader worker of rank 3 is killed",
        two("dl-06", "dl-07"),
        Truth(
            "dataloader-worker-died",
            (3,),
            ("dl-06",),
            (Find(r"DataLoader worker \(pid(\(s\))? [\d, ]+\) (is killed by signal|exited unexpectedly)"),),
        ),
        train=f"--steps 200 --workers 2 {ALL}",
        whens=(When(0, r"step 9/", kill_loader_worker(0, 3)),),
        samples=512,
    ),
    Job(
        "cut-off-shard-rank6",
        "a shard that rank 6 reads was cut off",
        (HostSpec("npz-1"), HostSpec("npz-2", data="data-b")),
        Truth(
            "data-corrupt",
            (6,),
            ("npz-2",),
            (Find(r"cannot reshape array|No data left in file|Failed to read all data"),),
            also=("python-exception",),
        ),
        train=f"--steps 40 --log-style iso {ALL}",
        prepare=(shorten("data-b", 30, 9000),),
        layout="tee+tree",
    ),
    Job(
        "hang-in-tensor-group",
        (
            "tensor-parallel pairs and data-parallel groups of four; rank 5 hangs, so its pair waits for it "
            "and the rest for both"
        ),
        two("mp-11", "mp-12"),
        Truth(
            "collective-rank-absent",
            (5,),
            ("mp-12",),
            trap=(
                "rank 4 waits in the pair, ranks 0, 2 and 6 wait for rank 4, ranks 1, 3 and 7 for rank 5; "
                "rank 5 alone prints nothing"
            ),
        ),
        train=f"--steps 40 --tensor-parallel 2 --timeout 12 {ALL}",
        faults="hang rank=5 step=11",
    ),
    Job(
        "slow-rank6-timings",
        "rank 6 takes four times as long for each step; nothing fails; the logs of a running job",
        two("st-03", "st-04"),
        Truth(
            "straggler",
            (6,),
            ("st-04",),
            (),
            trap="seven ranks show long communication: they wait; the slow one shows the least",
        ),
        train=f"--steps 100000 --timings --log-every 5 {ALL}",
        faults="sleep rank=6 seconds=0.4",
        stop_when=r"step 100 ",
        layout="tee",
    ),
    Job(
        "healthy-with-tracebacks",
        "two ranks cannot reach the tracking server, which harms nothing: the job completes",
        two("ok-v1", "ok-v2"),
        Truth("none", trap="tracebacks of a name that does not resolve, caught and survived; every rank finishes"),
        train=f"--steps 25 --tracker --log-style titan {ALL}",
        layout="tee",
        env={"LOGLEVEL": "INFO"},
    ),
    Job(
        "copied-while-running",
        "the logs were copied while the job was running well",
        two("run-w1", "run-w2"),
        Truth(
            "unknown",
            determined=False,
            collateral=(),
            trap="nothing failed in what there is, but nothing says that it ended well",
            missing_fact="how the job ended: the rest of the logs, or the launcher's or scheduler's last word",
        ),
        train=f"--steps 100000 --log-style rank {ALL}",
        stop_when=r"step 40/",
    ),
)
