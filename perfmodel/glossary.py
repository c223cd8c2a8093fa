"""Words of tables, JSON, help texts and documents: `perfmodel show word "bubble"`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfmodel.catalogue import Table


@dataclass(frozen=True)
class Word:
    """A word and its meaning."""

    name: str
    """The word, as tables and documents spell it."""
    about: str
    """What it means, with unit and place."""
    aliases: tuple[str, ...] = ()
    """Other names of the same thing."""
    page: str = ""
    """Page of the documents that tells more, with its heading; empty: none."""


WORDS = Table("word", Word, Path(__file__).with_name("glossary.yaml"), "words")
"""The words, in alphabetical order."""
load, names = WORDS.load, WORDS.names
