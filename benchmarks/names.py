"""How surely and how fast names are found among thousands of made-up ones.

    python -m benchmarks.names [--names 8000] [--queries 400] [--seed 5] [--json]

The names are made of the lists below, of several cultures, with surnames as unevenly spread as they
are in life. Each kind of query is asked of some of them; a query is answered if the record that it
was made from is among the first five. CPU is that of this process, warm, for the name search of the
product as it stands (`Directories.search_names`).
"""

from __future__ import annotations

import argparse
import json
import random
import string
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from storage.directory.models import RESEARCHERS, Record
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from storage.models import Identity
from storage.people.name_matching import fold
from storage.tokenize import fold_accents, is_spaceless

SHOWN = 5
"""Records that are looked at."""

ENGLISH = (
    (
        "Theresa James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth "
        "William Barbara Richard Susan Joseph Jessica Thomas Sarah Charles Karen "
        "Christopher Nancy Daniel Lisa Matthew Betty Anthony Margaret Mark Sandra Donald "
        "Ashley Steven Kimberly Andrew Emily Paul Donna Joshua Michelle Kenneth Carol "
        "Kevin Amanda Brian Melissa George Deborah Timothy Stephanie Ronald Rebecca "
        "Edward Laura Jason Helen Jeffrey Sharon Ryan Cynthia Jacob Kathleen Gary Amy"
    ),
    (
        "Smith Johnson Williams Brown Jones Miller Davis Wilson Anderson Taylor Thomas "
        "Moore Jackson Martin Lee Thompson White Harris Clark Lewis Robinson Walker Young "
        "Allen King Wright Scott Hill Green Adams Baker Nelson Hall Campbell Mitchell "
        "Carter Roberts Phillips Evans Turner Parker Collins Edwards Stewart Morris "
        "Murphy Cook Rogers Morgan Cooper Peterson Bailey Reed Kelly Howard Ward Cox "
        "Richardson Wood Watson Brooks Bennett Gray Hughes Price Myers Long Foster "
        "Sanders Ross Powell Sullivan Russell Fisher Boyle O'Brien O'Neill McDonald Grant "
        "May Hartley-Jones Winthrop Ashworth Blackwood Carrington Delacroix Fairfax "
        "Holloway Kingsley"
    ),
)
SPANISH = (
    (
        "María José Antonio Carmen Manuel Ana Francisco Isabel Juan Dolores Pedro Pilar "
        "Jesús Teresa Ángel Rosa Miguel Lucía Rafael Elena Sofía Martín Íñigo Concepción "
        "Álvaro Begoña Nicolás"
    ),
    (
        "García González Rodríguez Fernández López Martínez Sánchez Pérez Gómez Martín "
        "Jiménez Ruiz Hernández Díaz Moreno Muñoz Álvarez Romero Alonso Gutiérrez Navarro "
        "Torres Domínguez Vázquez Ramos Gil Ramírez Serrano Blanco Molina Suárez Ortega "
        "Delgado Castro Ibáñez Núñez Peña"
    ),
)
GERMAN = (
    (
        "Jürgen Wolfgang Sabine Petra Klaus Heike Günter Ursula Dieter Monika Björn Käthe "
        "Uwe Renate Matthias Annegret Karl-Heinz Hans-Peter Anna-Lena Ruprecht Friederike "
        "Götz"
    ),
    (
        "Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Hoffmann "
        "Schäfer Koch Bauer Richter Klein Wolf Schröder Neumann Schwarz Zimmermann Braun "
        "Krüger Hofmann Hartmann Lange Weiß Böhm Jäger Groß Köhler Maier Förster Gößmann "
        "Lüdenscheid-Weiß"
    ),
)
DUTCH = (
    ("Jan Pieter Willem Hendrik Anneke Marijke Joost Femke Daan Sanne Bram Lotte Thijs Maaike"),
    (
        "de~Vries van~den~Berg van~der~Meer de~Jong Bakker Janssen Visser van~Dijk "
        "de~Boer Mulder van~der~Linden Dekker van~Leeuwen de~Graaf van~'t~Hof ter~Horst "
        "Vermeulen"
    ),
)
CHINESE = (
    (
        "Wei Fang Min Jing Li Lei Qiang Yan Juan Jie Tao Xin Hua Ming Hao Yu Xiaoming "
        "Xiaoyan Zhiwei Jianguo Haoran Zixuan Yichen Mengyao Ruoxi Tianyu Shuang Bo Peng "
        "Rui"
    ),
    (
        "Wang Li Zhang Liu Chen Yang Huang Zhao Wu Zhou Xu Sun Ma Zhu Hu Guo He Lin Gao "
        "Luo Zheng Liang Xie Song Tang Han Feng Deng Cao Peng Zeng Xiao Tian Dong Pan "
        "Yuan Cai Jiang Yu Du Ye"
    ),
)
INDIAN = (
    (
        "Aarav Priya Rahul Ananya Sanjay Deepika Vikram Kavita Arjun Meera Rajesh Sunita "
        "Anil Lakshmi Suresh Pooja Venkatesh Divya Harish Shreya Ramesh Nandini Karthik "
        "Swathi"
    ),
    (
        "Sharma Patel Singh Kumar Gupta Reddy Iyer Nair Mehta Joshi Rao Desai Chatterjee "
        "Mukherjee Banerjee Krishnamurthy Subramanian Agarwal Verma Mishra Pillai "
        "Bhattacharya Kulkarni"
    ),
)
SLAVIC = (
    (
        "Agnieszka Tomasz Małgorzata Paweł Łukasz Zofia Jiří Kateřina Dmitri Olga Sergei "
        "Natalia Władysław Bożena Andrej Željko Ivana Marek Šárka"
    ),
    (
        "Nowak Kowalski Wiśniewski Wójcik Kamiński Lewandowski Zieliński Szymański Novák "
        "Dvořák Černý Ivanov Petrov Sokolov Volkov Kuznetsov Horvat Kovačević Đorđević "
        "Wałęsa Jabłoński"
    ),
)
ARABIC = (
    ("Ahmed Fatima Mohammed Aisha Omar Layla Hassan Zainab Yusuf Maryam Khalid Noor Ibrahim Huda"),
    ("al-Rashid Hassan el-Sayed Abdullah bin~Khalid Haddad Nasser Mansour al-Masri Khoury Saleh"),
)
HAN = (
    (
        "伟 芳 娜 敏 静 丽 强 磊 军 洋 勇 艳 杰 娟 涛 明 超 秀英 建国 晓明 志强 "
        "雨桐 子涵 浩然 梓萱 思远 佳怡 文博"
    ),
    "王 李 张 刘 陈 杨 黄 赵 吴 周 徐 孙 马 朱 胡 郭 何 林 高 罗 欧阳 司马",
)
BEGINNINGS = (
    "Ash Black Brad Brom Burn Carl Chad Clay Col Cran Dun Elm Fen Gold Hal Hart Haver Hol Kel Kings"
    " Lang Lin Marl Mid Nor Oak Pem Pres Rad Red Rose Shel Stan Sut Thorn Wake Wal Wes Whit Win"
)
ENDINGS = (
    "bridge brook burn bury by combe croft dale den fax field ford gate ham hurst land ley low man"
    " mere more ridge shaw smith stead stone ton well wick wood worth"
)
CULTURES = (
    (ENGLISH, 0.40),
    (SPANISH, 0.12),
    (GERMAN, 0.10),
    (DUTCH, 0.05),
    (CHINESE, 0.12),
    (INDIAN, 0.08),
    (SLAVIC, 0.06),
    (ARABIC, 0.03),
    (HAN, 0.04),
)


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured of one kind of query; times in milliseconds of CPU."""

    kind: str
    queries: int
    recall_5: float
    first: float
    p50_ms: float
    p95_ms: float


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Name search among made-up names.")
    parser.add_argument("--names", type=int, default=8000)
    parser.add_argument("--queries", type=int, default=400, help="of each kind")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    arguments = parser.parse_args()
    for report in run(arguments.names, arguments.queries, arguments.seed):
        if arguments.json:
            print(json.dumps(asdict(report)))
        else:
            print(
                f"{report.kind:14} R@5 {report.recall_5:.3f}  R@1 {report.first:.3f}"
                f"  CPU p50 {report.p50_ms:.2f} ms  p95 {report.p95_ms:.2f} ms"
            )


def run(count: int, queries: int, seed: int) -> Iterator[Report]:
    """Stores the names in a fresh library, and asks for some in each way."""
    chance = random.Random(seed)  # noqa: S311  # the same names each time, not secrets
    names = made_up(count, chance)
    records = [
        Record(key=f"https://people.example/{at}", name=name) for at, name in enumerate(names)
    ]
    with tempfile.TemporaryDirectory() as directory:
        library = Library(Path(directory), MiniLMEmbedder())
        directories = library.shelf(Identity()).directories
        directories.add(RESEARCHERS, records)
        directories.search_names(RESEARCHERS, "warm up", SHOWN)
        for kind, ask in KINDS.items():
            asked = [
                (record, ask(record.name, chance)) for record in chance.sample(records, queries)
            ]
            times, places = [], []
            for record, query in asked:
                started = time.process_time()
                found = directories.search_names(RESEARCHERS, query, SHOWN)
                times.append(1000 * (time.process_time() - started))
                same = fold(record.name)
                places.append([fold(each.entry.name) == same for each in found.records])
            times.sort()
            yield Report(
                kind=kind,
                queries=queries,
                recall_5=sum(map(any, places)) / queries,
                first=sum(place[:1] == [True] for place in places) / queries,
                p50_ms=times[len(times) // 2],
                p95_ms=times[len(times) * 95 // 100],
            )
        library.close()


def made_up(count: int, chance: random.Random) -> list[str]:
    """So many names; some people have the same."""
    weights = [weight for _, weight in CULTURES]
    return [_name(chance.choices(CULTURES, weights)[0][0], chance) for _ in range(count)]


def _name(culture: tuple[str, str], chance: random.Random) -> str:
    given, surnames = (part.split() for part in culture)
    surname = _uneven(surnames, chance)
    if culture is ENGLISH and chance.random() < 0.3:  # noqa: PLR2004  # the rare ones
        surname = chance.choice(BEGINNINGS.split()) + chance.choice(ENDINGS.split())
    first = _uneven(given, chance)
    if culture is HAN:
        return surname + first
    middle = chance.random()
    if culture in {ENGLISH, INDIAN} and middle < 0.3:  # noqa: PLR2004  # a third, as in life
        first += f" {chance.choice(string.ascii_uppercase)}."
    elif culture is ENGLISH and middle < 0.45:  # noqa: PLR2004
        first += f" {chance.choice(given)}"
    if culture is SPANISH and middle < 0.6:  # noqa: PLR2004
        surname += f" {chance.choice(surnames)}"
    elif culture is not CHINESE and middle > 0.95:  # noqa: PLR2004
        surname += f"-{chance.choice(surnames)}"
    return f"{first} {surname}".replace("~", " ")


def _uneven(values: Sequence[str], chance: random.Random) -> str:
    """One of them: half of the time any, else one of the first, which are common."""
    if chance.random() < 0.5:  # noqa: PLR2004  # half
        return chance.choice(values)
    return values[min(int(chance.expovariate(0.1)), len(values) - 1)]


def _folded(name: str, _: random.Random) -> str:
    return fold_accents(name).lower()


def _last_first(name: str, _: random.Random) -> str:
    if is_spaceless(name):
        return name
    words = name.split()
    at = next(
        (place for place, word in enumerate(words) if place and word[0].islower()), len(words) - 1
    )
    return f"{' '.join(words[at:])}, {' '.join(words[:at])}"


def typo(name: str, chance: random.Random) -> str:
    """The name with one letter added, left out, replaced, or changed with its neighbour."""
    if is_spaceless(name):
        at = chance.randrange(len(name))
        return name[:at] + chance.choice("天海山文") + name[at:]
    letters = [at for at, letter in enumerate(name) if letter.isalpha()]
    at = chance.choice(letters)
    other = chance.choice(string.ascii_lowercase)
    match chance.randrange(4):
        case 0:
            return name[:at] + other + name[at:]
        case 1:
            return name[:at] + name[at + 1 :]
        case 2:
            return name[:at] + other + name[at + 1 :]
        case _:
            at = min(at, len(name) - 2)
            return name[:at] + name[at + 1] + name[at] + name[at + 2 :]


def _who_is(name: str, chance: random.Random) -> str:
    form = chance.choice(
        ("who is dr {}", "Who is Dr. {}?", "who's {}", "tell me about professor {}", "find Dr {}")
    )
    return form.format(name)


def _without_middle(name: str, _: random.Random) -> str:
    words = name.split()
    return name if len(words) != 3 else f"{words[0]} {words[2]}"  # noqa: PLR2004  # a middle one


def _initial(name: str, _: random.Random) -> str:
    words = name.split()
    return name if len(words) < 2 else f"{' '.join(words[1:])} {words[0][0]}"  # noqa: PLR2004


KINDS: dict[str, Callable[[str, random.Random], str]] = {
    "exact": lambda name, _: name,
    "folded": _folded,
    "Last, First": _last_first,
    "typo": typo,
    "who is dr": _who_is,
    "who is + typo": lambda name, chance: _who_is(typo(name, chance), chance),
    "no middle": _without_middle,
    "Last F": _initial,
}
"""What is made of a name to ask for it."""


if __name__ == "__main__":
    main()
