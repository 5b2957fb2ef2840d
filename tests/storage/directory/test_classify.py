"""More than two hundred made-up queries of both kinds, put to a small directory."""

import pytest

from storage.directory.directories import Directories
from storage.directory.models import RESEARCHERS, Record
from storage.library import Library
from storage.models import Identity

PEOPLE = """
Theresa Boyle; John Smith; Anna-Lena Schäfer; María José García López; Pieter van der Meer
Wei Zhang; Xiaoming Wang; 王小明; 李静; 佐藤花子; Robert Young; Eleanor May; Hugh Grant-Ellery
Daniel Long; Patricia Price; Benjamin Wood; Sophie Brown; Ji-woo Park; Rose Hunter; Martin Cook
Lucy Stone; Siobhán O'Neill; Jürgen Müller; Łukasz Wiśniewski; Fatima al-Rashid; Omar bin Khalid
Ngozi Okafor; Venkatesh Subramanian; Priya Raghunathan; Dmitri Sokolov; Ivana Kovačević
Thomas Bell; Amy Green; Charles White; Victor Black; Grace Cell; Peter Field; Ruth Marsh
Noah Bush; Clara Bloom; Ian Power; Angela Merrick; Julian Frost; Kenji Tanaka; Mei-Ling Chen
Abena Mensah; Joaquín Núñez; Björn Åkesson
""".replace("\n", ";").split(";")  # fmt: skip

OVERVIEWS = (
    "Studies the genomics of breast cancer and of rare tumors in young women.",
    "Immunotherapy of melanoma with engineered T cells and checkpoint inhibitors.",
    "Stem cells in the regeneration of heart muscle after an infarction.",
    "Machine learning for medical images, from radiology to pathology slides.",
    "How neurons in the hippocampus keep memory and lose it in Alzheimer's disease.",
    "Antibiotic resistance of soil bacteria and the spread of plasmids.",
    "White blood cells, leukemia, and bone marrow transplantation.",
    "Epidemiology of diabetes, obesity and nutrition over a long life.",
    "癌症基因组学与免疫治疗的研究",
)

NAMES = """
Theresa Boyle; theresa boyle; Boyle, Theresa; boyle t; Boyle T.; T. Boyle; T Boyle; Boyle; boyle
Dr. Boyle; dr boyle; Prof. Theresa Boyle; professor boyle; who is dr smith; Who is Theresa Boyle?
who's theresa boyle; tell me about Theresa Boyle; Teresa Boyle; Theresa Boyel; Thersea Boyle
heresa Boyle; Theresa Boyle PhD; Boyle, T; profile of Theresa Boyle; papers by Theresa Boyle
publications of John Smith; what does Theresa Boyle work on?; What does John Smith study
John Smith; smith; Smith, John; john smth; J. Smith; Smith J; find John Smith; who is john smith
dr john smith; Anna-Lena Schäfer; anna lena schafer; Annalena Schaefer; Schäfer; schafer
Schäfer, Anna-Lena; María José García López; maria garcia; García López; Garcia; Maria Jose Garcia
García, María José; Pieter van der Meer; van der Meer; Vandermeer; van der meer p
Meer, Pieter van der; pieter meer; Wei Zhang; Zhang Wei; zhang; Zhang, W.; wei zhang
who is wei zhang; Xiaoming Wang; Wang Xiaoming; 王小明; 小明; 王小明教授; 谁是王小明; 王小明是谁
李静; 李静博士; 佐藤花子; 佐藤花子さん; who is 王小明; May; Eleanor May; Dr. May; who is may
Young; Robert Young; robert young; Dr Young; Grant-Ellery; Hugh Grant-Ellery; Hugh Grant; Long
daniel long; Price; patricia price; Wood; Benjamin Wood; Brown; Sophie Brown; Park; Ji-woo Park
jiwoo park; Rose Hunter; Hunter; martin cook; Cook; lucy stone; Siobhan O'Neill; ONeill; O'Neill
siobhan oneil; Jurgen Muller; Juergen Müller; Müller; mueller j; Lukasz Wisniewski; Wisniewski
Wiśniewski, Łukasz; Fatima al-Rashid; al rashid; alrashid; Fatima; Omar bin Khalid; Khalid
Ngozi Okafor; Okafor, Ngozi; ngozi okfor; Venkatesh Subramanian; Subramanian; Subramaniam
venkatesh; Priya Raghunathan; Raghunatan; Priya R.; Dmitri Sokolov; Dmitry Sokolov; Sokolov
Ivana Kovacevic; Kovačević; Thomas Bell; Bell; Amy Green; amy green; Charles White; Victor Black
Grace Cell; Peter Field; Ruth Marsh; Noah Bush; Clara Bloom; Ian Power; Angela Merrick; Merrick A
angela merick; Frost; Kenji Tanaka; Tanaka, Kenji; Mei-Ling Chen; Meiling Chen; Abena Mensah
Joaquin Nunez; Björn Akesson; Bjorn Åkesson; Dr. Ziegenfuss; Prof. Marguerite Unknown
who is Balthazar Quince; Q. Zimmerli; Zimmerli Q.
whats Theresa Boyle working on; do you have anyone called Okafor?
is there a Dr Sokolov here?
""".replace("\n", ";").split(";")  # fmt: skip

