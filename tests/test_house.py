"""The rules of the house: which package may import which, how large it may be, what text may hold.

The source is read with `ast`, so that an import inside a function counts like any other.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "headcount"
MODULES = sorted(SOURCE.rglob("*.py"))

#: Ratchets: they go down with the house, and up only with a decision page that says what for.
MOST_MODULES = 217
MOST_LINES = 45_110
#: The core: everything but `rooms`. What is new goes into rooms.
MOST_CORE_MODULES = 97
MOST_CORE_LINES = 20_410
MOST_IMPORTS = 0.105
#: The core finds rooms by the registry (`headcount.plugins`), and imports none of them.
MOST_EDGES = 0

# --- the ladder ---------------------------------------------------------------------------------

#: A package sees those on lower steps, never one on its own step or above.
LADDER: tuple[tuple[str, ...], ...] = (
    ("errors", "doors"),
    ("plugins",),
    ("records", "stats", "bundle"),
    ("text",),
    ("models",),
    ("wiring",),
    ("tasks",),
    ("surveys",),
    ("importance",),
    ("pruning",),
    ("reports",),
    ("cli",),
    ("rooms",),
    ("__main__",),
)
STEP = {name: step for step, names in enumerate(LADDER) for name in names}

#: Packages within a package that have a door of their own.
INNER_DOORS = {"surveys.roles", "bundle.sample"}

#: Numbers are enough for these: no model, so none of the libraries that run one.
WITHOUT_MODELS = {"errors", "doors", "records", "stats", "rooms.figures", "reports.parts"}
MODEL_LIBRARIES = {"torch", "transformers", "accelerate", "peft"}

#: What must not be loaded before a command does its work, so that --help is instant.
HEAVY = {"torch", "transformers", "pandas", "scipy", "sklearn", "pyarrow", "matplotlib"}


def dotted(path: Path) -> str:
    """The module name of a source file, without the leading ``headcount.``."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(module: str) -> str:
    """The package that a module belongs to; each room is one of its own."""
    parts = module.split(".")
    return ".".join(parts[:2] if parts[0] == "rooms" else parts[:1])


def step_of(package: str) -> int | None:
    """The step of the ladder that a package stands on."""
    return STEP.get(package.split(".")[0])


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf8"))


class Import(NamedTuple):
    """One name that a module takes from another module of headcount."""

    module: str
    name: str
    #: Whether it is loaded with the module: not inside a function, not for types alone.
    at_once: bool


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """What a file imports from headcount, wherever the statement stands."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[Import]:
    tree = parsed(path)
    at_once = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "headcount":
            module = (node.module or "").removeprefix("headcount").removeprefix(".")
            for alias in node.names:
                yield Import(module, alias.name, id(node) in at_once)


def libraries(path: Path) -> Iterator[str]:
    """The other packages that a file imports."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]


@cache
def door(package: str) -> dict[str, tuple[str, str]]:
    """The names of a package's door, each with the module and the name that stand behind it."""
    file = SOURCE.joinpath(*package.split("."), "__init__.py") if package else None
    if file is None or not file.is_file():
        return {}
    return {
        (alias.asname or alias.name): ((node.module or "").removeprefix("headcount."), alias.name)
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.ImportFrom) and (node.module or "") != "headcount.doors"
        for alias in node.names
        if (node.module or "").startswith("headcount")
    }


def home(taken: Import) -> set[str]:
    """The modules that an import loads; doors are looked through, a whole package is all of it."""
    module, name = taken.module, taken.name
    if name in door(module):
        return home(Import(*door(module)[name], taken.at_once))
    inner = f"{module}.{name}".strip(".")
    if SOURCE.joinpath(*inner.split(".")).is_dir():
        return {one for behind in door(inner).values() for one in home(Import(*behind, True))}
    return {inner if SOURCE.joinpath(*inner.split(".")).with_suffix(".py").is_file() else module}


def offences(path: Path) -> list[str]:
    """The imports of a file that point up or sideways, or past a door."""
    here = dotted(path)
    if not here:
        return []  # the façade names everything
    found = []
    for taken in imports(path):
        inner = f"{taken.module}.{taken.name}".strip(".")
        package, step = package_of(inner), step_of(package_of(inner))
        if step is None or package == package_of(here):
            continue  # a name of the façade is no module, and a package knows itself
        if step >= (step_of(here) or 0) and "rooms" not in (package, package.split(".")[0]):
            found.append(f"{inner} stands no lower than {package_of(here)}")
        is_door = taken.module in {"", package, "rooms", *INNER_DOORS}
        if not is_door and step > 0:
            found.append(f"{inner} goes past the door of {package}")
    return found


# --- imports ------------------------------------------------------------------------------------


