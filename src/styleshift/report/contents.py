"""Everything on the page, gathered from a store: results, figures, closer looks, and what was run on what."""

import logging
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from styleshift.data.decoding import Progress
from styleshift.experiments.paper import paper_tables
from styleshift.experiments.planning import runs_of
from styleshift.experiments.recipe import Recipe, read_toml, recipe, recipe_names, scales_file
from styleshift.experiments.record import Record
from styleshift.experiments.scales import scale
from styleshift.experiments.store import Store
from styleshift.experiments.table import Table, table_of
from styleshift.report.figure import Data, Figure
from styleshift.report.figures import accuracy_by_removal, shift_effect, time_taken
from styleshift.report.gallery import Group
from styleshift.report.looking import Asked, Look, look_at
from styleshift.report.over_time import Streamed, found_in, over_time
from styleshift.report.predictions import calibration, confusion, scores
from styleshift.report.style_map import drawn
from styleshift.report.sweeps import PREFERRED, accuracy_by_alpha, accuracy_by_location, columns_with
from styleshift.report.tables import PageTable, page_table

log = logging.getLogger(__name__)

Bar = Callable[[str], AbstractContextManager[Progress]]


@dataclass(frozen=True)
class Chapter:
    """The figures of one dataset at one scale, or those of streams."""

    name: str
    title: str
    about: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class LookChapter:
    """One model, looked at closely; problem: why it could not be, else empty."""

    name: str
    title: str
    about: str
    problem: str
    figures: tuple[Figure, ...] = ()
    gallery: tuple[Group, ...] = ()


@dataclass(frozen=True)
class Contents:
    """tiles: a number and what it counts. made_with: what the results depend on, name and value."""

    made: str
    tiles: tuple[tuple[str, str], ...]
    chapters: tuple[Chapter, ...]
    looks: tuple[LookChapter, ...]
    tables: tuple[PageTable, ...]
    recipes: Data
    runs: Data
    made_with: tuple[tuple[str, str], ...]


def contents_of(
    store: Store, names: Sequence[str], data: Path | None, bar: Bar, further: Sequence[Path] = ()
) -> Contents:
    """What `store` holds, of the recipes called `names` or of all.

    data: the data root. bar: shows progress under a title; see `styleshift.data.progress.bar`.
    further: folders whose results on streams come onto the page, too.
    """
    recipes = [recipe(name) for name in names or all_recipes()]
    records = store.records()
    tables = list(tables_with_results(recipes, records))
    used = list({record.key: record for table in tables for record in table.records}.values())
    keys = {record.key for record in used}
    streamed = [each for each in found_in([store.folder, *further]) if not names or each.key in keys]
    return Contents(
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        tiles=tuple(_tiles(recipes, tables, used)),
        chapters=(*_chapters(tables), *_streams(streamed)),
        looks=tuple(_looks(tables, store, data, bar)),
        tables=tuple(page_table(table) for table in tables),
        recipes=_recipes(recipes, tables, records),
        runs=_runs(used),
        made_with=tuple(_made_with(used)),
    )


def all_recipes() -> list[str]:
    """In the paper's order, those beyond the paper last."""
    return [name for name in dict.fromkeys([*paper_tables(), *recipe_names()]) if name in recipe_names()]


def tables_with_results(recipes: Sequence[Recipe], records: Sequence[Record]) -> Iterator[Table]:
    """Every table that some of `records` belong into, by scale."""
    for name in read_toml(scales_file()):
        here = [record for record in records if record.scale == name]
        for each in recipes if here else ():
            table = table_of(each, scale(name), here)
            if table.records:
                yield table


def main_tables(tables: Sequence[Table]) -> list[Table]:
    """One for each dataset and scale: whose figures stand for it. Full tables of the original set come first."""
    best: dict[tuple[str, str], Table] = {}
    for table in sorted(tables, key=_standing):
        best.setdefault((table.scale.name, table.recipe.dataset), table)
    return list(best.values())


