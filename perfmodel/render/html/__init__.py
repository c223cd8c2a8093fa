"""One self-contained page of results: `perfmodel report RESULTS... -o report.html`.

    results = Results()
    readers.read("predictions.json", results)
    html = page.render(results, title="My kernels", command="perfmodel report ...")

`readers` identifies JSON documents by their members and tables by their headers. `kinds` turns the
rows of each kind into `sections` of bars, dots and tables; new kinds register there. Predictions
are cases, with rooflines and terms of their own.

`page` joins data, styles and scripts of `assets` into one text. The scripts draw with SVG, and the
page makes no requests.
"""
