"""Tables as people have them, read into the columns that a kind of table has.

reading = read(["runs.csv"], layout, Hints(unit="ms"))
reading.table        # rows in the layout's columns and types
reading.unread       # rows that cost themselves: a bad cell each, with file and line
reading.notes        # what was read as what

files        a file by what it holds: CSV and its relatives, JSON lines, Parquet, Excel
sheet        a table as its file has it: headings, cells, lines
vocabulary   spellings of columns, cells and units (columns.yaml)
headings     a heading: the column that it names, or the measurement and its unit
numerals     numbers as they are written: decimal commas, thousands, 16k
matching     which heading is which column
reading      all of it
spread       how far repeated measurements lie apart
"""
