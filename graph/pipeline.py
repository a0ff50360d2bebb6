"""The names of the ticket pipeline that applications import; `interlock.graph` has them too."""

from interlock.graph.ticket.build import pipeline_graph
from interlock.graph.ticket.spec import POC, TICKET, PipelineSpec
from interlock.graph.ticket.tickets import Tickets

__all__ = ["POC", "TICKET", "PipelineSpec", "Tickets", "pipeline_graph"]
