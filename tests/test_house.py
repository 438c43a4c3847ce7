"""The rules of the house: which room may import which, what files are called, what text may hold.

The source is read with `ast`, so that an import inside a function counts like any other.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "headcount"
MODULES = sorted(SOURCE.rglob("*.py"))

# --- the table ----------------------------------------------------------------------------------

#: The ground floor: numbers, names, files. Every lone module without a row below belongs to it.
GROUND = "ground"
LIVE = {GROUND, "subject", "models", "text", "wiring"}
MEASURING = LIVE | {"lrp", "sweeps", "tallies", "tasks"}

#: Room: what it may import, itself aside.
MAY_IMPORT: dict[str, set[str]] = {
    GROUND: set(),
    "text": {GROUND},
    "bundle": {GROUND},
    "models": {GROUND, "bundle", "subject"},  # loading gives a Subject; a Subject knows its anatomy
    "subject": {GROUND, "models"},
    "wiring": LIVE,
    "tallies": LIVE,
    "lrp": LIVE,
    "tasks": LIVE,
    "sweeps": LIVE | {"tasks"},  # many interventions, one evaluation each
    "trials": LIVE | {"bundle", "tallies", "tasks"},  # a trial may ask for a loss, or for text
    "roles": {GROUND, "tallies", "trials"},
    "importance": MEASURING,
    "pruning": MEASURING,
    "probes": MEASURING,
    "patterns": MEASURING,
    "compare": MEASURING,
    "report": {GROUND},
    "plot": {GROUND, "report"},  # a role looks the same in print and on the page
    "serve": {GROUND, "report"},
}
#: These see everything, and no room may see them.
TOP = {"headcount", "survey", "stages", "score", "story", "show", "cli", "__main__"} | {
    "compare_models",
    "families",
    "probe",
    "prune_orders",
    "prune_plan",
    "prune_run",
    "prune_trained",
}

#: Folders of the ground floor that are no room of their own.
GROUND_FOLDERS = {"stats"}

#: Numbers are enough for these: no model, so none of the libraries that run one.
WITHOUT_MODELS = {GROUND, "roles", "report", "plot"}
MODEL_LIBRARIES = {"torch", "transformers", "accelerate", "peft"}

#: What must not be loaded before a command does its work, so that --help is instant.
HEAVY = {"torch", "transformers", "pandas", "scipy", "sklearn", "pyarrow", "matplotlib"}


def room_of(module: str) -> str:
    """The room of a dotted module name."""
    name = module.split(".")[1] if "." in module else module
    return name if name in MAY_IMPORT or name in TOP else GROUND


def dotted(path: Path) -> str:
    """The module name of a source file."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever the statement stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _imported_from(node, path)


def _imported_from(node: ast.ImportFrom, path: Path) -> Iterator[str]:
    """`from headcount.records import heads` means its module; a function means its module."""
    start = path.relative_to(SOURCE.parent).parts[: -node.level] if node.level else ()
    parts = [*start, *(node.module or "").split(".")] if node.module else [*start]
    for alias in node.names:
        inner = SOURCE.parent.joinpath(*parts, alias.name)
        is_module = inner.is_dir() or inner.with_suffix(".py").is_file()
        yield ".".join([*parts, alias.name] if is_module else parts)


def offences(path: Path) -> list[str]:
    """The imports of a file that its room may not have."""
    room = room_of(dotted(path))
    return [module for module in imports(path) if not _allowed(room, module)]


def _allowed(room: str, module: str) -> bool:
    library = module.split(".")[0]
    if library != "headcount":
        return room not in WITHOUT_MODELS or library not in MODEL_LIBRARIES
    return room in TOP or room_of(module) in MAY_IMPORT[room] | {room}


# --- imports ------------------------------------------------------------------------------------


def test_there_is_something_to_read() -> None:
    assert len(MODULES) > 20


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_room_imports_only_what_the_table_allows(path: Path) -> None:
    room = room_of(dotted(path))
    assert not offences(path), f"{dotted(path)} is in the room '{room}'; see MAY_IMPORT above"


def test_every_folder_has_its_row() -> None:
    folders = {path.relative_to(SOURCE).parts[0] for path in MODULES if path.parent != SOURCE}
    assert folders <= MAY_IMPORT.keys() | TOP | GROUND_FOLDERS, "a new room needs a row above"


