"""Tickets: pipelines as data, their LangGraph form, and the runs that the server owns."""
