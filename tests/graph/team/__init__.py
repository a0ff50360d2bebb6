"""Tests of many machines: tables, legs, the fenced saver, files on their way, and projects that move."""
