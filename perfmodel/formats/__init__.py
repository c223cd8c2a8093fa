"""Formats of files that people write and read: what each is, its JSON Schema, and its check.

catalogue   the formats by name; which one a file is of; `check` says what is wrong with it
draft07     a schema of draft 2020-12 as one of draft-07, for tools that know no other
"""

from perfmodel.formats.catalogue import FORMATS, FileFormat, check, find, format_of, schema

__all__ = ["FORMATS", "FileFormat", "check", "find", "format_of", "schema"]