def test_there_is_something_to_read() -> None:
    assert len(MODULES) > 20


def test_dependencies_point_down_the_ladder_and_through_doors() -> None:
    found = {dotted(path): lines for path in MODULES if (lines := offences(path))}
    assert not found, "see LADDER; what others may use is listed in the package's __init__"


def test_the_package_and_its_tests_know_nothing_of_the_research() -> None:
    files = [*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]
    assert not [str(path) for path in files if "research" in libraries(path)]


def test_every_entry_at_the_top_stands_on_the_ladder() -> None:
    entries = {Path(path.relative_to(SOURCE).parts[0]).stem for path in MODULES}
    assert entries - {"__init__"} <= STEP.keys()


@pytest.mark.parametrize(
    ("place", "line", "caught"),
    [
        ("records/heads.py", "from headcount.models import load", True),
        ("records/heads.py", "def f():\n    from headcount.models import load", True),
        ("records/heads.py", "import numpy", False),
        ("stats/ranks.py", "from headcount.records import Head", True),
        ("text/words.py", "from headcount.records import Head", False),
        ("text/words.py", "from headcount.records.heads import Head", True),
        ("text/words.py", "from headcount.text.batch import Batch", False),
        ("text/words.py", "from headcount.errors import UsageError", False),
        ("wiring/taps.py", "from headcount.surveys.tally import Tally", True),
        ("importance/scoring.py", "from headcount.surveys.roles import Sink", False),
        ("surveys/tally.py", "from headcount import importance", True),
        ("cli/ls.py", "import torch", False),
    ],
)
def test_the_reader_of_imports_sees_what_it_should(
    place: str, line: str, caught: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "headcount"
    (package / place).parent.mkdir(parents=True)
    (package / place).write_text(line, encoding="utf8")
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", package)
    assert bool(offences(package / place)) is caught


def edges() -> list[str]:
    """What the core imports from the rooms."""
    return [
        f"{dotted(path)} -> {taken.module}"
        for path in MODULES
        if dotted(path) and package_of(dotted(path)).split(".")[0] != "rooms"
        for taken in imports(path)
        if taken.module.split(".")[0] == "rooms"
    ]


def test_the_core_imports_nothing_from_the_rooms() -> None:
    assert len(edges()) <= MOST_EDGES, edges()


def test_every_module_imports_by_its_dotted_name() -> None:
    """``import a.b.c as m`` and `importlib` give the same module: no verb stands in its way."""
    names = [f"headcount.{dotted(path)}" for path in MODULES if dotted(path)]
    names = [n for n in names if "kernel.kernel" not in n and not n.endswith("__main__")]
    both = "import {0} as m; assert m is importlib.import_module({0!r}), {0!r}"
    lines = ["import importlib", *(both.format(name) for name in names)]
    code = "\n".join(lines)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]


# --- size ---------------------------------------------------------------------------------------


def code_lines(path: Path) -> tuple[int, int]:
    """Lines of code (no blank line, comment or docstring), and how many of them are imports."""
    text, tree = path.read_text(encoding="utf8"), parsed(path)
    code = {number for number, line in enumerate(text.splitlines(), 1) if line.strip()}
    code -= {n for n, line in enumerate(text.splitlines(), 1) if line.strip().startswith("#")}
    brought: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                code -= set(range(first.lineno, (first.end_lineno or 0) + 1))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            brought |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(code), len(code & brought)


REAL = [path for path in MODULES if path.name != "__init__.py"]


def loaded_with() -> dict[str, set[str]]:
    """Module: the modules that are loaded with it, doors looked through.

    ``from headcount import pruning`` gives the door, which loads nothing until a name is used.
    """
    return {
        dotted(path): {
            one
            for taken in imports(path)
            if taken.at_once and not SOURCE.joinpath(taken.name).is_dir()
            for one in home(taken)
        }
        - {dotted(path)}
        for path in REAL
    }


def longest_chain() -> list[str]:
    """The longest way through imports; a cycle is an error."""
    graph, known, open_now = loaded_with(), dict[str, list[str]](), []

    def chain(module: str) -> list[str]:
        assert module not in open_now, f"a cycle of imports: {[*open_now, module]}"
        if module not in known:
            open_now.append(module)
            ways = [chain(one) for one in sorted(graph.get(module, ()))]
            open_now.pop()
            known[module] = [module, *max(ways, key=len, default=[])]
        return known[module]

    return max((chain(module) for module in graph), key=len)


def test_a_walk_through_the_house_is_short() -> None:
    way = longest_chain()
    assert len(way) <= 14, f"nobody follows a chain of {len(way)} modules: {' > '.join(way)}"


