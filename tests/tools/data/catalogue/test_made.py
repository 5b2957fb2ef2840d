"""The files of the catalogue: made from a release's source, and as they were made."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from tools.data.catalogue.catalogue import Catalogue, bundled, file_parameters
from tools.data.release import VERSION

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "tools" / "data" / "catalogue"
BASE = '''
class OP:
    _BASE_PARAMS = {"text_key": (str, "text"), "work_dir": (None, None)}
    _supported_exec_modes = ("default",)
    def __init__(self, *args, **kwargs):
        """Begins.

        :param text_key: where a sample has its text
        """

class Filter(OP):
    _BASE_PARAMS = {**OP._BASE_PARAMS, "reversed_range": (bool, False)}
    _supported_exec_modes = ("default", "ray")
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
'''
OPERATOR = '''
import sys
from typing import Annotated, List, Literal, Optional, Union
from pydantic import Field, PositiveInt
from ..base_op import OPERATORS, Filter

OP_NAME = "size_filter"
UNIT = "MB"

@OPERATORS.register_module(OP_NAME)
class SizeFilter(Filter):
    """Keeps samples of a size.

    - Asks a
      model as well."""
    _accelerator = "cuda"

    def __init__(
        self,
        least: int,
        most: PositiveInt = sys.maxsize,
        unit: Optional[str] = UNIT,
        share: Annotated[float, Field(ge=0, le=1)] = 0.5,
        names: Union[str, List[str], None] = None,
        way: Literal["any", "all"] = "any",
        box: tuple[int, int] = (1, 2),
        how=Keys.how,
        *args,
        **kwargs,
    ):
        """Begins.

        :param least: the least
            size
        :param args: extra
        """
        super().__init__(*args, **kwargs)
        self.model = prepare_model(model_type="huggingface", model=self.text_key)

@OPERATORS.register_module(f"{OP_NAME}_with_uid")
class SizeFilterWithUid(SizeFilter):
    """Keeps samples of a size, with ids."""

    def __init__(self, uid: str = "id", **kwargs):
        super().__init__(least=1, **kwargs)

class NotOne(Filter):
    pass
'''
CONFIGURATION = """
def build():
    parser.add_argument("--config", action=Read, help="not a key")
    parser.add_argument("--np", type=PositiveInt, default=4, help="How " "many.")
    parser.add_argument("--mode.kind", type=str, default="a", choices=["a", "b"], help="Which.")
    parser.add_argument("--custom-paths", nargs="+", help="Where.")
"""
FORMATTERS = '''
@FORMATTERS.register_module()
class CsvFormatter:
    """Reads CSV."""
    SUFFIXES = [".csv"]
    def __init__(self, dataset_path, text_keys: List[str] = None):
        """:param dataset_path: where"""
'''
STRATEGIES = '''
@Registry.register("default", "remote", "s3")
class S3:
    """From a bucket."""
    CONFIG_VALIDATION_RULES = {
        "required_fields": ["path"],
        "optional_fields": ["region"],
        "custom_validators": {"path": lambda x: x},
    }
    def load_data(self):
        return self.ds_config.get("anon")

@Registry.register("default", "remote", "wiki")
class Wiki:
    def load_data(self):
        raise NotImplementedError("not yet")
'''
EXPORTER = """
class Exporter:
    def _router():
        return {"jsonl": Exporter.to_jsonl, "parquet": Exporter.to_parquet}
"""
RAY_EXPORTER = """
class RayExporter:
    _SUPPORTED_FORMATS = {"parquet", "csv"}
"""
VALIDATORS = """
@DataValidatorRegistry.register("code")
class CodeValidator: ...
"""
SOURCES = {
    "data_juicer/ops/base_op.py": BASE,
    "data_juicer/ops/filter/size_filter.py": OPERATOR,
    "data_juicer/config/config.py": CONFIGURATION,
    "data_juicer/format/csv_formatter.py": FORMATTERS,
    "data_juicer/core/data/load_strategy.py": STRATEGIES,
    "data_juicer/core/data/data_validator.py": VALIDATORS,
    "data_juicer/core/exporter.py": EXPORTER,
    "data_juicer/core/ray_exporter.py": RAY_EXPORTER,
}


@pytest.fixture(scope="module")
def maker() -> dict[str, Any]:
    """The script that makes the files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "assets")
        return runpy.run_path(str(ROOT / "assets" / "make_operators.py"))


@pytest.fixture(scope="module")
def files(maker: dict[str, Any]) -> dict[str, str]:
    made = maker["made"]
    first, second = made(SOURCES), made(dict(reversed(SOURCES.items())))
    assert first == second
    found: dict[str, str] = first
    return found


@pytest.fixture(scope="module")
def catalogue(files: dict[str, str]) -> Catalogue:
    return Catalogue(files["operators.jsonl"].splitlines(), files["release.json"])


def test_registered_classes_are_operators(catalogue: Catalogue) -> None:
    operator = catalogue.operators["size_filter"]

    assert list(catalogue.operators) == ["size_filter", "size_filter_with_uid"]
    assert operator.type == "filter"
    assert operator.tags == ("text", "gpu", "hf")
    assert operator.modes == ("default", "ray")
    assert operator.description == "Keeps samples of a size.\n- Asks a model as well."