@pytest.mark.parametrize(
    ("place", "line", "caught"),
    [
        ("heads.py", "import torch", True),
        ("heads.py", "def f():\n    from transformers import AutoModel", True),
        ("heads.py", "import numpy", False),
        ("stats/ranks.py", "from headcount import heads", False),
        ("stats/ranks.py", "from headcount.models import load", True),
        ("text/words.py", "from headcount.models.site import Site", True),
        ("text/words.py", "from ..models.site import Site", True),
        ("text/words.py", "from . import batch", False),
        ("wiring/taps.py", "from headcount.text.batch import Batch", False),
        ("wiring/taps.py", "from headcount.survey.tally import Tally", True),
        ("tallies/entropy.py", "from headcount.wiring import rows", False),
        ("tallies/entropy.py", "from headcount.tasks import lm", True),
        ("tallies/entropy.py", "from headcount import survey", True),
        ("tallies/entropy.py", "import headcount", True),
        ("survey.py", "from headcount.survey.tally import Tally", False),
        ("cli/ls.py", "import torch", False),
    ],
)
def test_the_reader_of_imports_sees_what_it_should(
    place: str, line: str, caught: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "headcount"
    for name in ("heads.py", "survey.py", "text/batch.py", "wiring/rows.py", place):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).touch()
    (package / place).write_text(line, encoding="utf8")
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", package)
    assert bool(offences(package / place)) is caught


# --- what importing costs -----------------------------------------------------------------------


def loaded_by(modules: list[str]) -> set[str]:
    """The libraries that a fresh Python holds after these imports."""
    code = f"import sys, {', '.join(modules)}; print(*{{m.split('.')[0] for m in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_command_line_loads_nothing_heavy() -> None:
    commands = [dotted(path) for path in MODULES if room_of(dotted(path)) == "cli"]
    assert commands
    assert not loaded_by(["headcount", *commands]) & HEAVY


def test_the_ground_floor_loads_no_model_library() -> None:
    rooms = WITHOUT_MODELS - {"roles"}  # roles name no library, but the tallies they read do
    ground = [dotted(path) for path in MODULES if room_of(dotted(path)) in rooms]
    assert ground
    assert not loaded_by(ground) & MODEL_LIBRARIES


# --- names --------------------------------------------------------------------------------------

HOMELESS = re.compile(r"(.+_)?(utils?|utilit(y|ies)|helpers?|managers?|misc|common|v\d+)")


def project_files() -> list[Path]:
    """Every file of the project: all that .gitignore does not name."""
    lines = (ROOT / ".gitignore").read_text(encoding="utf8").split()
    folders = [".git", *(line.strip("/") for line in lines)]
    names = [line.lstrip("/") for line in lines if not line.endswith("/")]
    files: list[Path] = []
    for folder, inner, found in os.walk(ROOT):
        inner[:] = _kept(inner, folders)
        files += [Path(folder, name).relative_to(ROOT) for name in _kept(found, names)]
    return sorted(files)


def _kept(names: list[str], ignored: list[str]) -> list[str]:
    return [name for name in names if not any(fnmatch(name, pattern) for pattern in ignored)]


def test_no_file_is_called_utils() -> None:
    homeless = [
        str(path)
        for path in project_files()
        if any(HOMELESS.fullmatch(Path(part).stem) for part in path.parts)
    ]
    assert not homeless, "a function moves beside its only caller, or earns a file of its name"