def _standing(table: Table) -> tuple[bool, ...]:
    asked = table.recipe
    return (
        asked.protocol != "leave-one-domain-out",
        asked.show != "columns",
        len(asked.groups) > 1,
        asked.scenario != "original",
        asked.clusters is not None,
    )


def _chapters(tables: Sequence[Table]) -> Iterator[Chapter]:
    mains = main_tables(tables)
    for table in mains:
        drawings = [make(table) for make in (shift_effect, accuracy_by_alpha, accuracy_by_location, time_taken)]
        place = (table.scale.name, table.recipe.dataset)
        alike = [each for each in tables if (each.scale.name, each.recipe.dataset) == place]
        drawings += [accuracy_by_removal(each) for each in alike]
        yield Chapter(
            name=f"results-{table.scale.name}-{table.recipe.name}",
            title=f"{table.recipe.title}, scale {table.scale.name}",
            about=f"{table.scale.about[:1].upper()}{table.scale.about[1:]}. {_counted(table.records)}.",
            figures=tuple(figure for figure in drawings if figure is not None),
        )


def _streams(streamed: Sequence[Streamed]) -> Iterator[Chapter]:
    if streamed:
        yield Chapter(
            name="streams",
            title="Streams of test images",
            about="Test-time methods over the orders in which images may come: one figure a model, one view an order.",
            figures=tuple(over_time(each, f"stream-{number}") for number, each in enumerate(streamed, start=1)),
        )


def _looks(tables: Sequence[Table], store: Store, data: Path | None, bar: Bar) -> Iterator[LookChapter]:
    for table in main_tables(tables):
        for asked in asked_of(table, store):
            yield _look_chapter(asked, table, store, data, bar)


def asked_of(table: Table, store: Store) -> list[Asked]:
    """For every column the model to look at: of the paper's method, else the next, and of the first seed.

    Chosen by name and seed alone, before any result is seen; a model that is not kept here stands back for one that is.
    """
    found: dict[str, Asked] = {}
    methods = dict.fromkeys(record.method for record in table.records)
    for method in sorted(methods, key=lambda name: PREFERRED.index(name) if name in PREFERRED else len(PREFERRED)):
        for column, records in columns_with(table, method).items():
            for record in records:
                asked = _asked(table, record, column)
                kept = column in found and (store.models / found[column].folder_name).is_dir()
                if column not in found or (not kept and (store.models / asked.folder_name).is_dir()):
                    found[column] = asked
    return [found[column.name] for column in table.recipe.columns if column.name in found]


def _asked(table: Table, record: Record, column: str) -> Asked:
    runs = runs_of(table.recipe, table.scale, [record.seed])
    run = next(run for run in runs if run.cell == record.cell)
    return Asked(run, record, column, table.recipe.alpha, table.recipe.clusters)


def _look_chapter(asked: Asked, table: Table, store: Store, data: Path | None, bar: Bar) -> LookChapter:
    number = [column.name for column in table.recipe.columns].index(asked.column)
    place = f"{table.scale.name}-{table.recipe.name}-{number}"
    target = ", ".join(asked.record.target)
    title = f"{table.recipe.dataset}: {asked.column}"
    about = f"{asked.record.method}, tested on {target}, seed {asked.record.seed}, scale {table.scale.name}."
    try:
        with bar(f"looking at {asked.run}") as progress:
            look = look_at(asked, store, data, progress)
    except (OSError, KeyError, ValueError) as error:
        said = error.args[0] if isinstance(error, KeyError) else error
        problem = " ".join(str(said).split())
        log.info("%s: %s", asked.run, problem)
        return LookChapter(f"look-{place}", title, about, problem)
    return LookChapter(
        name=f"look-{place}",
        title=title,
        about=f"{about} {_counted_anew(look)}",
        problem="",
        figures=tuple(_look_figures(look, place, target)),
        gallery=tuple(look.gallery),
    )


