"""Writes docs/accuracy/families.csv: errors on operators of 2026, by family, device and framework.

    python tests/familyscores.py SHARED/data/ops2026

No constant is fitted to these tables, and the bundled record is left out. Of
each table at most `ROWS` unflagged rows are taken, evenly spaced.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from perfmodel.table.records import read_table
from perfmodel.validation.compare import predict_table

ROWS = 3000
TABLES = {
    "encoder attention": "encoder_attention", "latent attention": "mla", "expert layers": "moe",
    "linear attention": "linear_attention", "sparse attention": "sparse_attention",
    "residual streams": "mhc", "exchange of experts": "moe_exchange",
}  # fmt: skip
PAGE = Path(__file__).parents[1] / "docs" / "accuracy" / "families.csv"


def scored(path):
    """The rows of a table that are scored, with framework and |ln(predicted / measured)|."""
    table = read_table(path)
    table = table[table["flag"] == ""]
    table = table.iloc[:: -(-len(table) // ROWS)].reset_index(drop=True)
    table = predict_table(table, learned=False)
    logs = np.log(table["predicted_us"] / table["measured_us"])
    return table.assign(
        framework=table["implementation"].str.extract(r"^(\w+?)[-(]")[0], error=logs.abs()
    )


def line(family, device, framework, rows):
    """One line of the page."""
    return {
        "family": family, "device": device, "framework": framework, "rows": len(rows),
        "unpredicted": int(rows["error"].isna().sum()),
        "median": round(rows["error"].median(), 3), "p90": round(rows["error"].quantile(0.9), 3),
    }  # fmt: skip


def main(folder):
    """Score every table and write the page."""
    lines = []
    for family, name in TABLES.items():
        table = scored(Path(folder) / f"{name}_dev.csv.gz")
        lines.append(line(family, "all", "all", table))
        for (device, framework), rows in table.groupby(["device", "framework"], observed=True):
            lines.append(line(family, device, framework, rows))
        print(lines[-1], flush=True)
    pd.DataFrame(lines).to_csv(PAGE, index=False, lineterminator="\n")


if __name__ == "__main__":
    main(sys.argv[1])
