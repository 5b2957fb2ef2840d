"""Files: opened beneath one root, judged where they really are, read and changed byte for byte."""