def offered_names(path: Path) -> set[str]:
    """A module's `__all__`; nothing where it has none."""
    for node in ast.parse(path.read_text(encoding="utf8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def bound_names(path: Path) -> set[str]:
    """What a module binds at its top level."""
    names: set[str] = set()
    for node in ast.walk(_without_bodies(path)):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names.update(alias.asname or alias.name.split(".")[0] for alias in aliases)
    return names


def _without_bodies(path: Path) -> ast.Module:
    """The module with its functions and classes emptied."""
    tree = ast.parse(path.read_text(encoding="utf8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.body = []
    return tree


def lost_imports(path: Path) -> list[str]:
    """The modules and names of headcount that a file imports and that are not there."""
    lost = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "headcount":
            names = {alias.name for alias in node.names}
            lost += [f"{node.module}.{name}" for name in sorted(names - _had_from(node.module))]
    return lost


def _had_from(module: str | None) -> set[str]:
    """What can be imported from a module of headcount."""
    place = SOURCE.parent.joinpath(*(module or "").split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    if not file.is_file():
        return set()
    inner = {path.stem for path in place.iterdir()} if place.is_dir() else set()
    return bound_names(file) | offered_names(file) | inner


OUTSIDE = [
    path for path in project_files() if path.suffix == ".py" and path.parts[0] not in {"src"}
]


def test_nothing_outside_imports_what_is_gone() -> None:
    """Experiments are run by hand, seldom: a name that moved would be missed for months."""
    assert len(OUTSIDE) > 100
    lost = {str(path): names for path in OUTSIDE if (names := lost_imports(ROOT / path))}
    assert not lost


def test_the_reader_of_lost_imports_sees_what_it_should(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text(
        "from headcount.records.heads import Head, Tail\nfrom headcount.gone import x\n"
    )
    assert lost_imports(file) == ["headcount.records.heads.Tail", "headcount.gone.x"]


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_module_has_what_it_offers(path: Path) -> None:
    if path != SOURCE / "__init__.py":  # the façade may fetch its names when they are asked for
        assert offered_names(path) <= bound_names(path)


def test_the_facade_offers_exactly_what_can_be_had_from_it() -> None:
    import headcount

    for name in headcount.__all__:
        assert hasattr(headcount, name), f"headcount.{name} is in __all__ but cannot be had"
    shown = {name for name in dir(headcount) if not name.startswith("_")}
    assert shown == set(headcount.__all__)


def test_types_know_the_names_of_the_facade() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf8"))
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.col_offset <= 4  # not inside a function
        if (node.module or "").split(".")[0] == "headcount"
        for alias in node.names
    }
    assert imported == offered_names(SOURCE / "__init__.py")


# --- text ---------------------------------------------------------------------------------------

TEXT = (".py", ".md", ".toml", ".txt", ".yml", ".cff", ".json", ".tsv", ".conllu", ".css", ".js")
NAMED = ("Makefile", "LICENSE", ".gitignore", "run")

#: Folders of one machine, and the hosts of package registries.
MACHINE = re.compile(r"(?<![\w.~$}>-])/(?:root|home|work|tmp|opt|mnt|Users)/|[A-Z]:\\Users\\")
REGISTRY = re.compile(
    r"pypi\.(?:org|python)|pythonhosted\.org|download\.pytorch\.org"
    r"|(?:index-url|find-links|trusted-host|INDEX_URL|FIND_LINKS)[=\s]+['\"]?(?:https?|file):",
    re.IGNORECASE,
)


def text_files() -> list[Path]:
    """The project's files that hold text, but for this one, which holds what it looks for."""
    own = Path(__file__).relative_to(ROOT)
    return [p for p in project_files() if (p.suffix in TEXT or p.name in NAMED) and p != own]


@pytest.mark.parametrize("pattern", [MACHINE, REGISTRY], ids=["machine paths", "registry hosts"])
def test_text_speaks_of_no_one_machine(pattern: re.Pattern[str]) -> None:
    found = [
        f"{path}:{number}: {line.strip()[:80]}"
        for path in text_files()
        for number, line in enumerate((ROOT / path).read_text(encoding="utf8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found


@pytest.mark.parametrize(
    ("line", "pattern", "caught"),
    [
        ("see /home/me/data", MACHINE, True),
        ("open('/tmp/x')", MACHINE, True),
        ("https://example.org/home/page", MACHINE, False),
        ("docs/work/plan", MACHINE, False),
        ("~/.cache/headcount", MACHINE, False),
        ("pip install --index-url https://mirror.example/simple", REGISTRY, True),
        ("set PIP_FIND_LINKS to a folder that holds the wheel", REGISTRY, False),
        ("PIP_INDEX_URL=https://mirror.example", REGISTRY, True),
    ],
)
def test_the_reader_of_text_sees_what_it_should(
    line: str, pattern: re.Pattern[str], caught: bool
) -> None:
    assert bool(pattern.search(line)) is caught


LINK = re.compile(r"\]\(([^)\s]+)\)")
ELSEWHERE = ("http://", "https://", "mailto:", "#")


def test_pages_link_to_what_is_there() -> None:
    dead = [
        f"{page}: {target}"
        for page in project_files()
        if page.suffix == ".md"
        for target in LINK.findall((ROOT / page).read_text(encoding="utf8"))
        if not target.startswith(ELSEWHERE)
        and not (ROOT / page.parent / target.split("#")[0]).exists()
    ]
    assert not dead


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = LINK.findall((folder / "README.md").read_text(encoding="utf8"))
    assert {page.name for page in folder.glob("0*.md")} <= set(listed)
