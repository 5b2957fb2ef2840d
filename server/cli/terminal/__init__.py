"""What commands share: options, questions, progress and text on a terminal."""
