"""`firstfault collect`: runs the collector script that ships with the package, or prints it."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from firstfault.cli.messages import CommandError, Status, errors_in_words


def collect(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help="Where the logs of the ranks lie.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="OUT", help="Directory, or archive that ends in .tar or .tar.gz; hosts may share one."
        ),
    ] = None,
    job: Annotated[
        str | None, typer.Option("--slurm-job", metavar="ID", help="Slurm job; by default SLURM_JOB_ID.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="NAME", help="Ask Kubernetes about this namespace.")
    ] = None,
    selector: Annotated[
        str | None, typer.Option("--selector", metavar="LABEL=VALUE", help="Pods of the job, by label.")
    ] = None,
    hours: Annotated[int, typer.Option("--hours", metavar="N", help="How far back the kernel log goes.")] = 24,
    tail: Annotated[
        int | None, typer.Option("--tail-mib", metavar="N", help="Of a larger log only the last N MiB.")
    ] = None,
    timeout: Annotated[int, typer.Option("--timeout", metavar="SECONDS", help="How long one command may take.")] = 20,
    keep_secrets: Annotated[
        bool, typer.Option("--keep-secrets", help="Do not mask tokens, keys and passwords.")
    ] = False,
    script: Annotated[
        bool, typer.Option("--script", help="Print the script, for hosts without Python: sh collect.sh -h")
    ] = False,
) -> None:
    """Gather the logs and the state of this host for a diagnosis elsewhere; reads only, and sends nothing."""
    with errors_in_words():
        source = resources.files("firstfault.live").joinpath("collect.sh")
        if script:
            sys.stdout.write(source.read_text(encoding="utf-8"))
            return
        for path in paths or ():
            if not Path(path).exists():
                raise CommandError(f"{path}: no such file or directory", Status.USAGE)
        given = (("-o", output), ("-j", job), ("-n", namespace), ("-l", selector), ("-m", tail))
        options = [text for name, value in given if value is not None for text in (name, str(value))]
        options += ["-s", str(hours), "-t", str(timeout), *(["-u"] if keep_secrets else [])]
        with resources.as_file(source) as file:
            done = subprocess.run(["sh", str(file), *options, "--", *(paths or ())], check=False)
        if done.returncode:
            raise typer.Exit(done.returncode if done.returncode in (Status.FAILED, Status.USAGE) else Status.FAILED)