TOPICS = """
who studies cancer genomics; immunotherapy; cancer; Cancer; genomics; breast cancer
Young investigators; stem cells in Grant's lab; stem cells; white blood cells; White blood cells
long covid; long term memory; bone marrow transplantation; gene therapy; Gene Therapy
machine learning; Machine Learning in Medicine; deep learning for radiology; Alzheimer's disease
alzheimer disease; Parkinson's disease; memory; hippocampus; neurons; antibiotic resistance
soil bacteria; plasmids; leukemia; Leukemia; diabetes; obesity and nutrition; epidemiology
melanoma; T cells; CAR-T cells; CAR T; CRISPR; crispr-cas9; RNA; mRNA vaccines; COVID-19; covid
HIV; p53; BRCA1; EGFR inhibitors; checkpoint inhibitors; tumors; tumour microenvironment
heart failure; cardiology; oncology; neuroscience; infarction; pathology slides
who works on immunotherapy; who works with stem cells; who is working on leukemia
researchers in oncology; experts in machine learning; expertise in epidemiology
someone who knows about plasmids; papers on melanoma; papers about gene therapy
publications on antibiotic resistance; research on obesity; grants for cancer
people working on heart failure; scientists who study memory; find researchers studying leukemia
find papers about breast cancer; show me experts in radiology; looking for someone working on HIV
who is an expert in immunology; who is the expert on radiology
who leads trials of checkpoint inhibitors; which professors study diabetes; labs using CRISPR
groups working on plasmids; who treats melanoma; what is immunotherapy
tell me about immunotherapy; tell me about stem cells; anything about leukemia; find immunotherapy
search for gene therapy; young women with tumors; tumors in young women; green energy; solar power
black holes; brown adipose tissue; wood decay fungi; price elasticity; park management
field theory; marsh ecology; bush fires; algal bloom; power grids; permafrost; stone age tools
bell curves; cook stoves and indoor air; hunter gatherer societies; rose breeding; cell biology
cell division; Cell; cells; single cell sequencing; long read sequencing; long-range order
grant writing; May flowering plants; effects of sleep on memory; the role of glia in pain
mechanisms of drug resistance; treatment of asthma; climate change; quantum computing
graph neural networks; natural language processing; protein folding; cryo-EM; mass spectrometry
single molecule imaging; zebrafish; drosophila; C. elegans; E. coli; yeast; public health policy
health disparities; aging; sleep; pain; vitamin D; hepatitis C; influenza A; addiction; autism
depression; stroke; 癌症基因组学; 免疫治疗; 谁研究癌症; 谁在研究免疫治疗; 研究癌症的教授; 基因
干细胞; 糖尿病; がん免疫療法; 인공지능
""".replace("\n", ";").split(";")  # fmt: skip


@pytest.fixture
def directories(library: Library) -> Directories:
    directories = library.shelf(Identity("ann")).directories
    people = [name.strip() for name in PEOPLE if name.strip()]
    directories.add(
        RESEARCHERS,
        [
            Record(key=name, name=name, texts={"overview": OVERVIEWS[at % len(OVERVIEWS)]})
            for at, name in enumerate(people)
        ],
    )
    return directories


def _wrong(directories: Directories, queries: list[str], kind: str) -> tuple[int, list[str]]:
    """How many queries there are, and those that are taken for the other kind."""
    asked = [query.strip() for query in queries if query.strip()]
    found = [(query, directories.search(RESEARCHERS, query, 1)) for query in asked]
    wrong = [f"{query!r}: {each.reason}" for query, each in found if each.kind != kind]
    return len(asked), wrong


def test_queries_for_names_are_taken_for_names(directories: Directories) -> None:
    count, wrong = _wrong(directories, NAMES, "name")
    assert count > 150
    assert len(wrong) <= 0.02 * count, wrong


def test_queries_for_topics_are_taken_for_topics(directories: Directories) -> None:
    count, wrong = _wrong(directories, TOPICS, "topic")
    assert count > 150
    assert len(wrong) <= 0.02 * count, wrong


@pytest.mark.parametrize(
    ("query", "kind", "reason"),
    [
        ("Boyle, Theresa", "name", "it is a known name"),
        ("smith j", "name", "its words are those of a known name"),
        ("papers by Boyle", "name", "its words are those of a known name"),
        ("Teresa Bole", "name", "it resembles a known name"),
        ("Dr. Ziegenfuss", "name", "it has a person's title"),
        ("who studies cancer", "topic", "it asks who works on something"),
        ("Young investigators", "topic", "it resembles no known name"),
    ],
)
def test_the_answer_says_which_it_took_and_why(
    directories: Directories, query: str, kind: str, reason: str
) -> None:
    found = directories.search(RESEARCHERS, query, 1)
    assert (found.kind, found.reason) == (kind, reason)


def test_what_is_like_a_name_but_stands_in_a_text_is_a_topic(library: Library) -> None:
    directories = library.shelf(Identity("ann")).directories
    people = [Record(key="1", name="Ada Malaria"), Record(key="2", name="Bo Wu")]
    directories.add(RESEARCHERS, people)
    assert directories.search(RESEARCHERS, "malarja", 1).kind == "name"
    spoken = Record(key="2", name="Bo Wu", texts={"overview": "Mosquitoes and malarja."})
    directories.add(RESEARCHERS, [spoken])
    assert directories.search(RESEARCHERS, "malarja", 1).kind == "topic"
