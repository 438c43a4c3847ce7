"""Records: heads, columns, tables, run directories, journals and files; no model is needed here."""
