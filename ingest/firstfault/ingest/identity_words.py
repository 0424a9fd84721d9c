"""Words in names of files that name no host: what a file is about, what ran in it, how files are counted."""

from __future__ import annotations

import re

from firstfault.ingest.identity_paths import GENERIC, SUBJECT

NAMELESS = SUBJECT | frozenset({
    "p", "r", "w", "proc", "pid",
    "archive", "blob", "block", "chunk", "copy", "doc", "download", "entry", "export", "extract", "files",
    "fragment", "img", "input", "item", "line", "lines", "new", "no", "nr", "num", "object", "old", "page",
    "part", "paste", "record", "sample", "section", "segment", "shard", "snippet", "split", "src", "temp",
    "unnamed", "untitled",
})  # fmt: skip
"""Words that with numbers behind them only count files."""
MODELS = frozenset({
    "ablation", "albert", "b", "baichuan", "bart", "bert", "bloom", "bs", "bug", "case", "clip", "code", "cuda",
    "day", "debug", "deepseek", "dpo", "ep", "epoch", "eval", "exit", "exp", "falcon", "fold", "gbs", "gemma",
    "gpt", "gpu", "gpus", "grpo", "h", "issue", "iter", "job", "k", "llama", "llava", "lora", "lr", "m",
    "mamba", "mbs", "mistral", "mixtral", "moe", "neox", "node", "nodes", "olmo", "opt", "phase", "phi", "ppo",
    "py", "python", "qwen", "rank", "ranks", "resnet", "rlhf", "roberta", "round", "sd", "sdxl", "seed", "sft",
    "signal", "stable", "stage", "step", "swin", "t", "task", "test", "ticket", "torch", "trial", "try", "unet",
    "v", "ver", "vit", "wav", "whisper", "worker", "workers", "xl", "yolo", "zero",
})  # fmt: skip
"""Words of experiments: a lone file `llama-7.log` is called after what ran in it."""


def names_nobody(name: str) -> bool:
    """Whether a name is made of words that say what a file is or count files, and of numbers."""
    words = re.findall(r"[A-Za-z]+", name)
    return all(word.lower() in NAMELESS for word in words)


def lone_host(name: str) -> bool:
    """Whether the only file of a job can be called after its host: words that mean nothing here, a short number."""
    words = re.findall(r"[A-Za-z]+", name)
    shaped = re.fullmatch(r"[a-z][a-z]{0,15}(?:-[a-z]{1,12}){0,3}-?\d{1,4}[a-z]?", name) is not None
    return shaped and not any(word.lower() in GENERIC | NAMELESS | MODELS for word in words)
