"""One self-contained page from results of the tool: `perfmodel report RESULTS... -o report.html`.

    results = Results()
    readers.read("predictions.json", results)
    html = page.render(results, title="My kernels", command="perfmodel report ...")

`readers` knows the documents by the names of their members and takes new kinds by registration;
`devices` and `summary` say what is known of them; `page` joins data, styles and scripts of `assets`
into one text. The scripts draw with SVG, and the page asks for nothing from anywhere.
"""
