"""Tables of runs: users' own, read into the columns of a kind of table, and the published ones.

reading = read(["runs.csv"], layout, Hints(unit="ms"))
reading.table        # rows in the layout's columns and types
reading.faults       # what is wrong with each bad row, with file and line
reading.notes        # which heading was read as which column

files        a file by its contents: CSV and similar text, JSON lines, Parquet, Excel
sheet        a table as it is in the file: headings, cells, lines
vocabulary   spellings of columns, cells and units (columns.yaml)
headings     a heading: the column it names, or the measurement and its unit
numerals     number formats: decimal commas, thousands, 16k
matching     which heading is which column
reading      reads files; start here
records      the measured-run table, and the published runs that come with the package
provenance   published runs that were made otherwise than their table says
"""
