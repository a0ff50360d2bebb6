"""The guard of shell commands: what an agent's shell tool is about to run leaves alone what other agents hold."""