def _look_figures(look: Look, place: str, target: str) -> Iterator[Figure]:
    yield drawn(look.style_map, f"map-{place}", look.sources, target, look.alpha, look.at)
    if (found := scores(look, f"scores-{place}")) is not None:
        yield found
    yield calibration(look, f"calibration-{place}")
    yield confusion(look, f"confusion-{place}")


def _counted_anew(look: Look) -> str:
    answers = look.answers
    before, after = (
        statistics.fmean(said == truth for said, truth in zip(side, answers.truth, strict=True))
        for side in (answers.before, answers.after)
    )
    far = statistics.fmean(answers.far)
    return (
        f"Counted anew from the kept model: {100 * before:.1f} % before and {100 * after:.1f} % after the shift, over "
        f"{len(answers.truth):,} images of which {100 * far:.1f} % are shifted (alpha {look.alpha:g}, after {look.at})."
    )


def _tiles(recipes: Sequence[Recipe], tables: Sequence[Table], used: Sequence[Record]) -> Iterator[tuple[str, str]]:
    yield f"{len(used)}", "run" if len(used) == 1 else "runs"
    yield f"{len({table.recipe.name for table in tables})} of {len(recipes)}", "recipes with results"
    seeds = len({record.seed for record in used})
    yield f"{seeds}", "seed" if seeds == 1 else "seeds"
    minutes = sum(record.timing.training + record.timing.evaluation for record in used) / 60
    yield (f"{minutes:.0f} min" if minutes < _MINUTES_SAID else f"{minutes / 60:.1f} h"), "of training and testing"
    yield f"{sum(record.images for record in used):,}", "images tested"


_MINUTES_SAID = 100  # from here on hours say it better


def _counted(records: Sequence[Record]) -> str:
    seeds = sorted({record.seed for record in records})
    runs, numbers = _plural(len(records), "run"), ", ".join(map(str, seeds))
    return f"{runs}, {'seed' if len(seeds) == 1 else 'seeds'} {numbers}"


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _recipes(recipes: Sequence[Recipe], tables: Sequence[Table], records: Sequence[Record]) -> Data:
    done = {record.cell for record in records}
    scales = list(dict.fromkeys(table.scale.name for table in tables)) or ["cpu"]
    rows = []
    for each in recipes:
        printed = paper_tables().get(each.name)
        for name in scales:
            runs = runs_of(each, scale(name))
            finished = sum(run.cell in done for run in runs)
            rows.append((each.name, printed.where if printed else "", each.title, name, finished, len(runs)))
    return Data("recipes-data", ("recipe", "in the paper", "title", "scale", "runs done", "runs in all"), tuple(rows))


def _runs(used: Sequence[Record]) -> Data:
    columns = ("dataset", "scenario", "method", "domain", "seed", "scale", "accuracy", "seconds")
    rows = [
        (
            record.dataset,
            str(record.facts["scenario"]),
            record.method,
            record.domain,
            record.seed,
            record.scale,
            round(100 * record.accuracy, 2),
            record.timing.training + record.timing.evaluation,
            record.timing.finished,
            record.commit or "",
            record.key,
        )
        for record in used
    ]
    return Data("runs-data", (*columns, "finished", "commit", "key"), tuple(rows))


def _made_with(used: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """Each value that occurs, the most frequent first, with how often where there are several."""
    facts: dict[str, list[str]] = {
        "datasets": [record.dataset for record in used],
        "scales": [record.scale for record in used],
        "seeds": [str(record.seed) for record in used],
        "networks": [str(record.facts["training"]["backbone"]) for record in used],
        "first weights, sha256": [record.weights or "random" for record in used],
        "images, sha256": [record.data for record in used],
        "git commit": [record.commit or "not from a source tree" for record in used],
        "threads": [str(record.threads) for record in used],
    }
    for name in dict.fromkeys(name for record in used for name in record.versions):
        facts[name] = [record.versions.get(name, "unknown") for record in used]
    for name, values in facts.items():
        counts = Counter(values).most_common()
        if counts:
            yield name, ", ".join(value if len(counts) == 1 else f"{value} ({count} runs)" for value, count in counts)