@pytest.mark.parametrize(
    ("name", "schema", "default"),
    [
        ("most", {"type": "integer", "exclusiveMinimum": 0}, 2**63 - 1),
        ("unit", {"anyOf": [{"type": "string"}, {"type": "null"}]}, "MB"),
        ("share", {"type": "number", "minimum": 0, "maximum": 1}, 0.5),
        (
            "names",
            {
                "anyOf": [
                    {"type": "string"},
                    {"type": "array", "items": {"type": "string"}},
                    {"type": "null"},
                ]
            },
            None,
        ),
        ("way", {"enum": ["any", "all"]}, "any"),
        (
            "box",
            {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
            [1, 2],
        ),
    ],
)
def test_annotations_become_schemas_and_defaults_values(
    catalogue: Catalogue, name: str, schema: dict[str, Any], default: object
) -> None:
    parameters = {each.name: each for each in catalogue.operators["size_filter"].parameters}

    assert parameters[name].value_schema == schema
    assert parameters[name].default == default
    assert not parameters[name].is_required


def test_what_only_running_would_tell_is_told_as_it_is_written(catalogue: Catalogue) -> None:
    least, *_, how = catalogue.operators["size_filter"].parameters

    assert (least.is_required, least.description) == (True, "the least size")
    assert (how.value_schema, how.computed, how.is_required) == ({}, "Keys.how", False)


def test_parameters_of_the_class_above_are_taken_but_for_those_that_are_given_to_it(
    catalogue: Catalogue,
) -> None:
    names = [each.name for each in catalogue.operators["size_filter_with_uid"].parameters]

    assert names == ["uid", "most", "unit", "share", "names", "way", "box", "how"]


def test_parameters_of_a_kind_are_told_once(catalogue: Catalogue) -> None:
    assert list(catalogue.common("mapper")) == ["text_key", "work_dir"]
    assert list(catalogue.common("filter")) == ["text_key", "work_dir", "reversed_range"]
    assert catalogue.common("mapper")["text_key"].description == "where a sample has its text"


def test_keys_of_a_configuration_are_read_from_its_parser(catalogue: Catalogue) -> None:
    options = catalogue.options

    assert list(options) == ["np", "mode.kind", "custom_paths"]
    assert (options["np"].default, options["np"].description) == (4, "How many.")
    assert options["mode.kind"].value_schema == {"enum": ["a", "b"]}
    listed = {"type": "array", "items": {"type": "string"}}
    assert options["custom_paths"].value_schema == {"anyOf": [listed, {"type": "null"}]}
    assert not any(each.is_required for each in options.values())


def test_formatters_and_strategies_tell_what_they_take(catalogue: Catalogue) -> None:
    s3, wiki = catalogue.strategies

    assert catalogue.formatters["CsvFormatter"].suffixes == (".csv",)
    assert (s3.required, s3.optional, s3.is_implemented) == (("path",), ("region", "anon"), True)
    assert not wiki.is_implemented


def test_formats_of_results_and_checks_of_data_are_told(catalogue: Catalogue) -> None:
    assert catalogue.export_types == {"default": ["jsonl", "parquet"], "ray": ["csv", "parquet"]}
    assert catalogue.validators == ["code"]


def test_the_bundled_files_are_of_the_pinned_release() -> None:
    assert bundled().version == VERSION


def test_the_bundled_words_are_those_of_the_bundled_operators(maker: dict[str, Any]) -> None:
    kept = json.loads(FOLDER.joinpath("terms.json").read_text(encoding="utf-8"))
    lines = FOLDER.joinpath("operators.jsonl").read_text(encoding="utf-8").splitlines()
    counts = [maker["terms_of"](json.loads(line)) for line in lines]

    assert kept["lengths"] == [sum(each.values()) for each in counts]
    for place, each in enumerate(counts):
        held = {term: at[str(place)] for term, at in kept["terms"].items() if str(place) in at}
        assert held == each, "Run assets/make_operators.py again."


def test_every_default_of_the_release_fits_its_schema() -> None:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types

    wrong = [
        f"{operator.name}.{each.name}"
        for operator in bundled().operators.values()
        for each in operator.parameters
        if not each.is_required
        and not each.computed
        and not Draft202012Validator(each.value_schema).is_valid(each.default)
    ]

    assert wrong == []


def test_parameters_that_name_files_to_read_are_known() -> None:
    written = {"batch_meta_export_path"}
    for operator in bundled().operators.values():
        if operator.runs == "here" and not {"image", "audio"} & set(operator.tags):
            named = {
                each.name: "words"
                for each in operator.parameters
                if each.name.endswith(("_dir", "_path", "_file", "tokenizer_model"))
            }
            found = file_parameters(operator.name, {**named, "lang": "en"})
            assert set(found) == named.keys() - written


def test_parameters_that_are_not_given_name_no_file() -> None:
    assert file_parameters("stopwords_filter", {"stopwords_dir": None}) == []
    assert file_parameters("shout_mapper", {"file_path": "own.py"}) == []
