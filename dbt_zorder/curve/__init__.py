"""Pure mathematics of layout: trees over ranks and the hash slots that lead a row to its file. Knows no Spark."""
