"""Styles of charts for Matplotlib.

    plt.style.use(["perfmodel.render.styles.default", "perfmodel.render.styles.paper"])

`default.mplstyle` sets everything. `paper` (a column of 3.3 × 2.5 inches), `talk` (a slide) and
`dark` set only their differences and are read after it. Colours have a fixed order, to which
`perfmodel.render.page.Palette` gives names.
"""
