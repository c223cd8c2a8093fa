"""Documents and docstrings: paragraphs are short, and every public field has a docstring."""

import ast
import re

import pytest
from folders import ROOT

LONGEST_PARAGRAPH = 80  # words
LONGEST_README = 200  # lines


def docstrings(source):
    """(name, text) of a module, its classes and functions, and the docstrings of fields."""
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str):
                    yield getattr(node, "name", "module"), text


# A blank line, an item of a list, or a line of a table: a name, two spaces and what it is.
NEW_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*] |\S+(?: \S+)*  +\S))")


def long_paragraphs(source):
    """(name, words) of paragraphs that are too long."""
    for name, text in docstrings(source):
        for paragraph in NEW_PARAGRAPH.split(text):
            count = len(paragraph.split())
            if count > LONGEST_PARAGRAPH:
                yield name, count


@pytest.mark.parametrize("folder", ["perfmodel", "kernels"])
def test_no_paragraph_of_a_docstring_is_long(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    assert len(files) > 10
    found = [
        f"{path.relative_to(ROOT)}: {name}: {count} words"
        for path in files
        if not path.name[0].isdigit()
        for name, count in long_paragraphs(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_a_long_paragraph_is_found():
    words = "word " * 81
    assert list(long_paragraphs(f'"""{words}"""')) == [("module", 81)]
    assert not list(long_paragraphs(f'"""{words[:300]}\n\n{words[:300]}"""'))
    assert not list(long_paragraphs(f'"""\n    a  {words[:300]}\n    b  {words[:300]}"""'))
    assert list(long_paragraphs(f'class A:\n    a: int\n    """{words}"""')) == [("A", 81)]


def test_the_readme_is_read_in_one_sitting():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert 50 < len(lines) < LONGEST_README


def fields_without_docstring(source):
    """(class, field) of public dataclasses whose fields do not say what they are."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        if not any("dataclass" in ast.unparse(item) for item in node.decorator_list):
            continue
        for statement, below in zip(node.body, [*node.body[1:], None], strict=True):
            if not isinstance(statement, ast.AnnAssign) or not isinstance(
                statement.target, ast.Name
            ):
                continue
            said = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if not said and not statement.target.id.startswith("_"):
                yield node.name, statement.target.id


@pytest.mark.parametrize("folder", ["perfmodel", "kernels"])
def test_every_field_says_what_it_is(folder):
    found = [
        f"{path.relative_to(ROOT)}: {name}.{field}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not path.name[0].isdigit()
        for name, field in fields_without_docstring(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_a_field_without_a_docstring_is_found():
    source = '@dataclass\nclass A:\n    a: int\n    b: int\n    """That."""\n    _c: int = 0\n'
    assert list(fields_without_docstring(source)) == [("A", "a")]


VAGUE = {"found", "said", "one", "made", "held", "whole", "where", "how", "here", "of", "to",
         "told", "taken", "shown"}  # fmt: skip
"""Names that do not say what a variable holds."""


def names_of(source):
    """(name, line) of variables and of parameters of private functions.

    Fields are public, and the source of a comprehension says what passes through it.
    """
    tree = ast.parse(source)
    exempt = [node.target for node in ast.walk(tree) if isinstance(node, ast.comprehension)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            exempt += [field.target for field in node.body if isinstance(field, ast.AnnAssign)]
    others = {id(name) for target in exempt for name in ast.walk(target)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and id(node) not in others
        ):
            yield node.id, node.lineno
        if isinstance(node, ast.FunctionDef) and re.match("_[^_]", node.name):
            for argument in (*node.args.args, *node.args.kwonlyargs):
                yield argument.arg, argument.lineno


def vague_names(source):
    """(name, line) of those that do not say what they hold."""
    return [(name, line) for name, line in names_of(source) if name in VAGUE]


def test_variables_are_nouns():
    vague = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / "perfmodel").rglob("*.py"))
        for name, line in vague_names(path.read_text(encoding="utf-8"))
    ]
    assert not vague, "\n".join(vague)


def test_a_vague_name_is_seen():
    source = "def _f(of, rows):\n    found = rows\n    return [one for one in found]\n"
    assert sorted(name for name, _ in vague_names(source)) == ["found", "of"]
    assert not vague_names("class A:\n    found: int\n\ndef f(of):\n    return of.found\n")
