"""Tables of what is made of kernels: networks by class, graphs by node, traces by module.

A line adds up kernels; waits and the total are lines too. A line's time is whole; its share is of
what it adds to the total, without what is hidden beside other parts. Where one line is a whole
tree, a table has a tree's own columns (`own`) among those of what is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from perfmodel.columns import Column, row_of
from perfmodel.graph.tree import Tree, form, with_all_runs
from perfmodel.render.report import Report, Row, assumed, binary, micros, on_device
from perfmodel.render.roofs import Kernel

Label = Callable[[Sequence[Tree]], str]
"""What a leaf counts for, from the nodes above it to the leaf."""


def _name(path: Sequence[Tree]) -> str:
    return ", ".join(node.name for node in path[1:])


def _layer(path: Sequence[Tree]) -> str:
    """The pass that a leaf is in."""
    part = path[1]
    repeat = f" x {part.repeat}" if part.repeat > 1 else ""
    return f"{part.name}, {part.kind}{repeat}" if part.children else part.name


BY: dict[str, Label] = {
    "class": lambda path: path[-1].kind,
    "layer": _layer,
    "operator": lambda path: path[-1].operator,
    "kernel": _name,
    "node": _name,
}
"""What a line is for."""
OF_NETWORKS, OF_GRAPHS = ("class", "layer", "operator", "kernel"), ("node", "operator")

_RANKED = ("class", "operator")
"""What is sorted by its time; other lines are in the order of their kernels."""
_SHARE = Column("share", "share", rank=1)


def data(trees: Sequence[Tree], name: str) -> Report:
    """All data, one document for each tree; `name` is what they are: networks or graphs."""
    rows = [tree.as_dict() for tree in trees]
    return Report(name, rows, form("root"), title(trees), notes=notes(trees))


def report(
    trees: Sequence[Tree], by: str, name: str, label: Label | None = None, *without: str
) -> Report:
    """Lines for people and spreadsheets; `by` is what they are for, under the heading of that
    name, and `label` says it of each leaf. Columns under the keys `without` are left out."""
    without = without if by in ("kernel", "node") else (*without, "operator")
    device, *own = (column for column in form("line") if column.key not in without)
    (what, *_) = trees[0].settings
    head, key = ([], "line") if label else ([Column(key=what)], by)
    columns = [*head, device, Column(by, key, number=False), *own]
    columns.insert(1 + [column.key for column in columns].index("time_us"), _SHARE)
    rows = [
        {**tree.settings, **row, key: row["kernel"]}
        for tree in trees
        for row in lines(tree, label or BY[by], ranked=by in _RANKED)
    ]
    rows = [{column.name: row[column.name] for column in columns} for row in rows]
    return Report(name, rows, columns, title(trees), notes=notes(trees), examples=rows)


def own(*keys: str) -> list[Column]:
    """A root's own columns by their keys."""
    columns = {column.key: column for column in form("row")}
    return [columns[key] for key in keys]


def lines(tree: Tree, label: Label, *, ranked: bool) -> Iterator[Row]:
    """The lines of a tree, the longest first where they are `ranked`; then waits and the total."""
    nodes = groups(tree, label)
    if ranked:
        nodes.sort(key=lambda node: (not node.kernels, -node.seconds))
    for node in (*nodes, replace(tree, name="all")):
        row = {"kernel": node.name, **row_of(node, form("line")), "device": tree.device}
        row["share"] = sum(leaf.exposed_seconds for leaf in node.leaves) / tree.seconds
        if node.children is tree.children:
            row["limiter"] = ""
        yield row


def groups(tree: Tree, label: Label) -> list[Tree]:
    """The leaves of a tree, those of one label together; a wait is under its own name."""
    leaves: dict[str, list[Tree]] = {}
    for path in tree.paths():
        leaves.setdefault(label(path) or path[-1].name, []).append(with_all_runs(path))
    return [Tree.series(name, "line", parts) for name, parts in leaves.items()]


def title(trees: Sequence[Tree]) -> str:
    """What all have in common: the name, then the settings."""
    first = trees[0]
    (_, *settings) = first.settings.items()
    words = " ".join(
        f"{key}={value}"
        for name, setting in settings
        for key, value in (setting if isinstance(setting, dict) else {name: setting}).items()
        if (name, value) != ("past", 0)
    )
    return f"{first.name}{on_device(tree.device for tree in trees)}: {words}"


def notes(trees: Sequence[Tree]) -> list[str]:
    """A sentence for each tree, then what was assumed."""
    return [*map(sentence, trees), *assumed(tree.assumptions for tree in trees)]


def sentence(tree: Tree) -> str:
    """The time with its range and phases, the main limiter, and what the memory holds."""
    ends = f"{micros(tree.low_seconds * 1e6)} to {micros(tree.high_seconds * 1e6)}"
    backward = tree.phases.get("backward")
    phases = [f", {name} {micros(each * 1e6)}" for name, each in tree.phases.items() if backward]
    limiter, seconds = next(iter(tree.limiters.items()))
    text = (
        f"{tree.device}: {micros(tree.seconds * 1e6)} ({ends}){''.join(phases)}; "
        f"{seconds / tree.seconds:.0%} of it is limited by {limiter}"
    )
    if tree.memory is None:
        return text
    sizes = (
        f"{binary(size)} of {'memory' if level == 'hbm' else level}"
        for level, size in tree.memory.footprints.items()
    )
    lacking = [level for level, fits in tree.memory.fits_at.items() if not fits]
    lack = f"; does not fit in {', '.join(lacking)}" if lacking else ""
    return f"{text}; holds {', '.join(sizes)}, most at {tree.memory.peak_node}{lack}"


def points(tree: Tree) -> Iterator[Kernel]:
    """A roofline point for each class that has arithmetic: its rate, and its FLOP per byte."""
    for group in groups(tree, BY["class"]):
        work = group.useful_flops or sum(leaf.useful_flops or 0.0 for leaf in group.leaves)
        if work:
            intensity = {level: work / size for level, size in group.bytes.items() if size}
            rate, matrix = work / group.seconds, bool(group.useful_flops)
            yield Kernel(group.name, tree.device, rate, intensity, matrix=matrix)
