"""Styles of charts, as Matplotlib reads them.

    plt.style.use(["perfmodel.render.styles.default", "perfmodel.render.styles.paper"])

`default.mplstyle` sets everything; `paper` (a column of 3.3 × 2.5 inches), `talk` (a slide) and
`dark` set what they have otherwise and are read after it. The order of the colours has a meaning,
which `perfmodel.render.page.Palette` gives names to.
"""
