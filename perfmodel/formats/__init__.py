"""File formats that users write and read: their names, JSON Schemas, and checks.

catalogue   the formats by name; the format of a file; `check` lists the errors in a file
draft07     a schema of draft 2020-12 as one of draft-07, for tools that support only that
"""

from perfmodel.formats.catalogue import FORMATS, FileFormat, check, find, format_of, schema

__all__ = ["FORMATS", "FileFormat", "check", "find", "format_of", "schema"]
