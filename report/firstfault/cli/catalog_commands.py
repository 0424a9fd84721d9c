"""`firstfault catalog`: list, search, show, check, test and export entries, those of a folder of one's own included."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstfault.cli.messages import CommandError, Status, errors_in_words, say
from firstfault.cli.settings import CatalogDirs, existing

if TYPE_CHECKING:
    from firstfault.catalog import Catalog

catalog_app = typer.Typer(
    help="What firstfault knows about failures: list, search, show, check, test and export entries.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Own = Annotated[
    list[Path] | None, typer.Argument(metavar="[PATH]...", help="Entries of your own: TOML files, or folders of them.")
]


def _catalog(dirs: list[Path] | None) -> Catalog:
    from firstfault.catalog import load_catalog

    return load_catalog(existing(dirs))


@catalog_app.command("list")
def list_(
    class_: Annotated[str | None, typer.Option("--class", metavar="CLASS", help="Only entries of this class.")] = None,
    role: Annotated[
        str | None, typer.Option("--role", metavar="ROLE", help="Only initiating, collateral, ambiguous or context.")
    ] = None,
    classes: Annotated[bool, typer.Option("--classes", help="List the classes instead.")] = False,
    catalog_dirs: CatalogDirs = None,
) -> None:
    """List entries by id, or the classes."""
    with errors_in_words():
        from firstfault.catalog import Role
        from firstfault.cli.pages import listed

        catalog = _catalog(catalog_dirs)
        if classes:
            wide = max(map(len, catalog.classes))
            for one in catalog.classes.values():
                sys.stdout.write(f"{one.id:<{wide}}  {one.title}\n")
            return
        if class_ is not None and class_ not in catalog.classes:
            raise CommandError(f"--class {class_}: no such class; 'catalog list --classes' has them", Status.USAGE)
        if role is not None and role not in set(Role):
            raise CommandError(f"--role {role}: choose one of {', '.join(Role)}", Status.USAGE)
        entries = [one for one in catalog.entries.values() if class_ in (None, one.cls) and role in (None, one.role)]
        sys.stdout.write(listed(entries))


@catalog_app.command()
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words of a title, a line or a sentence.")],
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Entries to show.")] = 12,
    catalog_dirs: CatalogDirs = None,
) -> None:
    """Find entries by words, the best first."""
    with errors_in_words():
        from firstfault.catalog.search import search as find
        from firstfault.cli.pages import listed

        found = find(_catalog(catalog_dirs), " ".join(words), limit)
        if not found:
            raise CommandError(f"no entry has the words {' '.join(words)!r}")
        sys.stdout.write(listed([one.entry for one in found]))


@catalog_app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="Id of an entry or of a class.")],
    catalog_dirs: CatalogDirs = None,
) -> None:
    """Show one entry, or one class with its entries."""
    with errors_in_words():
        from firstfault.catalog.search import search as find
        from firstfault.cli.pages import class_page, entry_page

        catalog = _catalog(catalog_dirs)
        if name in catalog.entries:
            sys.stdout.write(entry_page(catalog.entries[name]))
        elif name in catalog.classes:
            inside = [one for one in catalog.entries.values() if one.cls == name]
            sys.stdout.write(class_page(catalog.classes[name], inside))
        else:
            near = ", ".join(one.entry.id for one in find(catalog, name, 3))
            raise CommandError(f"{name}: no such entry or class{f'; perhaps {near}' if near else ''}", Status.USAGE)


@catalog_app.command()
def check(
    paths: Own = None,
    healthy: Annotated[
        Path | None, typer.Option("--healthy", metavar="DIR", help="Logs of runs that ended well: nothing may fire.")
    ] = None,
) -> None:
    """Say all that is wrong with entries: keys, links, patterns, examples, overlaps. Exits with 1 on a problem."""
    with errors_in_words():
        from firstfault.catalog.check import main

        _catalog(paths)  # a path that is not there is wrong usage, not a problem of an entry
        arguments = [str(path) for path in paths or ()]
        if healthy is not None:
            arguments += ["--healthy", str(healthy)]
        status = main(arguments)
        if status:
            raise typer.Exit(int(Status.FAILED))


@catalog_app.command("test")
def try_entries(
    paths: Own = None,
    log: Annotated[
        list[str] | None, typer.Option("--log", metavar="FILE", help="Show which lines of a log they match, too.")
    ] = None,
) -> None:
    """Run the patterns of entries on their own examples, and on logs of yours. Exits with 1 where an example fails."""
    with errors_in_words():
        from firstfault.cli.catalog_test import lines_matched, run_examples

        catalog = _catalog(paths)
        own = tuple(str(path) for path in paths or ())
        entries = [one for one in catalog.entries.values() if not own or one.path.startswith(own)]
        if not entries:
            raise CommandError(f"{', '.join(own)}: no entry in it")
        failed = run_examples(catalog, entries)
        if log:
            lines_matched(log, entries, paths or ())
        say(f"{len(entries)} entries, {failed} with a failed example")
        if failed:
            raise typer.Exit(int(Status.FAILED))


@catalog_app.command("export")
def export_(
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="grep|ripgrep|loki|prometheus-rule|vector",
            help="What takes the patterns.",
            show_default=False,
        ),
    ],
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Entries or classes; all that may start a failure by default."),
    ] = None,
    catalog_dirs: CatalogDirs = None,
) -> None:
    """Print the patterns in a form that monitoring takes."""
    with errors_in_words():
        from firstfault.catalog.export import FORMS, export

        if form not in FORMS:
            raise CommandError(f"--format {form}: choose one of {', '.join(sorted(FORMS))}", Status.USAGE)
        catalog = _catalog(catalog_dirs)
        unknown = [name for name in ids or () if name not in catalog.entries and name not in catalog.classes]
        if unknown:
            raise CommandError(f"{', '.join(unknown)}: no such entry or class", Status.USAGE)
        sys.stdout.write(export(catalog, form, only=ids))


@catalog_app.command("site")
def site_(
    output: Annotated[Path, typer.Option("--output", metavar="DIR", help="Folder to write to.", show_default=False)],
    catalog_dirs: CatalogDirs = None,
) -> None:
    """Write the catalog as pages to read: one an entry and a class, with a search that needs no server."""
    with errors_in_words():
        from firstfault.catalog.site import write_site

        count = write_site(_catalog(catalog_dirs), output)
        say(f"{count} pages in {output}; begin with {output / 'index.html'}")
