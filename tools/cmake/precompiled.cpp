// Holds nothing: its target parses the headers that others start from (LeatTargets.cmake).
