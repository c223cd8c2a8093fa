"""Counts of checks and violations, with the worst case of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

Key = tuple[str, ...]


@dataclass(frozen=True)
class Worst:
    """The largest excess that was seen and a line about where."""

    excess: float
    where: str


@dataclass
class Tally:
    """Counts that can be added: `asked`, `predicted` and `changed` are predictions.

    `checked` are checks by law, `violated` by law, kind and implementation, `fallen` checks by the
    cliff that explains them and by law.
    """

    asked: int = 0
    predicted: int = 0
    changed: int = 0
    checked: Counter[str] = field(default_factory=Counter)
    violated: Counter[Key] = field(default_factory=Counter)
    fallen: Counter[Key] = field(default_factory=Counter)
    worst: dict[Key, Worst] = field(default_factory=dict)

    def saw(self, key: Key, excess: float, where: str) -> None:
        """Keep the larger excess of a violation or a cliff."""
        if key not in self.worst or excess > self.worst[key].excess:
            self.worst[key] = Worst(excess, where)

    def add(self, other: Tally) -> None:
        """Everything that another one counted."""
        self.asked += other.asked
        self.predicted += other.predicted
        self.changed += other.changed
        self.checked.update(other.checked)
        self.violated.update(other.violated)
        self.fallen.update(other.fallen)
        for key, worst in other.worst.items():
            self.saw(key, worst.excess, worst.where)

    @property
    def violations(self) -> int:
        """All checks that failed."""
        return self.violated.total()

    def lines(self) -> list[str]:
        """A table of laws, one of cliffs, and the violations with an example of each."""
        refused = self.asked - self.predicted
        found = [
            f"{self.predicted:,} predictions, {self.changed:,} of changed problems and devices, "
            f"{refused:,} refused; {self.checked.total():,} checks, {self.violations:,} violations",
            "", f"{'checks':>13} {'on a cliff':>11} {'violations':>11}  law",
        ]  # fmt: skip
        for law, checks in sorted(self.checked.items()):
            cliff = sum(n for (_, of), n in self.fallen.items() if of == law)
            bad = sum(n for (of, *_), n in self.violated.items() if of == law)
            found.append(f"{checks:13,} {cliff:11,} {bad:11,}  {law}")
        found += ["", f"{'checks':>13} {'worst':>7}  cliff"]
        names = Counter[str]()
        for (name, _), n in self.fallen.items():
            names[name] += n
        for name, n in names.most_common():
            excess = max(self.worst[key].excess for key in self.fallen if key[0] == name)
            found.append(f"{n:13,} {excess:7.3f}  {name}")
        for key, n in self.violated.most_common():
            worst = self.worst[key]
            found += ["", f"{n:,} × {', '.join(key)}: {worst.excess:.4f}", f"    {worst.where}"]
        return found


def largest(excess: np.ndarray, among: np.ndarray) -> int:
    """Index of the largest excess among those chosen; what is no number is the largest."""
    return int(np.argmax(np.where(among, np.nan_to_num(excess, nan=np.inf), -np.inf)))