def test_modules_are_deep_and_few() -> None:
    assert len(REAL) <= MOST_MODULES, (
        f"{len(REAL)} modules, at most {MOST_MODULES}: a module is worth its file when it hides "
        "much more than it shows; put a small one into its only importer"
    )


def test_the_code_does_not_grow_by_itself() -> None:
    lines = sum(code_lines(path)[0] for path in MODULES)
    assert lines <= MOST_LINES, (
        f"{lines:,} lines of code, at most {MOST_LINES:,}: before adding, look for what to extend "
        "and what the change made dead; a new subject may raise the number, with a decision page"
    )


def test_what_is_new_goes_into_rooms() -> None:
    core = [path for path in MODULES if "rooms" not in path.relative_to(SOURCE).parts]
    lines = sum(code_lines(path)[0] for path in core)
    assert lines <= MOST_CORE_LINES, f"{lines:,} lines of core, at most {MOST_CORE_LINES:,}"
    modules = [path for path in core if path.name != "__init__.py"]
    assert len(modules) <= MOST_CORE_MODULES, f"{len(modules)} modules of core"


def test_little_of_the_code_is_imports() -> None:
    counted = [code_lines(path) for path in MODULES]
    share = sum(brought for _, brought in counted) / sum(lines for lines, _ in counted)
    assert share <= MOST_IMPORTS, f"{share:.1%} of the code is imports: modules are cut too small"


def test_small_modules_have_more_than_one_reader() -> None:
    readers: Counter[str] = Counter()
    for path in REAL:
        readers.update({one for taken in imports(path) for one in home(taken)} - {dotted(path)})
    small = [
        dotted(path) for path in REAL if code_lines(path)[0] < 60 and readers[dotted(path)] == 1
    ]
    assert len(small) <= 10, f"a small module with one importer belongs into it: {small}"


def test_the_top_of_the_package_is_seen_at_a_glance() -> None:
    hidden = {"__init__.py", "__main__.py"}
    entries = sorted({path.relative_to(SOURCE).parts[0] for path in MODULES} - hidden)
    assert len(entries) <= 16, f"more than 16 entries at the top: {entries}"


def test_a_public_name_is_defined_once() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in parsed(path).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(dotted(path))
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice, "a reader who searches for a name must land on one thing"


# --- what importing costs -----------------------------------------------------------------------


def loaded_by(modules: list[str]) -> set[str]:
    """The libraries that a fresh Python holds after these imports."""
    names = ", ".join(f"headcount.{module}" for module in modules)
    code = f"import sys, {names}; print(*{{m.split('.')[0] for m in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_command_line_loads_nothing_heavy() -> None:
    commands = [
        dotted(path)
        for path in MODULES
        if package_of(dotted(path)) == "cli" or path.name == "command.py"
    ]
    assert commands
    assert not loaded_by(commands) & HEAVY


#: The one module that prints, and one program of its own, which writes JSON to its parent.
PRINTS = {"cli.printing", "models.saving.fresh_load"}
PRINTERS = {"print", "Console", "typer.echo", "typer.secho", "typer.style", "sys.stdout.write"}
PRINTERS |= {"click.echo", "sys.stderr.write", "rich.print"}


def printers(path: Path) -> list[str]:
    """Calls of a file that reach the terminal past `cli.printing`, which spells out what steers."""
    calls = [
        ast.unparse(node.func)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and "file=io.StringIO()" not in ast.unparse(node)  # no terminal
    ]
    return [f"{dotted(path)} calls {name}" for name in calls if name in PRINTERS]


#: Modules that turn bytes into calls, and functions that do so unless told otherwise.
PICKLES = {"pickle", "cloudpickle", "_pickle", "dill", "joblib", "shelve", "marshal", "jsonpickle"}
LOADS = {"torch.load": "", "np.load": "allow_pickle=False", "numpy.load": "allow_pickle=False"}
#: Ray's own way between processes, in memory; nothing of it is on a disk.
MAY_PICKLE = {"rooms/ray/engine.py"}


