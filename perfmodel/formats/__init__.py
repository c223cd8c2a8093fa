"""File formats that users write and read: their names, JSON Schemas, and checks.

catalogue   the formats by name; the format of a file; `check` lists the errors in a file
derived     schemas from the classes that files are read as
results     the schema of what commands write, from the columns of results
draft07     a schema of draft 2020-12 as one of draft-07, for tools that support only that
"""

from perfmodel.formats.catalogue import FORMATS, FileFormat, check, find, format_of, schema, text

__all__ = ["FORMATS", "FileFormat", "check", "find", "format_of", "schema", "text"]
