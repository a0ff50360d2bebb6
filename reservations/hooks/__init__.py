"""`interlock hook …`: the programs that clients of coding agents and git call; standard library only."""

__all__: list[str] = []
