"""Operators that run as they are, with their tests: what they do is a beginning, to be replaced."""

from __future__ import annotations

from collections.abc import Mapping

from tools.data.catalogue.kinds import OwnKind

_MAPPER = '''"""$intent"""

from data_juicer.ops.base_op import OPERATORS, Mapper


@OPERATORS.register_module("$name")
class $cls(Mapper):
    """$intent"""

    def __init__(self, suffix: str = "", *args, **kwargs):
        """
        Initialization method.

        :param suffix: what is put behind each text
        :param args: extra args
        :param kwargs: extra args
        """
        super().__init__(*args, **kwargs)
        self.suffix = suffix

    def process_single(self, sample):
        """Changes one sample."""
        sample[self.text_key] = sample[self.text_key].strip() + self.suffix
        return sample
'''

_FILTER = '''"""$intent"""

import sys

from data_juicer.ops.base_op import OPERATORS, Filter
from data_juicer.utils.constant import Fields

STAT = "$name"


@OPERATORS.register_module("$name")
class $cls(Filter):
    """$intent"""

    def __init__(self, min_value: float = 1, max_value: float = sys.maxsize, *args, **kwargs):
        """
        Initialization method.

        :param min_value: samples with less are dropped
        :param max_value: samples with more are dropped
        :param args: extra args
        :param kwargs: extra args
        """
        super().__init__(*args, **kwargs)
        self.min_value = min_value
        self.max_value = max_value

    def compute_stats_single(self, sample, context=False):
        """Measures one sample."""
        if STAT not in sample[Fields.stats]:
            sample[Fields.stats][STAT] = len(sample[self.text_key])
        return sample

    def process_single(self, sample):
        """Whether a measured sample is kept."""
        return self.get_keep_boolean(sample[Fields.stats][STAT], self.min_value, self.max_value)
'''

_DEDUPLICATOR = '''"""$intent"""

import hashlib

from data_juicer.ops.base_op import OPERATORS, Deduplicator
from data_juicer.utils.constant import HashKeys


@OPERATORS.register_module("$name")
class $cls(Deduplicator):
    """$intent"""

    def __init__(self, lowercase: bool = False, *args, **kwargs):
        """
        Initialization method.

        :param lowercase: whether texts that differ in case are the same
        :param args: extra args
        :param kwargs: extra args
        """
        super().__init__(*args, **kwargs)
        self.lowercase = lowercase

    def compute_hash(self, sample):
        """Gives samples that are the same the same hash."""
        text = sample[self.text_key].strip()
        text = text.lower() if self.lowercase else text
        sample[HashKeys.hash] = hashlib.sha256(text.encode("utf-8")).hexdigest()
        return sample

    def process(self, dataset, show_num=0):
        """Keeps the first sample of each hash."""
        first = {}
        for place, key in enumerate(dataset[HashKeys.hash]):
            first.setdefault(key, place)
        return dataset.select(sorted(first.values())), {}
'''

_SELECTOR = '''"""$intent"""

from typing import Optional

from data_juicer.ops.base_op import OPERATORS, Selector


@OPERATORS.register_module("$name")
class $cls(Selector):
    """$intent"""

    def __init__(self, select_num: Optional[int] = None, *args, **kwargs):
        """
        Initialization method.

        :param select_num: how many samples are kept; None keeps all
        :param args: extra args
        :param kwargs: extra args
        """
        super().__init__(*args, **kwargs)
        self.select_num = select_num

    def process(self, dataset):
        """Chooses samples of the whole."""
        if self.select_num is None:
            return dataset
        return dataset.select(range(min(self.select_num, len(dataset))))
'''

_TEST = '''"""Tests of $name; run them with pytest where Data-Juicer is installed."""

import json
from pathlib import Path

from $name import $cls

SAMPLES = [
    json.loads(line)
    for line in Path(__file__).with_name("samples.jsonl").read_text(encoding="utf-8").splitlines()
]


'''

_MAPPER_TEST = """def test_it_changes_texts_and_keeps_the_rest():
    operator = $cls(suffix="!")
    made = [operator.process_single(dict(each)) for each in SAMPLES]
    assert all(each["text"].endswith("!") for each in made)
    assert [each["id"] for each in made] == [each["id"] for each in SAMPLES]
"""

_FILTER_TEST = """def test_it_keeps_what_is_within_the_bounds():
    from data_juicer.utils.constant import Fields

    operator = $cls(min_value=5)
    measured = [operator.compute_stats_single({**each, Fields.stats: {}}) for each in SAMPLES]
    kept = [each["text"] for each in measured if operator.process_single(each)]
    assert kept == [each["text"] for each in SAMPLES if len(each["text"]) >= 5]
"""

_DEDUPLICATOR_TEST = """def test_it_keeps_the_first_of_each():
    from datasets import Dataset

    operator = $cls(lowercase=True)
    hashed = Dataset.from_list([operator.compute_hash(dict(each)) for each in SAMPLES])
    kept, _ = operator.process(hashed)
    assert len(kept) == len({each["text"].strip().lower() for each in SAMPLES})
"""

_SELECTOR_TEST = """def test_it_keeps_as_many_as_it_is_told():
    from datasets import Dataset

    kept = $cls(select_num=2).process(Dataset.from_list(SAMPLES))
    assert [each["id"] for each in kept] == [each["id"] for each in SAMPLES[:2]]
"""

OPERATORS: Mapping[OwnKind, str] = {
    "mapper": _MAPPER,
    "filter": _FILTER,
    "deduplicator": _DEDUPLICATOR,
    "selector": _SELECTOR,
}
"""The operator of each kind; `$name`, `$cls` and `$intent` are put in."""

TESTS: Mapping[OwnKind, str] = {
    "mapper": _TEST + _MAPPER_TEST,
    "filter": _TEST + _FILTER_TEST,
    "deduplicator": _TEST + _DEDUPLICATOR_TEST,
    "selector": _TEST + _SELECTOR_TEST,
}
"""Its test."""

SAMPLES = (
    '{"id": 1, "text": "A first text."}\n'
    '{"id": 2, "text": "a first text."}\n'
    '{"id": 3, "text": "No"}\n'
)
"""Rows to try it on."""

README = """# $name

$intent

- `$name.py` is the operator, a $kind of Data-Juicer $version: put in what it is to do.
- `test_$name.py` tests it on `samples.jsonl`.

In a recipe:

```yaml
custom_operator_paths:
- $path
process:
- $name: {}
```
"""