def pickles_in(tree: ast.AST) -> Iterator[str]:
    """What could run a pickle: imports, attributes of that name, and loads that allow it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [one.name for one in node.names] + [getattr(node, "module", None) or ""]
            yield from (name for name in names if PICKLES & {*name.split(".")})
        elif isinstance(node, ast.Attribute) and node.attr in PICKLES:
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                yield "allow_pickle"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in LOADS:
            wanted = LOADS[ast.unparse(node.func)]
            if not wanted or wanted not in ast.unparse(node):
                yield ast.unparse(node.func)


def test_no_pickle_is_read() -> None:
    """Weights that are pickles (--allow-bin) are read by transformers, with weights_only=True."""
    found = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in MODULES
        if str(path.relative_to(SOURCE)) not in MAY_PICKLE
        for name in pickles_in(ast.parse(path.read_text(encoding="utf8")))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from joblib import load",
        "import torch; torch.load(path)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, None, True)",
        "np.savez(path, allow_pickle=True)",
        "ray.cloudpickle.loads(data)",
    ],
)
def test_the_reader_of_pickles_sees_what_it_should(line: str) -> None:
    assert list(pickles_in(ast.parse(line)))
    assert not list(pickles_in(ast.parse("np.load(path, allow_pickle=False)")))


def test_only_one_module_prints() -> None:
    assert [one for path in MODULES if dotted(path) not in PRINTS for one in printers(path)] == []
    assert printers(SOURCE / "cli" / "printing.py")


def test_what_needs_no_model_loads_no_model_library() -> None:
    light = [
        dotted(path)
        for path in MODULES
        if any(f"{dotted(path)}.".startswith(f"{name}.") for name in WITHOUT_MODELS)
    ]
    assert len(light) > 20
    assert not loaded_by(light) & MODEL_LIBRARIES


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
    return bound_names(file) | inner


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


def test_every_door_gives_what_it_lists() -> None:
    packages = {dotted(path) for path in MODULES if path.name == "__init__.py"}
    for package in sorted(packages - {""}):
        module = importlib.import_module(f"headcount.{package}")
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"headcount.{package} lists {name}, which is not there"


def test_the_facade_offers_exactly_what_can_be_had_from_it() -> None:
    import headcount

    for name in headcount.__all__:
        assert hasattr(headcount, name), f"headcount.{name} is in __all__ but cannot be had"
    shown = {name for name in dir(headcount) if not name.startswith("_")}
    assert shown == set(headcount.__all__)


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


#: A path of a page: from a folder of the project, or from a package of headcount.
PATH = re.compile(
    r"`((?:src|tests|docs|scripts|research|"
    + "|".join(sorted({path.relative_to(SOURCE).parts[0] for path in MODULES} - {"cli.py"}))
    + r")/[\w/.-]+\.\w+)`"
)


def lost_paths(text: str) -> list[str]:
    """The paths in backticks that lead nowhere."""
    return [
        path
        for path in PATH.findall(text)
        if not (ROOT / path).exists() and not (SOURCE / path).exists()
    ]


def test_paths_on_pages_lead_somewhere() -> None:
    pages = [
        page
        for page in project_files()
        if page.suffix == ".md"
        and page.name != "CHANGELOG.md"
        and not {"decisions", "results"} & set(page.parts)
    ]
    assert len(pages) > 20
    lost = {str(page): lost_paths((ROOT / page).read_text(encoding="utf8")) for page in pages}
    assert not {page: paths for page, paths in lost.items() if paths}
    assert lost_paths("see `src/headcount/gone.py` and `records/heads.py`") == [
        "src/headcount/gone.py"
    ]


#: A name of a page, with dots: `headcount.module.thing`.
DOTTED = re.compile(r"`(headcount(?:\.\w+){2,})")


def lost_names(text: str) -> list[str]:
    """The names in backticks that are no module of headcount and nothing that one binds."""
    lost = []
    for name in DOTTED.findall(text):
        place, parts = SOURCE, name.split(".")[1:]
        while parts and (place / parts[0]).is_dir():
            place /= parts.pop(0)
        if parts and (place / f"{parts[0]}.py").is_file():
            place = place / f"{parts.pop(0)}.py"
        file = place if place.suffix else place / "__init__.py"
        inner = {} if place.suffix else door(".".join(place.relative_to(SOURCE).parts))
        if parts and parts[0] not in bound_names(file) | inner.keys():
            lost.append(name)
    return lost


def test_names_on_pages_lead_somewhere() -> None:
    pages = [
        page
        for page in project_files()
        if page.suffix == ".md"
        and page.name != "CHANGELOG.md"
        and not {"decisions", "results"} & set(page.parts)
    ]
    lost = {str(page): lost_names((ROOT / page).read_text(encoding="utf8")) for page in pages}
    assert not {page: names for page, names in lost.items() if names}
    assert lost_names("`headcount.records.gone`, `headcount.records.HeadTable`") == [
        "headcount.records.gone"
    ]


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = LINK.findall((folder / "README.md").read_text(encoding="utf8"))
    assert {page.name for page in folder.glob("0*.md")} <= set(listed)


def test_the_map_names_files_that_are_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf8")
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", page)) | set(re.findall(r"`((?:\w+/)+)`", page))
    assert len(named) > 50
    lost = [name for name in named if not (SOURCE / name).exists() and not (ROOT / name).exists()]
    assert not lost, "a file of docs/architecture.md moved"
