"""Files inside one root: opened safely, checked at their real location, changed byte for byte."""
